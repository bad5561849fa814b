package advice

import (
	"strings"
	"testing"

	"tare/analyse/cause"
)

// TestOfNodes: on a cluster, the advice has no command line of the runtime, and names its configuration file on each node.
func TestOfNodes(t *testing.T) {
	l := newLab("net", nil)
	l.in.OnCluster = true
	l.finds(cause.Helper, "sentry", at("runsc-systrap"))
	var files []string
	for _, p := range l.advice(t, "gvisor-host-network").Patches {
		files = append(files, p.File)
	}
	if got := strings.Join(files, "; "); got != "/etc/containerd/runsc.toml on each node, for its RuntimeClass" {
		t.Errorf("on a cluster the patches are for %q", got)
	}
}
