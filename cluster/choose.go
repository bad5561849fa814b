package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tare/cluster/pod"
	"tare/record"
	"tare/study"
)

// chosen is where a study runs.
type chosen struct {
	nodes       []record.Node
	pods        map[string]int // that each of them takes
	tolerations []corev1.Toleration
	hosts       []string // see deployment.hosts
}

// names are those of the nodes.
func (c *chosen) names() (out []string) {
	for _, n := range c.nodes {
		out = append(out, n.Name)
	}
	return out
}

// processors are those of the nodes, as Go names them.
func (c *chosen) processors() (out []string) {
	for i := range c.nodes {
		if arch := c.nodes[i].Host.Arch; !slices.Contains(out, arch) {
			out = append(out, arch)
		}
	}
	return out
}

// choose returns the nodes that can run every sandbox of a study: those of a block share a node.
func (s *Site) choose(st *study.Study) (chosen, error) {
	out, selector, onHost, err := s.wanted(st)
	if err != nil {
		return out, err
	}
	out.pods = map[string]int{}
	for _, n := range s.ready {
		if !suits(n, selector, out.tolerations) {
			continue
		}
		of := describe(n)
		out.nodes = append(out.nodes, of)
		out.pods[of.Name] = int(n.Status.Allocatable.Pods().Value())
		if onHost {
			out.hosts = append(out.hosts, seenFrom(n)...)
		}
	}
	slices.SortFunc(out.nodes, func(a, b record.Node) int { return cmp.Compare(a.Name, b.Name) })
	if len(out.nodes) == 0 {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(selector)) {
			labels = append(labels, name+"="+selector[name])
		}
		want := strings.Join(labels, ",")
		if !slices.ContainsFunc(s.ready, func(n *corev1.Node) bool { return hasLabels(n, selector) }) {
			return out, fmt.Errorf("none of the %d ready nodes of %s has the labels %s, which node-selector or a RuntimeClass requires; add them with `kubectl label node NAME %s`; `kubectl get nodes --show-labels` shows the labels of each node",
				len(s.ready), s.api.Server(), want, strings.Join(labels, " "))
		}
		return out, fmt.Errorf("on %s, each node that could run the study has a taint that the study does not tolerate; `kubectl describe nodes` shows the taints; tolerate one in the definition of a pod (docs/sandboxes/pod.md)", s.api.Server())
	}
	return out, nil
}

// wanted is what all sandboxes of a study together ask of its nodes, and whether some use the nodes'
// network.
func (s *Site) wanted(st *study.Study) (out chosen, selector map[string]string, onHost bool, err error) {
	selector = map[string]string{}
	for _, k := range used(st, pod.RuntimeClasses(s.classes, nil, nil, nil)) {
		labels, tolerations := k.Wants()
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			if has, is := selector[name]; is && has != labels[name] {
				return out, nil, false, fmt.Errorf("no node suits all sandboxes of the study: one needs %s=%s, and another %s=%s; put them in separate studies", name, has, name, labels[name])
			}
		}
		maps.Copy(selector, labels)
		for _, t := range tolerations {
			if !slices.Contains(out.tolerations, t) {
				out.tolerations = append(out.tolerations, t)
			}
		}
		network, _ := k.Host()
		onHost = onHost || network
	}
	return out, selector, onHost, nil
}

// used are the kinds of a study's levels, with the native one, in which other ends run.
func used(st *study.Study, classes []*pod.RuntimeClass) []*pod.RuntimeClass {
	levels := st.Boxes()
	return slices.DeleteFunc(slices.Concat(classes, defined(st, classes[0])), func(k *pod.RuntimeClass) bool { return k != classes[0] && !slices.Contains(levels, k.Name()) })
}

// defined are the kinds that a study defines, made like base.
func defined(st *study.Study, base *pod.RuntimeClass) []*pod.RuntimeClass {
	var out []*pod.RuntimeClass
	for _, d := range st.Sandboxes {
		if d.Kind != pod.Word {
			continue
		}
		if k, err := base.Define(d.Name, d.Values); err == nil { // study.Parse has refused others
			out = append(out, k.(*pod.RuntimeClass))
		}
	}
	return out
}

// suits reports whether a node has the labels, and only taints that are tolerated.
func suits(n *corev1.Node, labels map[string]string, tolerated []corev1.Toleration) bool {
	return hasLabels(n, labels) && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(tolerated, func(o corev1.Toleration) bool { return tolerates(o, t) })
	})
}

// hasLabels reports whether a node has all of the labels.
func hasLabels(n *corev1.Node, labels map[string]string) bool {
	for name, value := range labels {
		if n.Labels[name] != value {
			return false
		}
	}
	return true
}

// tolerates is what Kubernetes' scheduler means by it, for what a definition can say.
func tolerates(o corev1.Toleration, t corev1.Taint) bool {
	return o.Key == t.Key && (o.Effect == "" || o.Effect == t.Effect) && (o.Operator == corev1.TolerationOpExists || o.Value == t.Value)
}

// seenFrom are the addresses from which others see what runs on a node's own network: its own, and
// the first two of its pods' networks, which bridges (.1) and tunnels (.0) of network plugins have.
func seenFrom(n *corev1.Node) []string {
	var out []string
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil {
			out = append(out, netip.PrefixFrom(ip, ip.BitLen()).String())
		}
	}
	for _, cidr := range n.Spec.PodCIDRs {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			out = append(out, netip.PrefixFrom(p.Addr(), p.Addr().BitLen()-1).Masked().String())
		}
	}
	return out
}
