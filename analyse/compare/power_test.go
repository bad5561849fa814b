package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tare/record"
	"tare/study"
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
	six, more := equal(1, 0.08, 6, 1)
	if got := doubts(t, mustCompare(t, six, more, Options{Question: Cost}), six, more, "worse than 50%", 0.8); len(got) > 0 {
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

// TestDoubtOfRate: both changes that a doubt tells are in the unit of the limit, as costs, also
// where a higher value is better and the ratio falls.
func TestDoubtOfRate(t *testing.T) {
	a, b := equal(1, 0.08, 4, 1)
	res := mustCompare(t, a, b, Options{Question: Cost, Describe: func(study.Workload) []record.Response {
		return []record.Response{{Name: "time", Unit: record.Second, Better: record.Higher}}
	}})
	got := doubts(t, res, a, b, "worse than 5%", 0.8)
	if len(got) == 0 {
		t.Fatal("no row is in doubt")
	}
	for _, d := range got {
		var limit, weak, breaks float64
		if _, err := fmt.Sscanf(d.Why, "the interval reaches the limit, %g, and a true change of %g", &limit, &weak); err != nil {
			t.Fatalf("%s: %v", d.Why, err)
		}
		_, last, _ := strings.Cut(d.Why, ", one of ")
		if _, err := fmt.Sscanf(last, "%g in 80", &breaks); err != nil {
			t.Fatalf("%s: %v", d.Why, err)
		}
		if limit != 1.05 || weak <= limit || breaks <= weak || d.Breaks >= 1 {
			t.Errorf("%s; breaks %g", d.Why, d.Breaks)
		}
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
			said += tr.powerAt(asked{limit: 1, changed: true}, 1.08, r.Cost.SE, r.Cost.DF, r.Cost.N)
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
		a, b := equal(5, 0.15, blocks, 1.5)
		res := mustCompare(t, a, b, Options{Question: Cost})
		for i := range res.Rows {
			c, row := res.Rows[i].Cost, trial{res: res, row: &res.Rows[i]}
			if got := row.powerAt(asked{limit: 1, changed: true}, 2, c.SE, c.DF, c.N) > 0; c.Changed != want || got != want || strings.Contains(c.Why, "holds 1") != (c.Lo < 1) {
				t.Errorf("%d blocks, %s: %+v, power for twice %v", blocks, res.Rows[i].Cell, c, got)
			}
		}
	}
}

// TestGatePower: as many rows break a gate as it says, for changes at and beyond its
// limit. A change of the limit's own size breaks it in half of the cases at most.
func TestGatePower(t *testing.T) {
	for _, c := range []struct {
		gate       string
		limit      float64
		a          asked
		noise, by  float64
		least, top float64
	}{
		{"worse than 5%", 1.05, asked{changed: true}, 0.01, 1.05, 0.4, 0.6},
		{"worse than 5%", 1.05, asked{changed: true}, 0.02, 1.0672, 0.6, 0.99},
		{"worse > 1.05", 1.05, asked{}, 0.04, 1.1, 0.7, 0.99},
		{"surely worse than 5%", 1.05, asked{changed: true, surely: true}, 0.02, 1.09, 0.4, 0.99},
	} {
		said, broke, n := 0.0, 0, 0
		for seed := range uint64(30) {
			a, b := equal(seed, c.noise, 8, c.by)
			res := mustCompare(t, a, b, Options{Question: Cost})
			g, err := NewGate("--gate", c.gate, a.Study, b.Study)
			if err != nil {
				t.Fatal(err)
			}
			br, err := res.Check([]*Gate{g})
			if err != nil {
				t.Fatal(err)
			}
			broke += len(br)
			n += len(res.Rows)
			for i := range res.Rows {
				x, tr := res.Rows[i].Cost, res.trial(g, i, 0.8, res.factors())
				asks := tr.asks(1e9)
				c.a.limit = asks.limit
				if asks != c.a || math.Abs(asks.limit-c.limit) > 1e-6 {
					t.Fatalf("%s asks %+v, want %+v", c.gate, asks, c.a)
				}
				said += tr.powerAt(asks, c.by, x.SE, x.DF, x.N)
			}
		}
		s, f := said/float64(n), float64(broke)/float64(n)
		t.Logf("%s, a true change of %g: said %.2f, broke %.2f", c.gate, c.by, s, f)
		if math.Abs(s-f) > 0.08 || f < c.least || f > c.top {
			t.Errorf("%s, a true change of %g: said %.2f, broke %.2f", c.gate, c.by, s, f)
		}
	}
}

// TestHeld: a gate that held says which change would have broken it, and it would have.
func TestHeld(t *testing.T) {
	a, b := equal(1, 0.02, 12, 1)
	res := mustCompare(t, a, b, Options{Question: Cost})
	var gates []*Gate
	for _, text := range []string{"worse than 5%", "changed", "missing"} {
		g, err := NewGate("--gate", text, a.Study, b.Study)
		if err != nil {
			t.Fatal(err)
		}
		gates = append(gates, g)
	}
	held, err := res.Promises(gates, nil, nil, 0.8)
	if err != nil || len(held) != 3 || held[0].Breaks < 1.055 || held[0].Breaks > 1.08 || held[1].Breaks < 1.03 || held[2].Breaks != 0 {
		t.Fatalf("%+v, %v", held, err)
	}
	if got, err := res.Promises(gates, []Breach{{Gate: "changed"}}, []Doubt{{Gate: "missing"}}, 0.8); err != nil || len(got) != 1 {
		t.Errorf("broken and doubted gates are not held: %+v, %v", got, err)
	}
	broke, n := 0, 0
	for seed := range uint64(10) {
		a, b := equal(100+seed, 0.02, 12, held[0].Breaks)
		br, err := mustCompare(t, a, b, Options{Question: Cost}).Check(gates[:1])
		if err != nil {
			t.Fatal(err)
		}
		broke, n = broke+len(br), n+10
	}
	if f := float64(broke) / float64(n); f < 0.75 {
		t.Errorf("a true change of %.4g broke %.2f", held[0].Breaks, f)
	}
}

// TestHiddenGate: a gate whose limit the margin hides is refused, and so never held in silence.
func TestHiddenGate(t *testing.T) {
	a, b := equal(1, 0.005, 8, 1.1)
	for text, margin := range map[string]float64{"worse than 5%": 0.2, "surely worse than 5%": 0.2, "changed and ratio > 1.02": 0.03, "changed and ratio < 0.95": 0.1} {
		res := mustCompare(t, a, b, Options{Question: Cost, Margin: &margin})
		g, err := NewGate("--gate", text, a.Study, b.Study)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := res.Check([]*Gate{g}); err == nil || !strings.Contains(err.Error(), "within the margin") {
			t.Errorf("%s with a margin of %g: %v", text, margin, err)
		}
	}
	for text, margin := range map[string]float64{"worse than 5%": 0.05, "changed": 0.2, "worse > 1.05": 0.2, "surely worse than 5%": 0.03, `verdict == "worse"`: 0.2, "missing": 0.5, "p < 0.01 and worse > 1.01": 0.2} {
		doubts(t, mustCompare(t, a, b, Options{Question: Cost, Margin: &margin}), a, b, text, 0)
	}
}
