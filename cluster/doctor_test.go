package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/cluster/pod"
)

func untold(string, time.Duration) func() { return func() {} }

// examined is what doctor finds on the cluster of a false API server.
func examined(t *testing.T, fake *fakeAPI, s *Site) map[string]error {
	t.Helper()
	found, err := s.Examine(t.Context(), untold)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]error{}
	for _, f := range found {
		out[f.Area+" "+f.Name] = f.Err
	}
	if len(fake.pods) > 0 {
		t.Errorf("%d pods are left on the cluster", len(fake.pods))
	}
	return out
}

// TestExamine: what is well is well, and each thing that is missing has its own reason.
func TestExamine(t *testing.T) {
	fake, where := newFake(t)
	s := &Site{Image: "registry/tare", Observe: true, Namespace: "bench", Say: t.Logf}
	if err := s.Reach(where); err != nil {
		t.Fatal(err)
	}
	found := examined(t, fake, s)
	for _, name := range []string{"permission secrets", "namespace bench", "node node1", "class process", "class gvisor", "image node2", "observer admission"} {
		if err, ok := found[name]; !ok || err != nil {
			t.Errorf("%s: %v, found %t", name, err, ok)
		}
	}
	if err := found["clock node1"]; err == nil || !strings.Contains(err.Error(), "cannot connect to a pod there") {
		t.Errorf("a port that cannot be forwarded: %v", err)
	}
	fake.denies = "secrets"
	if err := examined(t, fake, s)["permission secrets"]; err == nil || !strings.Contains(err.Error(), "you may not create, deletecollection secrets in namespace bench") {
		t.Errorf("a right that is missing: %v", err)
	}
	fake.denies = "limitranges"
	if err := examined(t, fake, s)["permission limitranges, resourcequotas"]; err == nil || !strings.Contains(err.Error(), "you may not list limitranges in namespace bench; tare uses this right to find out") || !strings.Contains(err.Error(), "studies work without this") {
		t.Errorf("an optional right that is missing: %v", err)
	}
	fake.denies = "secrets"
	fake.fails = true
	if err := examined(t, fake, s)["image node1"]; err == nil || !strings.Contains(err.Error(), "Evicted") {
		t.Errorf("pods that fail: %v", err)
	}
	fake.lacks = "bench"
	found = examined(t, fake, s)
	if err := found["namespace bench"]; err == nil || !strings.Contains(err.Error(), "`kubectl create namespace bench`; without -n, each study creates its own") {
		t.Errorf("a namespace that does not exist: %v", err)
	}
	if _, tried := found["image node1"]; tried || found["pods pods"] == nil {
		t.Errorf("pods are tried in a namespace that does not exist: %v", found)
	}
	fake.lacks, s.Image = "", ""
	found = examined(t, fake, s)
	if err := found["pods pods"]; err == nil || !strings.Contains(err.Error(), "--tare-image") || slices.Contains([]error{nil}, found["permission secrets"]) {
		t.Errorf("without an image: %v", found)
	}
}

// TestExamineVMs: doctor says what is missing of KubeVirt, in the words of its webhook, and no machine stays.
func TestExamineVMs(t *testing.T) {
	fake, where := newFake(t)
	s := &Site{Namespace: "bench"}
	if err := s.Reach(where); err != nil {
		t.Fatal(err)
	}
	if err, ok := examined(t, fake, s)["KubeVirt none"]; !ok || err != nil {
		t.Errorf("no KubeVirt is a problem: %v", err)
	}
	fake.vms = "unsupported architecture: "
	found := examined(t, fake, s)
	if err := found["KubeVirt admission"]; err == nil || !strings.Contains(err.Error(), "unsupported architecture") {
		t.Errorf("a machine that is refused: %v", err)
	}
	if err := found["KubeVirt nodes"]; err == nil || !strings.Contains(err.Error(), "2 of 2 nodes: no label kubevirt.io/schedulable=true") {
		t.Errorf("nodes without virt-handler: %v", err)
	}
	fake.vms = admits
	if found := examined(t, fake, s); found["KubeVirt admission"] != nil || found["KubeVirt version"] != nil {
		t.Errorf("a machine that is admitted: %v", found)
	}
}

// TestLeftOut: a node that takes no part has a reason.
func TestLeftOut(t *testing.T) {
	for want, change := range map[string]func(*corev1.Node){
		"":          func(*corev1.Node) {},
		"cordoned":  func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"not ready": func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
		"simulated": func(n *corev1.Node) { n.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"} },
		"taint a":   func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}} },
	} {
		n := node("n")
		if change(&n); leftOut(&n) != want {
			t.Errorf("%q: %q", want, leftOut(&n))
		}
	}
}

// TestSkew: a difference has a direction, and a bound.
func TestSkew(t *testing.T) {
	if got := skew(-1500*time.Millisecond, 2*time.Millisecond); got != "1.5s behind this machine's clock, ± 2ms" {
		t.Error(got)
	}
}

// TestSameHandler: two classes with one handler are one runtime. Nothing is claimed about the default class.
func TestSameHandler(t *testing.T) {
	s := &Site{}
	s.classes = []pod.Class{{Name: "process"}, {Name: "runc", Class: "runc", Handler: "runc"}, {Name: "plain", Class: "plain", Handler: "runc"}, {Name: "gvisor", Class: "gvisor", Handler: "runsc"}}
	for i, want := range []string{"", "; the same runtime as plain, so a comparison of them shows only noise", "; the same runtime as runc, so a comparison of them shows only noise", ""} {
		if got := s.sameHandler(s.classes[i]); got != want {
			t.Errorf("%s: %q, want %q", s.classes[i].Name, got, want)
		}
	}
}
