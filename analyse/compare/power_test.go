package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tare/record"
)

// equal measures a study twice on machines that scatter like this, with so many blocks; all
// costs of B are by this factor those of A.
func equal(seed uint64, noise float64, blocks int, factor float64) (a, b Folder) {
	sc := scenery{noise: noise, second: 1, strata: 5, treats: 2}
	r := rand.New(rand.NewPCG(seed, 1))
	tr := sc.truth(r, true)
	out := [2]Folder{}
	for i := range out {
		st := makeStudy(sc.strata, sc.treats)
		st.Stop.Fixed = blocks
		for j := range tr.change {
			for k := range tr.change[j] {
				tr.change[j][k] = float64(count(k > 0)) * math.Log(factor)
			}
		}
		out[i] = Folder{Name: string(rune('A' + i)), Study: st, Trials: sc.measure(r, tr, st, i == 1)}
	}
	return out[0], out[1]
}

func doubts(t *testing.T, res *Result, a, b Folder, text string, power float64) []Doubt {
	t.Helper()
	g, err := NewGate("--gate", text, a.Study, b.Study)
	if err != nil {
		t.Fatal(err)
	}
	br, err := res.Check([]*Gate{g})
	if err != nil {
		t.Fatal(err)
	}
	d, err := res.Unjudged([]*Gate{g}, br, power)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestNoisyGate: what is too noisy to tell 5 % is not held, and so many blocks as it
// says then do.
func TestNoisyGate(t *testing.T) {
	a, b := equal(1, 0.08, 4, 1)
	res := mustCompare(t, a, b, Options{Question: Cost})
	for _, gate := range []string{"worse than 5%", "surely worse than 5%", "changed and worse > 1.05", "not (worse < 1.05) and changed", `changed and verdict == "worse"`} {
		got := doubts(t, res, a, b, gate, 0.8)
		if len(got) < 8 {
			t.Errorf("%s: %d of %d rows cannot be judged, want nearly all", gate, len(got), len(res.Rows))
		}
		widths := 0
		for _, d := range got {
			want := 1.05
			if strings.Contains(gate, "verdict") {
				want = 1.03 // the margin
			}
			r := &res.Rows[d.Row]
			if large := math.Abs(math.Log(r.A.Cost.Ratio)) > 0.5; large && d.Width > 0 {
				t.Errorf("%s: a cost of %.3g is narrow enough without width %g", gate, r.A.Cost.Ratio, d.Width)
			}
			widths += count(d.Width > 0)
			if math.Abs(d.Limit-want) > 1e-6 || d.Power <= 0 || d.Power >= 0.8 || d.Blocks <= 4 {
				t.Errorf("%s: %+v", gate, d)
			}
		}
		if widths == 0 && !strings.Contains(gate, "verdict") {
			t.Errorf("%s: no row has a width", gate)
		}
	}
	if got := doubts(t, res, a, b, "worse than 50%", 0.8); len(got) > 0 {
		t.Errorf("50 %% cannot be judged: %+v", got)
	}
	if got := doubts(t, res, a, b, "worse than 5%", 0); len(got) > 0 {
		t.Errorf("without a wanted power: %+v", got)
	}
	need := 0.0
	all := doubts(t, res, a, b, "worse than 5%", 0.8)
	for _, d := range all {
		need += float64(d.Blocks) / float64(len(all))
	}
	a, b = equal(2, 0.08, int(1.3*need), 1)
	if got := doubts(t, mustCompare(t, a, b, Options{Question: Cost}), a, b, "worse than 5%", 0.8); len(got) > 1 {
		t.Errorf("with %d blocks %d rows cannot be judged: %+v", int(1.3*need), len(got), got)
	}
}

// TestGatesThatAskNoRatio: what a gate does not ask for cannot be in doubt.
func TestGatesThatAskNoRatio(t *testing.T) {
	a, b := equal(3, 0.08, 4, 1)
	for i := range b.Trials {
		if x := &b.Trials[i]; x.Cell.Key() == "workload=w3,sandbox=box1" {
			x.Status, x.Failure, x.Samples = record.Failed, &record.Failure{Phase: "run", Kind: "died", Reason: "it died"}, nil
		}
	}
	skip := record.Skip{Cell: record.Cell{{Factor: "workload", Value: "w1"}, {Factor: "sandbox", Value: "box2"}}, Reason: "no KVM"}
	for _, f := range []*Folder{&a, &b} {
		f.Skips = []record.Skip{skip}
		var kept []record.Trial
		for _, x := range f.Trials {
			if x.Cell.Key() != skip.Cell.Key() {
				kept = append(kept, x)
			}
		}
		f.Trials = kept
	}
	res := mustCompare(t, a, b, Options{Question: Cost})
	for _, gate := range []string{"missing", "failed_b > failed_a", `verdict == "undecided" and worse_hi > 3`, `only_in != ""`, "n_a < 2"} {
		if got := doubts(t, res, a, b, gate, 0.8); len(got) > 0 {
			t.Errorf("%s: %+v", gate, got)
		}
	}
	// What failed on one side alone is in doubt, whatever the power; what both skip is not.
	if got := doubts(t, res, a, b, "worse than 300%", 0); len(got) != 1 || res.Rows[got[0].Row].Cell.Key() != "workload=w3,sandbox=box1" || !strings.Contains(got[0].Why, "B: ") {
		t.Errorf("a cell that failed in B: %+v", got)
	}
	if got := doubts(t, res, a, b, `worse > 4 and workload == "w2"`, 0.8); len(got) > 0 {
		t.Errorf("another workload: %+v", got)
	}
}

// TestPower: rows are found changed as often as the gate says that they would be.
func TestPower(t *testing.T) {
	said, found, n := 0.0, 0, 0
	for seed := range uint64(40) {
		a, b := equal(seed, 0.03, 5, 1.08)
		res := mustCompare(t, a, b, Options{Question: Cost})
		for i := range res.Rows {
			r := &res.Rows[i]
			found += count(r.Cost.Changed)
			n++
			tr := trial{res: res, row: r}
			said += tr.powerAt(1.08, r.Cost.SE, r.Cost.DF, r.Cost.N)
		}
	}
	if s, f := said/float64(n), float64(found)/float64(n); math.Abs(s-f) > 0.08 || f < 0.3 || f > 0.97 {
		t.Errorf("said %.2f, found %.2f", s, f)
	} else {
		t.Logf("said %.2f, found %.2f", s, f)
	}
}

// TestNoisyCall: a change that many noisy blocks show is called; one that few show is
// not, and no gate counts on it.
func TestNoisyCall(t *testing.T) {
	for blocks, want := range map[int]bool{4: false, 12: true} {
		a, b := equal(5, 0.12, blocks, 1.5)
		res := mustCompare(t, a, b, Options{Question: Cost})
		for i := range res.Rows {
			c, row := res.Rows[i].Cost, trial{res: res, row: &res.Rows[i]}
			if got := row.powerAt(2, c.SE, c.DF, c.N) > 0; c.Changed != want || got != want || strings.Contains(c.Why, "holds 1") != (c.Lo < 1) {
				t.Errorf("%d blocks, %s: %+v, power for twice %v", blocks, res.Rows[i].Cell, c, got)
			}
		}
	}
}
