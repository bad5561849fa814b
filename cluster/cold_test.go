package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tare/catalogue"
	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/trial"
	"tare/workload"
	workloadall "tare/workload/all"
)

// coldPlace returns a place with two nodes. Its registry has n copies of tare's image and of the image node.
func coldPlace(t *testing.T, n int) (*kubelets, place, []string) {
	t.Helper()
	k, p := newKubelets(t, record.Node{Name: "a", Host: record.Host{Arch: "amd64"}}, record.Node{Name: "b", Host: record.Host{Arch: "amd64"}})
	var refs []string
	for i := range n {
		refs = append(refs, fmt.Sprintf("r/tare@sha256:%d", i))
	}
	of := map[string][]string{"amd64": refs}
	p.images = map[string]Image{"node": {Copies: of}, "ruby": {}}
	p.cold = &copies{api: p.claims.api, study: p.claims.study, of: map[string]map[string][]string{"": of, "node": of}, left: map[imageOn]*unused{}}
	return k, p, refs
}

// TestCopies: each node gets each copy of each image once, except the copies that it already has. The look pods are gone afterwards.
func TestCopies(t *testing.T) {
	const n = looksAtOnce + 5
	k, p, refs := coldPlace(t, n)
	k.have = func(node, image string) bool { return node == "b" && image != refs[2] && image != refs[n-1] }
	for _, img := range []string{"", "node"} {
		for node, want := range map[string][]string{"a": refs, "b": {refs[2], refs[n-1]}} {
			var got []string
			for range want {
				ref, err := p.Copy(t.Context(), img, node)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, ref)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q on %s: %q, want %q", img, node, got, want)
			}
			if ref, err := p.Copy(t.Context(), img, node); err == nil || !strings.Contains(err.Error(), "has pulled all 105 copies") || !strings.Contains(err.Error(), "--cold 210") {
				t.Errorf("one too many: %q, %v", ref, err)
			}
		}
	}
	if len(k.pods) != 0 || k.made != 8 {
		t.Errorf("%d pods are left of %d", len(k.pods), k.made)
	}
	k, p, _ = coldPlace(t, 2)
	k.full, k.have = "a", func(string, string) bool { return false }
	k.unanswered = true
	if _, err := p.Copy(t.Context(), "", "a"); err == nil || !strings.Contains(err.Error(), "Too many pods") || len(k.pods) != 0 {
		t.Errorf("a node without room: %v, %d pods", err, len(k.pods))
	}
}

// TestCopiesCheck: a cell is refused if a trial has too few copies, and the message says what to push. Without cold starts, there is no check.
func TestCopiesCheck(t *testing.T) {
	_, p, _ := coldPlace(t, 4)
	for _, c := range []struct {
		image string
		cold  int
		want  string // "": it can
	}{
		{"", 0, ""}, {"", 4, ""}, {"node", 4, ""}, {"ruby", 0, ""},
		{"", 6, "tare's image has 4 copies for the node a, but a trial needs 6; push it with `tare image push tare REFERENCE --cold 6`"},
		{"ruby", 2, "no copies of the image ruby for the node"},
	} {
		err := p.Check(trial.Demand{Image: c.image, Cold: c.cold})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestLookPod: a look pod needs no privilege, and must not pull.
func TestLookPod(t *testing.T) {
	_, p, refs := coldPlace(t, 2)
	look := p.cold.study.Look("t1-look-1", "a", refs)
	if len(look.Spec.Containers) != 2 || look.Spec.NodeSelector[corev1.LabelHostname] != "a" || *look.Spec.ActiveDeadlineSeconds <= 0 || len(look.OwnerReferences) != 1 {
		t.Errorf("%+v", look.Spec)
	}
	for _, c := range look.Spec.Containers {
		if c.ImagePullPolicy != corev1.PullNever || *c.SecurityContext.AllowPrivilegeEscalation || len(c.SecurityContext.Capabilities.Drop) != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// TestCopiesNeed: a study says how many copies its cold cells use in a pass. Warm cells count nothing.
func TestCopiesNeed(t *testing.T) {
	_, p, _ := coldPlace(t, 60)
	loads := map[string]workload.Workload{}
	for _, w := range workloadall.Workloads() {
		loads[w.Name()] = w
	}
	need := func(text string) []string {
		t.Helper()
		s := &Site{classes: []pod.Class{{Name: sandbox.Native}, {Name: "gvisor", Class: "gvisor"}}}
		cat := catalogue.Of(workloadall.Workloads(), s.Kinds(), nil)
		st, err := study.Parse("s.yaml", []byte("study: s\nfactors: {sandbox: [process, gvisor]}\nworkloads:\n  start: "+text+"\n"), cat, nil)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := p.cold.need(&trial.Maker{Study: st, Catalogue: cat, Workloads: loads}, p.at)
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	if got := need("{kind: startup}"); len(got) != 0 {
		t.Errorf("warm: %q", got)
	}
	got := need("{kind: startup, image: cold, repeats: 3, burst: 2}")
	if len(got) != 1 || !strings.Contains(got[0], "uses 24 copies of tare's image") || !strings.Contains(got[0], "the registry has 60") {
		t.Errorf("%q", got)
	}
	if got := need("{kind: startup, image: cold, repeats: 1, program: node}"); len(got) != 1 || !strings.Contains(got[0], "uses 4 copies of the image node") {
		t.Errorf("%q", got)
	}
}
