package objects

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/workload/objects"
)

// TestNode: the node is read if it has the kernel of the load, and each plateau has the readings since the last one.
func TestNode(t *testing.T) {
	own, err := os.ReadFile(bootID)
	if err != nil {
		t.Skip(err)
	}
	answer := func(id string) *api {
		return server(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"status":{"nodeInfo":{"bootID":"` + id + `"}}}`))
		})
	}
	for name, c := range map[string]struct{ node, id, says string }{
		"another kernel": {"n1", "another", "does not run on the kernel of the node n1"},
		"no answer":      {"n1", "", "does not report it"},
		"no name":        {"", "another", "TARE_NODE is not set"},
	} {
		if _, err := openNode(t.Context(), answer(c.id), c.node, time.Now()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	n, err := openNode(t.Context(), answer(strings.TrimSpace(string(own))), "n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.close() }()
	n.read()
	first, err := n.plateau()
	if err != nil || len(first) != 2 {
		t.Fatalf("%v: %v", first, err)
	}
	second, err := n.plateau()
	if err != nil || len(second) != 1 || second[0].At < first[1].At {
		t.Fatalf("%v, then %v: %v", first, second, err)
	}
	if r := second[0]; r.Available <= 0 || r.Cache <= 0 || r.Used <= 0 || r.Written < first[0].Written {
		t.Errorf("%+v", r)
	}
	n.emptied(t.Context(), second[0], second[0]) // it is as empty as it was, but for what others write
}

// TestOwnNode: pods with a class go to the load's own node, whatever its labels say.
func TestOwnNode(t *testing.T) {
	m, err := newMaker(&options{kind: objects.Pod, study: "t1", image: "example.org/tare", class: "runc-native", nodes: objects.Own, node: "n1"}, "load")
	if err != nil {
		t.Fatal(err)
	}
	var p corev1.Pod
	strict(t, m.object("o"), &p)
	if f := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]; f.Key != "metadata.name" || len(f.Values) != 1 || f.Values[0] != "n1" || len(p.Spec.Tolerations) > 0 {
		t.Errorf("%+v, tolerations %v", f, p.Spec.Tolerations)
	}
}
