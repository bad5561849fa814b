package cause

import (
	"math"
	"testing"

	"tare/record"
)

// TestSuspectCell: a cell that looks much worse and of which nothing is decided is looked
// at like one that costs, with less confidence the fewer its trials; one that is near its
// baseline, or looks better, is not.
func TestSuspectCell(t *testing.T) {
	find := func(trials int, ratio float64, costs, undecided bool) Finding {
		t.Helper()
		r := new(Reader)
		// Latencies alike: no reading shows what the ratio says.
		strata := grid(r, 1, trials, 2, 0)
		s := &strata[0]
		s.Response.Better = record.Lower
		c := &s.Cells[1]
		c.Ratio, c.Costs, c.Undecided = &ratio, costs, undecided
		for _, f := range Build(0.95, r, strata) {
			if !f.Baseline {
				return f
			}
		}
		t.Fatal("no finding")
		return Finding{}
	}
	for _, n := range []int{1, 2, 6} {
		sure, open, near, better := find(n, 74, true, false), find(n, 74, false, true), find(n, 1.02, false, true), find(n, 0.29, false, true)
		if sure.Cause == None || open.Cause != sure.Cause || !open.Undecided || open.Costs {
			t.Errorf("%d trials: undecided %s %v, of a cost %s", n, open.Cause, open.Among, sure.Cause)
		}
		if want := sure.Confidence * unsure; !(sure.Confidence > 0) || math.Abs(open.Confidence-want) > 1e-9 {
			t.Errorf("%d trials: confidence %.3f, of a cost %.3f", n, open.Confidence, sure.Confidence)
		}
		if near.Cause != None || better.Cause != None || !near.Undecided {
			t.Errorf("%d trials: near the baseline %s, better %s", n, near.Cause, better.Cause)
		}
	}
}
