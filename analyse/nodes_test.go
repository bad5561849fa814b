package analyse

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/plan"
	"tare/record"
)

// onNodeB is a step that node b alone feels.
func onNodeB(by, more float64) func(plan.Next) record.Trial {
	step := onStep(by, more)
	return func(n plan.Next) record.Trial {
		seq := n.Seq
		if n.Node == "a" {
			n.Seq = min(n.Seq, stepSeq-1)
		}
		x := step(n)
		x.Seq = seq
		return x
	}
}

// TestNodes: of a study on two nodes, one of which changes, the result says what each had
// and whose the epochs are; the order of trials does not matter.
func TestNodes(t *testing.T) {
	st := watchedStudy()
	st.Stop.Fixed = 32
	trials := play(st, nil, onNodeB(1.2, 1), "a", "b")
	r := Analyse(st, trials, nil, Describe(describe))
	blocks := len(st.Strata) * 32
	if len(r.Nodes) != 2 || r.Nodes[0].Name != "a" || r.Nodes[0].Blocks != blocks/2 || r.Nodes[1].Blocks != blocks/2 || r.Nodes[0].Trials+r.Nodes[1].Trials != len(trials) {
		t.Errorf("%+v, want %d blocks on each", r.Nodes, blocks/2)
	}
	if len(r.Epochs) != 2 || r.Epochs[0].Node != "b" || r.Epochs[1].Node != "b" || math.Abs(r.Epochs[1].Ratio-1.2) > 0.02 || r.Sentinel.Again == 0 {
		t.Fatalf("%+v, %d blocks ran again", r.Epochs, r.Sentinel.Again)
	}
	if !slices.IsSortedFunc(r.Sentinel.Points, func(a, b SentinelPoint) int { return a.Seq - b.Seq }) {
		t.Error("points are not in the order of execution")
	}
	for _, p := range r.Sentinel.Points {
		if trials[p.Seq-1].Node != p.Node || p.Epoch != 1 && (p.Node != "b" || p.Seq < r.Epochs[1].Seq) {
			t.Errorf("%+v", p)
		}
	}
	other := slices.Clone(trials)
	slices.Reverse(other)
	if d := cmp.Diff(r, Analyse(st, other, nil, Describe(describe))); d != "" {
		t.Errorf("in another order: %s", d)
	}
}

// TestRatioDiffersOnANode: the warning is of the node that changed.
func TestRatioDiffersOnANode(t *testing.T) {
	st := watchedStudy()
	st.Stop.Fixed = 48
	trials := play(st, nil, onNodeB(1.2, 1.5), "a", "b")
	r := Analyse(st, trials, nil, Describe(describe))
	var texts []string
	for _, w := range r.Warnings {
		if w.Code == "epoch-ratio" {
			texts = append(texts, w.Text)
		}
	}
	if len(texts) != 1 || !strings.Contains(texts[0], "differs between epochs of node b in") {
		t.Errorf("%q", texts)
	}
}

// TestOneNodeSaysNothing: one node, with a name or without, leaves no trace in the result.
func TestOneNodeSaysNothing(t *testing.T) {
	st := watchedStudy()
	trials := play(st, nil, onStep(1.2, 1.5))
	want := Analyse(st, trials, nil, Describe(describe))
	for i := range trials {
		if i > len(trials)/3 { // an older tare had begun it
			trials[i].Node = "a"
		}
	}
	if d := cmp.Diff(want, Analyse(st, trials, nil, Describe(describe))); d != "" {
		t.Error(d)
	}
	if len(want.Epochs) < 2 {
		t.Error("want epochs to look at, have none")
	}
}
