package advice

import (
	"strings"
	"testing"

	"tare/analyse/cause"
)

// TestOfNodes: a pod's runtime has no command line, and its configuration is a file of each node.
func TestOfNodes(t *testing.T) {
	l := newLab("net", nil)
	l.in.OnCluster = true
	l.finds(cause.Helper, "sentry", at("runsc-systrap"))
	var files []string
	for _, p := range l.advice(t, "gvisor-host-network").Patches {
		files = append(files, p.File)
	}
	if got := strings.Join(files, "; "); got != "/etc/containerd/runsc.toml of each node, for its RuntimeClass" {
		t.Errorf("on a cluster the patches are for %q", got)
	}
}
