package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"tare/cluster/pod"
)

// bounds are the ResourceQuotas and LimitRanges of a namespace. The API server applies the LimitRanges to a pod first, and then the
// quotas. Its order for the LimitRanges is unknown.
type bounds struct {
	namespace string
	quotas    []corev1.ResourceQuota
	ranges    []corev1.LimitRange
}

// bounds reads the quotas and limit ranges of the namespace of -n. It finds none if the namespace does not exist, or if the user may
// not list them.
func (s *Site) bounds(ctx context.Context) (out bounds, err error) {
	out.namespace = s.Namespace
	if s.Namespace == "" {
		return out, nil
	}
	var quotas corev1.ResourceQuotaList
	var ranges corev1.LimitRangeList
	if err = s.api.List(ctx, s.Namespace, "", &quotas); err == nil || apierrors.IsForbidden(err) {
		err = s.api.List(ctx, s.Namespace, "", &ranges)
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return out, fmt.Errorf("cannot list the ResourceQuotas and LimitRanges of namespace %s: %w", s.Namespace, explained(err, s.Namespace))
	}
	out.quotas, out.ranges = quotas.Items, ranges.Items
	return out, nil
}

// ask is what is asked of a namespace at the same time: so many of each pod and claim.
type ask struct {
	pods   []several[*corev1.Pod]
	claims []several[*corev1.PersistentVolumeClaim]
}

type several[T any] struct {
	one T
	n   int64
}

// and are all of both.
func (a ask) and(b ask) ask {
	return ask{slices.Concat(a.pods, b.pods), slices.Concat(a.claims, b.claims)}
}

// of is what is asked of one resource of a quota.
func (a ask) of(q *corev1.ResourceQuota, name corev1.ResourceName) resource.Quantity {
	sum := resource.Quantity{}
	add := func(one resource.Quantity, n int64) {
		one = one.DeepCopy()
		one.Mul(n)
		sum.Add(one)
	}
	for _, p := range a.pods {
		if governs(q, p.one) {
			add(ofPod(p.one, name), p.n)
		}
	}
	for _, c := range a.claims {
		if len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil {
			add(ofClaim(c.one, name), c.n)
		}
	}
	return sum
}

// ofPod is what one pod takes of a resource of a quota
// (https://kubernetes.io/docs/concepts/policy/resource-quotas/).
func ofPod(p *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	switch name {
	case corev1.ResourcePods, "count/pods":
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	limits, of := demanded(name)
	if limits {
		return helpers.PodLimits(p, helpers.PodResourcesOptions{})[of]
	}
	return helpers.PodRequests(p, helpers.PodResourcesOptions{})[of]
}

// demanded is the resource that a quota means by limits.cpu, requests.cpu or cpu.
func demanded(name corev1.ResourceName) (limits bool, of corev1.ResourceName) {
	text, limits := strings.CutPrefix(string(name), "limits.")
	return limits, corev1.ResourceName(strings.TrimPrefix(text, "requests."))
}

func stated(c *corev1.Container, limits bool) corev1.ResourceList {
	if limits {
		return c.Resources.Limits
	}
	return c.Resources.Requests
}

// ofClaim is what a claim takes of a resource of a quota.
func ofClaim(c *corev1.PersistentVolumeClaim, name corev1.ResourceName) resource.Quantity {
	const ofClass = ".storageclass.storage.k8s.io/"
	class, what, named := strings.Cut(string(name), ofClass)
	if !named {
		what = string(name)
	} else if c.Spec.StorageClassName == nil || *c.Spec.StorageClassName != class {
		return resource.Quantity{}
	}
	switch what {
	case "persistentvolumeclaims", "count/persistentvolumeclaims":
		return *resource.NewQuantity(1, resource.DecimalSI)
	case string(corev1.ResourceRequestsStorage):
		return c.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	return resource.Quantity{}
}

// governs reports whether a quota counts a pod. A scope that tare does not know counts none.
func governs(q *corev1.ResourceQuota, p *corev1.Pod) bool {
	var by []corev1.ScopedResourceSelectorRequirement
	for _, s := range q.Spec.Scopes {
		by = append(by, corev1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		by = append(by, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return !slices.ContainsFunc(by, func(s corev1.ScopedResourceSelectorRequirement) bool { return !inScope(p, s) })
}

func inScope(p *corev1.Pod, s corev1.ScopedResourceSelectorRequirement) bool {
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return p.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return p.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return effortless(p)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !effortless(p)
	case corev1.ResourceQuotaScopePriorityClass:
		has := p.Spec.PriorityClassName
		switch s.Operator {
		case corev1.ScopeSelectorOpIn:
			return slices.Contains(s.Values, has)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(s.Values, has)
		}
		return (has != "") == (s.Operator == corev1.ScopeSelectorOpExists)
	}
	return false
}

// effortless reports whether a pod has the class BestEffort: no container has a request or a limit.
func effortless(p *corev1.Pod) bool {
	return !slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		return len(c.Resources.Requests)+len(c.Resources.Limits) > 0
	})
}

// compute are the resources that a quota demands of each container, if it has them.
func compute() []corev1.ResourceName {
	return []corev1.ResourceName{"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"}
}

// demandsOf are what a quota demands of a pod's containers and one of them does not state, such as limits.cpu.
func demandsOf(q *corev1.ResourceQuota, p *corev1.Pod) (out []string) {
	if !governs(q, p) {
		return nil
	}
	for _, name := range compute() {
		if _, is := q.Spec.Hard[name]; !is {
			continue
		}
		limits, of := demanded(name)
		if slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool { _, has := stated(&c, limits)[of]; return !has }) {
			out = append(out, string(name))
		}
	}
	return out
}

// filledIn is a pod with what the LimitRanges give to containers that state nothing. gives are the limits among that.
func (b *bounds) filledIn(p *corev1.Pod) (_ *corev1.Pod, gives corev1.ResourceList) {
	p, gives = p.DeepCopy(), corev1.ResourceList{}
	fill := func(into *corev1.ResourceList, with corev1.ResourceList) (given corev1.ResourceList) {
		given = corev1.ResourceList{}
		for of, q := range with {
			if _, has := (*into)[of]; !has {
				if *into == nil {
					*into = corev1.ResourceList{}
				}
				(*into)[of], given[of] = q, q
			}
		}
		return given
	}
	for i := range b.ranges {
		for _, item := range b.ranges[i].Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
				for k := range containers {
					maps.Copy(gives, fill(&containers[k].Resources.Limits, item.Default))
					fill(&containers[k].Resources.Requests, item.DefaultRequest)
				}
			}
		}
	}
	return p, gives
}

