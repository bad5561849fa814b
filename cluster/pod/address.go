package pod

import (
	"encoding/json"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// addressOf is where others reach a pod: its address on the first additional network, if it has one
// by Multus, else its own.
func addressOf(p *corev1.Pod) netip.Addr {
	var networks []struct {
		IPs     []string `json:"ips"`
		Default bool     `json:"default"`
	}
	_, asked := p.Annotations[networksAnnotation]
	if err := json.Unmarshal([]byte(p.Annotations[statusAnnotation]), &networks); asked && err == nil {
		for _, n := range networks {
			if !n.Default && len(n.IPs) > 0 {
				a, _ := netip.ParseAddr(n.IPs[0]) // it may be a prefix of a plugin that does not keep to the format
				return a
			}
		}
	}
	a, _ := netip.ParseAddr(p.Status.PodIP) // which may not be known yet
	return a
}
