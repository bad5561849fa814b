package compare

import (
	"tare/analyse"
	"tare/analyse/stat"
)

// Beside makes of one result what gates judge: its baseline is side A, and each other
// treatment in its turn is side B. A row's change is the cost that the result itself has
// for it, with its interval and verdict.
func Beside(r *analyse.Result, name string) *Result {
	out := &Result{Study: r.Study, A: About{Name: r.Baseline}, B: About{Name: name, Study: r.Study, Trials: r.Trials, Failed: r.Failed, Finished: r.Finished},
		Compare: r.Compare, Baseline: r.Baseline, Question: Cost, Confidence: r.Confidence, Margin: r.Margin, FDR: analyse.DiscoveryRate, Modelled: r.Modelled}
	cells := make(map[string]*analyse.Treatment, len(r.Treatments))
	for i := range r.Treatments {
		cells[r.Treatments[i].Key] = &r.Treatments[i]
	}
	for i := range r.Compared {
		x := &r.Compared[i]
		if x.Baseline {
			continue
		}
		e, p := x.Estimate, costPart(x)
		c := &Change{N: e.N, SE: e.SE, DF: min(e.DF, 1e9), Verdict: x.Verdict, Why: x.Why, Changed: x.Called() && !x.Doubtful(), Undefined: p.undefined}
		if p.undefined == "" {
			c.Ratio = e.Ratio
		}
		if x.P != nil && x.Q != nil && e.HasInterval() && p.undefined == "" {
			c.Lo, c.Hi, c.P, c.Q = e.Lo, e.Hi, x.P, x.Q
		}
		row := Row{Workload: x.Workload, Shared: x.Shared, Cell: x.Cell, Response: x.Response, Question: Cost, Cost: c,
			A: &Measured{N: x.Base.N, Level: x.Base.Typical, Cost: stat.Estimate{Ratio: 1, N: e.N}},
			B: &Measured{N: x.Level.N, Level: x.Level.Typical, Cost: e, Failed: x.Failed, Skipped: x.Skipped, GaveUp: x.GaveUp}}
		if t := cells[x.Treatment]; t != nil {
			row.Treatment = t.Cell
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
