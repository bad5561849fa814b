package analyse

import (
	"cmp"
	"slices"

	"tare/analyse/structural"
	"tare/ordered"
	"tare/record"
	"tare/study"
)

// shares says how much of each cost the system calls explain.
func (a *analysis) shares(r *Result) []structural.Share {
	var rows []structural.Row
	for i := range r.Compared {
		c := &r.Compared[i]
		if c.Baseline {
			continue
		}
		row := structural.Row{Workload: c.Workload, Kind: c.Kind, Stratum: c.Stratum, Shared: c.Shared, Treatment: c.Treatment,
			Cell: c.Cell, First: c.First, Response: c.Response, Estimate: c.Estimate}
		if o := c.Outcome(); o != HasRatio {
			row.Missing = cmp.Or(c.Why, string(o))
		}
		rows = append(rows, row)
	}
	return structural.Shares(a.study, rows, a.trials, a.skips)
}

// uncounted warns of strata whose counting trials failed, and of a study that would
// have had some.
func (a *analysis) uncounted(r *Result) {
	if why := a.study.Unpriced; why != "" {
		r.Warnings = append(r.Warnings, Warning{Code: "not-counted", Text: "system calls were not counted: " + why})
	}
	var reasons ordered.Groups[string, string]
	for i := range a.study.Strata {
		if why := a.plan.Uncounted(i); why != "" {
			reasons.Add(why, a.study.Strata[i].Counting.Key())
		}
	}
	for why, cells := range reasons.All() {
		r.Warnings = append(r.Warnings, Warning{Code: "not-counted", Text: "system calls were not counted: " + why, Cells: cells})
	}
}

// ofCells are the skips of cells that are compared, or would be.
func ofCells(skips []record.Skip) []record.Skip {
	if !slices.ContainsFunc(skips, func(s record.Skip) bool { return study.IsCounting(s.Cell) }) {
		return skips
	}
	return slices.DeleteFunc(slices.Clone(skips), func(s record.Skip) bool { return study.IsCounting(s.Cell) })
}
