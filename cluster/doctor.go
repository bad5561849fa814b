package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"tare/cluster/pod"
	"tare/ordered"
	"tare/record"
	"tare/site"
)

// Areas of a Finding.
const (
	AreaPermission = "permission"
	AreaNamespace  = "namespace"
	AreaNode       = "node"
	AreaClass      = "class"
	AreaStorage    = "storage class"
	AreaQuota      = "quota"
	AreaVMs        = "KubeVirt"
	AreaPods       = "pods"
	AreaImage      = "image"
	AreaClock      = "clock"
	AreaNetwork    = "network"
	AreaObserver   = "observer"
)

// Finding is the result of one check of Examine. Err is nil if all is well.
type Finding struct {
	Area, Name, Detail string
	Family             record.Family // of a class
	Optional           bool          // studies work in spite of Err
	Err                error
}

// Examine checks what a study needs of the cluster: rights, nodes and classes. With an image it also starts small
// pods, and removes them again. It returns an error only if the API server does not answer. It calls trying before
// a slow check, with the most time that the check may take.
func (s *Site) Examine(ctx context.Context, trying func(what string, within time.Duration) (done func())) ([]Finding, error) {
	if err := s.api.Ping(ctx); err != nil {
		return nil, &site.UnableError{Err: err}
	}
	out, err := s.permissions(ctx)
	if err != nil {
		return nil, &site.UnableError{Err: fmt.Errorf("cannot check your rights on %s: %w", s.api.Server(), explained(err, s.Namespace))}
	}
	var missing error
	if s.Namespace != "" {
		missing = s.missing(ctx)
		out = append(out, Finding{Area: AreaNamespace, Name: s.Namespace, Detail: "takes what studies create", Err: missing})
	}
	out = append(out, s.findNodes(ctx)...)
	classes := s.findClasses(ctx)
	out = append(out, s.findStorage(ctx)...)
	out = append(out, s.findBounds(ctx)...)
	out = append(out, s.findVMs(ctx)...)
	busy := error(nil)
	if s.Image != "" {
		busy = s.disturbs(ctx)
	}
	switch {
	case s.Image == "":
		out = append(append(out, classes...), Finding{Area: AreaPods, Name: "pods", Err: errors.New("not tried, because the image of tare is unknown; to test the image, each class, the nodes' clocks and the network with small pods, give --tare-image REFERENCE; `tare image push tare REGISTRY/NAME` prints the reference")})
	case missing != nil:
		out = append(append(out, classes...), Finding{Area: AreaPods, Name: "pods", Err: fmt.Errorf("not tried, because namespace %s does not take them", s.Namespace)})
	case len(s.untainted()) == 0:
		out = append(append(out, classes...), Finding{Area: AreaPods, Name: "pods", Err: errors.New("not tried: no node takes pods")})
	case classes[0].Err != nil:
		out = append(out, classes...)
	case busy != nil:
		out = append(append(out, classes...), Finding{Area: AreaPods, Name: "pods", Err: busy})
	default:
		done := trying("pods", podWithin+pathWithin)
		out = append(out, s.tryPods(ctx)...)
		done()
	}
	if ctx.Err() != nil {
		return nil, site.ErrInterrupted
	}
	return append(out, Finding{Area: AreaPods, Name: "requests", Detail: s.api.Rate()}), nil
}

// permissions asks for each rule whether the user has it.
func (s *Site) permissions(ctx context.Context) ([]Finding, error) {
	var out []Finding
	where, hint := "", "tare rbac"
	if s.Namespace != "" {
		where, hint = " in namespace "+s.Namespace, hint+" -n "+s.Namespace
	}
	for _, r := range UserRules(Tier{Own: s.Namespace == "", Observe: s.Observe}) {
		if r.Only != "" {
			continue // a server that does not know the type denies it
		}
		namespace, in := s.Namespace, where
		if r.Whole {
			namespace, in = "", ""
		}
		var denied ordered.Groups[string, string] // resources by verbs
		for _, resource := range r.Resources {
			var verbs []string
			for _, verb := range r.Verbs {
				allowed, err := s.may(ctx, namespace, verb, r.APIGroups[0], resource)
				if err != nil {
					return nil, err
				}
				if !allowed {
					verbs = append(verbs, verb)
				}
			}
			if len(verbs) > 0 {
				denied.Add(strings.Join(verbs, ", "), resource)
			}
		}
		f := Finding{Area: AreaPermission, Name: strings.Join(r.Resources, ", "), Detail: strings.Join(r.Verbs, ", ") + ": " + r.Why, Optional: r.Optional}
		var parts []string
		for verbs, resources := range denied.All() {
			parts = append(parts, verbs+" "+strings.Join(resources, ", "))
		}
		if len(parts) > 0 {
			f.Err = fmt.Errorf("you may not %s%s; %s; `%s` prints the role to ask for", strings.Join(parts, " or "), in, r.purpose(), hint)
		}
		out = append(out, f)
	}
	return out, nil
}

