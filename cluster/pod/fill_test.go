package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFiller: an idle pod is on its node, has the study's labels and no secret, and its names are short, whatever the node's is.
func TestFiller(t *testing.T) {
	s := &Study{ID: "t1", Namespace: "tare-t1", Image: "registry/tare", Secret: "agents"}
	long := strings.Repeat("a-long-name.", 20) + "example.org"
	p, other := s.Filler(long, 7), s.Filler("node2", 7)
	if p.Name == other.Name || len(p.Name) > 63 || p.Spec.NodeSelector[corev1.LabelHostname] != long || len(p.Spec.Volumes) != 0 {
		t.Errorf("%s and %s: %+v", p.Name, other.Name, p.Spec)
	}
	if c := p.Spec.Containers[0]; c.Command[0] != "/tare-pause" || len(c.VolumeMounts) != 0 || *c.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("%+v", c)
	}
	for _, l := range strings.Split(s.Fillers(long), ",") {
		name, value, _ := strings.Cut(l, "=")
		if p.Labels[name] != value || len(value) > 63 {
			t.Errorf("%s: %v", l, p.Labels)
		}
	}
}
