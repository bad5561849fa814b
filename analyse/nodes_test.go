package analyse

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse/stat"
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

// TestBetweenNodes: what a node adds to its treatments' cost is told from the scatter within nodes,
// and a warning says where it is certain.
func TestBetweenNodes(t *testing.T) {
	for _, c := range []struct {
		nodes  []string
		spread float64 // of the nodes' ratios: standard deviation of the logarithm
	}{
		{[]string{"a", "b", "c", "d"}, 0},
		{[]string{"a", "b", "c", "d"}, 0.3},
		{[]string{"a", "b"}, 0.3},
	} {
		st := watchedStudy()
		st.Sentinel = nil
		r := rand.New(rand.NewPCG(5, 6))
		trials := play(st, nil, func(n plan.Next) record.Trial {
			x := outcome(n)
			at := float64(slices.Index(c.nodes, n.Node)) - float64(len(c.nodes)-1)/2
			box, _ := n.Cell.Get("sandbox")
			for i := range x.Samples {
				x.Samples[i].Value *= math.Exp(0.05 * r.NormFloat64())
				if box != "process" {
					x.Samples[i].Value *= math.Exp(c.spread * at)
				}
			}
			return x
		}, c.nodes...)
		res := Analyse(st, trials, nil, Describe(describe))
		if len(res.BetweenNodes) == 0 {
			t.Fatal("nothing is said of the nodes")
		}
		for _, n := range res.BetweenNodes {
			blocks := 0
			for _, x := range n.Ratios {
				blocks += x.Blocks
			}
			switch s := n.Share; {
			case len(n.Ratios) != len(c.nodes) || blocks != 24:
				t.Errorf("%v: %+v", c, n)
			case (s == nil) != (len(c.nodes) < stat.MinGroups):
				t.Errorf("%v: share %v", c, s)
			case s != nil && c.spread > 0 && (s.Share < 0.8 || s.Lo < 0.5), s != nil && c.spread == 0 && s.Lo > 0.3:
				t.Errorf("%v: %+v", c, *s)
			}
		}
		warned := slices.IndexFunc(res.Warnings, func(w Warning) bool { return w.Code == "node-ratio" })
		if (warned >= 0) != (c.spread > 0) {
			t.Errorf("%v: %+v", c, res.Warnings)
		}
		if warned >= 0 && !strings.Contains(res.Warnings[warned].Text, "differs between nodes in") {
			t.Error(res.Warnings[warned].Text)
		}
	}
}