// may asks the API server whether the user may do something: in all namespaces, if there is none.
func (s *Site) may(ctx context.Context, namespace, verb, group, resource string) (bool, error) {
	resource, sub, _ := strings.Cut(resource, "/")
	r := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub,
	}}}
	err := s.api.Create(ctx, r)
	return r.Status.Allowed, err
}

// cannotList is the finding of a list that was refused.
func cannotList(area string, err error) []Finding {
	return []Finding{{Area: area, Name: "list", Err: fmt.Errorf("cannot list them: %w", explained(err, ""))}}
}

// findNodes finds the nodes that take part in studies, and says how many do not, and why.
func (s *Site) findNodes(ctx context.Context) (out []Finding) {
	all, err := s.readNodes(ctx)
	if err != nil {
		return cannotList(AreaNode, err)
	}
	for _, n := range s.untainted() {
		out = append(out, Finding{Area: AreaNode, Name: n.Name, Detail: fmt.Sprintf("%s, kernel %s, %s, %s, %d processors, %d MiB",
			n.Host.OS, n.Host.Kernel, n.Host.Arch, n.Host.Tools["container runtime"], n.Host.Threads, n.Host.MemoryBytes>>20)})
	}
	if len(out) == 0 {
		out = append(out, Finding{Area: AreaNode, Name: "none", Err: errors.New("no node is ready and free of taints; `kubectl describe nodes` shows why")})
	}
	without := map[string]int{}
	for i := range all {
		if why := leftOut(&all[i]); why != "" {
			without[why]++
		}
	}
	for _, why := range slices.Sorted(maps.Keys(without)) {
		out = append(out, Finding{Area: AreaNode, Name: "left out", Detail: fmt.Sprintf("%d of %d nodes: %s", without[why], len(all), why)})
	}
	return out
}

// leftOut says why a node takes no part in a study that tolerates nothing. "": it does.
func leftOut(n *corev1.Node) string {
	for _, t := range n.Spec.Taints {
		if unready(n) == "" && t.Effect != corev1.TaintEffectPreferNoSchedule {
			return "taint " + t.Key
		}
	}
	return unready(n)
}

// untainted are the nodes that doctor tries.
func (s *Site) untainted() []record.Node {
	var out []record.Node
	for _, n := range s.ready {
		if leftOut(n) == "" {
			out = append(out, describe(n))
		}
	}
	slices.SortFunc(out, func(a, b record.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// findClasses finds the RuntimeClasses. That they start is another matter.
func (s *Site) findClasses(ctx context.Context) (out []Finding) {
	if err := s.readClasses(ctx); err != nil {
		return cannotList(AreaClass, err)
	}
	for _, c := range s.classes {
		k := pod.New(c, nil, nil, nil)
		out = append(out, Finding{Area: AreaClass, Name: c.Name, Detail: k.About() + s.sameHandler(c), Family: k.Traits(nil).Family})
	}
	return out
}

// sameHandler names the other classes with the handler of a class: they run the same runtime. The handler of the default class is part of
// the nodes' configuration, so it is unknown here.
func (s *Site) sameHandler(c pod.Class) string {
	var same []string
	for _, other := range s.classes {
		if other.Name != c.Name && c.Handler != "" && other.Handler == c.Handler {
			same = append(same, other.Name)
		}
	}
	if len(same) == 0 {
		return ""
	}
	return "; the same runtime as " + strings.Join(same, ", ") + ", so a comparison of them shows only noise"
}

// findStorage finds the storage classes. A study needs none.
func (s *Site) findStorage(ctx context.Context) []Finding {
	var classes storagev1.StorageClassList
	if err := s.api.List(ctx, "", "", &classes); err != nil {
		refused := cannotList(AreaStorage, err)
		refused[0].Optional = true
		return refused
	}
	var out []Finding
	for i := range classes.Items {
		c := &classes.Items[i]
		detail := c.Provisioner
		if c.VolumeBindingMode != nil {
			detail += ", " + string(*c.VolumeBindingMode)
		}
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			detail += ", the default"
		}
		out = append(out, Finding{Area: AreaStorage, Name: c.Name, Detail: detail})
	}
	if len(out) == 0 {
		out = append(out, Finding{Area: AreaStorage, Name: "none", Detail: "volumes are directories of the nodes (emptyDir)"})
	}
	return out
}
