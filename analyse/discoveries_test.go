package analyse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// manyRows analyses a study of n strata of equal things, the last of which is
// twice as slow, with five blocks and one look.
func manyRows(t *testing.T, n int) *Result {
	t.Helper()
	st := &study.Study{Name: "many", Compare: "sandbox", Baseline: "process",
		Stop: study.Stop{Fixed: 5, Confidence: 0.95, Width: 0.05, Margin: 0.001}}
	var trials []record.Trial
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		w := fmt.Sprintf("w%03d", i)
		l := record.Level{Factor: "workload", Value: w}
		s := study.Stratum{Key: record.Cell{l}.Key(), Shared: record.Cell{l}, Workload: i}
		st.Workloads = append(st.Workloads, study.Workload{Label: w, Kind: "net", Responses: []string{"p50"}})
		for _, b := range []string{"process", "runc"} {
			s.Cells = append(s.Cells, record.Cell{l, {Factor: "sandbox", Value: b}})
		}
		st.Strata = append(st.Strata, s)
		for block := 1; block <= 5; block++ {
			for j, c := range s.Cells {
				v := math.Exp(0.05 * r.NormFloat64())
				if j == 1 && i == n-1 {
					v *= 2
				}
				trials = append(trials, record.Trial{Seq: len(trials) + 1, Block: block, Attempt: 1, Cell: c, Status: record.OK,
					Samples: []record.Sample{{Name: "p50", Unit: record.Second, Value: v}}})
			}
		}
	}
	return Analyse(st, trials, nil, Describe(describe))
}

// TestDiscoveries holds p, q and the counts against the definition of Benjamini
// and Hochberg, worked out here: q of a row is the least m·p(k)/k over all rows
// with a p at least as large.
func TestDiscoveries(t *testing.T) {
	r := manyRows(t, 120)
	rule := stat.NewRule(0.95, 0.05, 0.001, nil, 5)
	var p []float64
	for i := range r.Compared {
		switch c := &r.Compared[i]; {
		case c.Baseline && (c.P != nil || c.Q != nil):
			t.Errorf("the baseline has a p: %v", c)
		case !c.Baseline:
			if c.P == nil || c.Q == nil || *c.P != rule.P(c.Estimate) {
				t.Fatalf("%s: p is %v", c.Stratum, c.P)
			}
			p = append(p, *c.P)
		}
	}
	slices.Sort(p)
	called, hold := 0, 0
	for i := range r.Compared {
		c := &r.Compared[i]
		if c.Baseline {
			continue
		}
		q := 1.0
		for k, x := range p {
			if x >= *c.P {
				q = min(q, x*float64(len(p))/float64(k+1))
			}
		}
		if math.Abs(q-*c.Q) > 1e-12 {
			t.Errorf("%s: q is %g, want %g", c.Stratum, *c.Q, q)
		}
		if c.Estimate.Lo > 1 || c.Estimate.Hi < 1 { // no row can be within a margin this narrow
			called++
			if q <= 0.05 {
				hold++
			}
			if c.Doubtful() != (q > 0.05) {
				t.Errorf("%s: q is %g, doubtful: %v", c.Stratum, q, c.Doubtful())
			}
		}
	}
	if want := (Discoveries{Rate: 0.05, Rows: 120, Called: called, Hold: hold}); r.Discoveries == nil || *r.Discoveries != want {
		t.Errorf("discoveries are %+v, want %+v", r.Discoveries, want)
	}
	if last := r.Compared[len(r.Compared)-1]; called < 2 || hold < 1 || hold == called || last.Doubtful() {
		t.Errorf("%d called, %d hold; the row that is twice as slow: q = %g; the test needs some that do not hold", called, hold, *last.Q)
	}
}

// TestDiscoveriesAllowForLooks: with looks, p is the rule's, which is larger than
// that of the estimate by itself.
func TestDiscoveriesAllowForLooks(t *testing.T) {
	st := makeStudy()
	r := Analyse(st, play(st, nil, outcome), nil, Describe(describe))
	rule := plan.Rule(st)
	tested := 0
	for i := range r.Compared {
		c := &r.Compared[i]
		if (c.P == nil) == c.Estimate.HasInterval() {
			t.Errorf("%s %s: p is %v, estimate %+v", c.Cell.Key(), c.Response.Name, c.P, c.Estimate)
		}
		if c.P == nil {
			continue
		}
		if *c.P != rule.P(c.Estimate) || *c.P < c.Estimate.P() {
			t.Errorf("p is %g, the rule's is %g, without looks %g", *c.P, rule.P(c.Estimate), c.Estimate.P())
		}
		if *c.P > c.Estimate.P() {
			tested++
		}
	}
	if tested == 0 {
		t.Error("no row has a p that the looks change: nothing was tested")
	}
}
