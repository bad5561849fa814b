package pod

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// demands are the words of the API server for what a quota wants each container to state
// (plugin/pkg/admission/resourcequota/controller.go in k8s.io/apiserver): "limits.cpu for: tare; requests.cpu for: tare".
var demands = regexp.MustCompile(`failed quota: [^:]+: must specify (.*)$`)

// stated is what a pod that is not measured gets where a quota demands it: more than such pods use.
func stated(of corev1.ResourceName) (limit, request resource.Quantity, known bool) {
	switch of {
	case corev1.ResourceCPU:
		return resource.MustParse("1"), resource.MustParse("100m"), true
	case corev1.ResourceMemory:
		return resource.MustParse("1Gi"), resource.MustParse("128Mi"), true
	}
	return limit, request, false
}

// Limit gives a pod that nothing is measured in what a quota demands of it, if that is why the API server has refused it. It returns
// the resources that the quota names, such as limits.cpu; nil: the refusal has another reason.
func Limit(p *corev1.Pod, refusal error) (out []string) {
	m := demands.FindStringSubmatch(refusal.Error())
	if m == nil {
		return nil
	}
	for _, d := range strings.Split(m[1], ";") {
		name, _, _ := strings.Cut(strings.TrimSpace(d), " ")
		if _, _, known := stated(quantity(name)); !known {
			return nil
		}
		out = append(out, name)
	}
	State(p, out)
	return out
}

// State has each container of a pod that nothing is measured in state what a quota demands, unless it states that already.
func State(p *corev1.Pod, demands []string) {
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			if r.Limits == nil {
				r.Limits = corev1.ResourceList{}
			}
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			for _, d := range demands {
				of := quantity(d)
				limit, request, known := stated(of)
				if asked, has := r.Requests[of]; !has && known {
					r.Requests[of] = request
				} else if asked.Cmp(limit) > 0 {
					limit = asked
				}
				if _, has := r.Limits[of]; !has && known {
					r.Limits[of] = limit
				}
			}
		}
	}
}

// quantity is the resource that a quota means by limits.cpu, requests.cpu or cpu.
func quantity(name string) corev1.ResourceName {
	return corev1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(name, "limits."), "requests."))
}

// without names the demands that a container does not meet; "": it meets all.
func without(r corev1.ResourceRequirements, demands []string) string {
	lacks := slices.DeleteFunc(slices.Clone(demands), func(d string) bool {
		of := r.Requests
		if strings.HasPrefix(d, "limits.") {
			of = r.Limits
		}
		_, has := of[quantity(d)]
		return has
	})
	return strings.Join(lacks, ", ")
}