// admitted is a pod that is not measured as the namespace's bounds leave it: tare states for it what a quota demands.
func (b *bounds) admitted(p *corev1.Pod) *corev1.Pod {
	p, _ = b.filledIn(p)
	for i := range b.quotas {
		if d := demandsOf(&b.quotas[i], p); len(d) > 0 {
			pod.State(p, d)
		}
	}
	return p
}

// refuses says why a LimitRange refuses a pod; "": none does.
func (b *bounds) refuses(p *corev1.Pod) string {
	for i := range b.ranges {
		for _, item := range b.ranges[i].Spec.Limits {
			why := ""
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
					if why = outside(item, c.Resources); why != "" {
						break
					}
				}
			case corev1.LimitTypePod:
				sum := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
				for of := range keysOf(item) {
					if all := ofPod(p, "limits."+of); !all.IsZero() {
						sum.Limits[of] = all
					}
					if all := ofPod(p, of); !all.IsZero() {
						sum.Requests[of] = all
					}
				}
				why = outside(item, sum)
			}
			if why != "" {
				return fmt.Sprintf("LimitRange %s of namespace %s %s", b.ranges[i].Name, b.namespace, why)
			}
		}
	}
	return ""
}

func keysOf(item corev1.LimitRangeItem) map[corev1.ResourceName]bool {
	out := map[corev1.ResourceName]bool{}
	for _, l := range []corev1.ResourceList{item.Min, item.Max} {
		for of := range l {
			out[of] = true
		}
	}
	return out
}

// outside says which bound of a LimitRange is not kept; "": all are. The API server wants a request for each minimum and a limit for each
// maximum (plugin/pkg/admission/limitranger in k8s.io/kubernetes).
func outside(item corev1.LimitRangeItem, r corev1.ResourceRequirements) string {
	a := strings.ToLower(string(item.Type))
	for _, of := range slices.Sorted(maps.Keys(keysOf(item))) {
		limit, limited := r.Limits[of]
		asked, requested := r.Requests[of]
		if least, is := item.Min[of]; is && (!requested || asked.Cmp(least) < 0 || limited && limit.Cmp(least) < 0) {
			return fmt.Sprintf("demands at least %s %s of a %s, and its pod has %s", least.String(), of, a, orNone(asked, requested))
		}
		if most, is := item.Max[of]; is && (!limited || limit.Cmp(most) > 0 || asked.Cmp(most) > 0) {
			return fmt.Sprintf("allows at most %s %s to a %s, and its pod has %s", most.String(), of, a, orNone(limit, limited))
		}
	}
	return ""
}

func orNone(q resource.Quantity, has bool) string {
	if !has {
		return "none"
	}
	return q.String()
}

// refusesClaim is refuses for a claim.
func (b *bounds) refusesClaim(c *corev1.PersistentVolumeClaim) string {
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	for i := range b.ranges {
		for _, item := range b.ranges[i].Spec.Limits {
			if item.Type != corev1.LimitTypePersistentVolumeClaim {
				continue
			}
			least, most := item.Min[corev1.ResourceStorage], item.Max[corev1.ResourceStorage]
			switch where := fmt.Sprintf("LimitRange %s of namespace %s", b.ranges[i].Name, b.namespace); {
			case size.Cmp(least) < 0:
				return fmt.Sprintf("%s demands claims of at least %s, and a claim has %s", where, least.String(), size.String())
			case !most.IsZero() && size.Cmp(most) > 0:
				return fmt.Sprintf("%s allows claims of at most %s, and a claim has %s", where, most.String(), size.String())
			}
		}
	}
	return ""
}

// room is what a quota has left of a resource. Negative: it was lowered.
func room(q *corev1.ResourceQuota, name corev1.ResourceName) resource.Quantity {
	left := q.Spec.Hard[name].DeepCopy()
	left.Sub(q.Status.Used[name])
	return left
}

// settingOf are the settings of a study that state what a quota demands.
func settingOf(demands []string) string {
	var out []string
	for _, s := range [][2]string{{"cpu", "cpu-limit: [1]"}, {"memory", "memory-limit: [1GiB]"}} {
		if slices.ContainsFunc(demands, func(d string) bool { _, of := demanded(corev1.ResourceName(d)); return string(of) == s[0] }) {
			out = append(out, s[1])
		}
	}
	return "factors: {" + strings.Join(out, ", ") + "}"
}

// list is a ResourceList in words.
func list(r corev1.ResourceList) string {
	var out []string
	for _, of := range slices.Sorted(maps.Keys(r)) {
		q := r[of]
		out = append(out, fmt.Sprintf("%s %s", q.String(), of))
	}
	return strings.Join(out, " and ")
}
