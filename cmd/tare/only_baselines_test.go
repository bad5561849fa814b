package main

import (
	"testing"

	"tare/record"
	"tare/study"
)

// TestOnlyBaselines: a run that could compare nothing is no success, and one that was
// asked to compare nothing is. A run that has no baseline anywhere does not start.
func TestOnlyBaselines(t *testing.T) {
	cell := func(sandbox, size string) record.Cell {
		return record.Cell{{Factor: "sandbox", Value: sandbox}, {Factor: "size", Value: size}}
	}
	compared := &study.Study{Strata: []study.Stratum{
		{Baseline: 0, Cells: []record.Cell{cell("process", "1"), cell("vm", "1")}},
		{Baseline: 1, Cells: []record.Cell{cell("vm", "2"), cell("process", "2")}},
	}}
	alone := &study.Study{Strata: []study.Stratum{{Baseline: 0, Cells: []record.Cell{cell("process", "1")}}}}
	skip := func(cells ...record.Cell) (out []record.Skip) {
		for _, c := range cells {
			out = append(out, record.Skip{Cell: c, Reason: "no vm here"})
		}
		return out
	}
	for name, c := range map[string]struct {
		st    *study.Study
		skips []record.Skip
		want  bool
		lost  bool // all baselines are
	}{
		"all that is compared": {compared, skip(cell("vm", "1"), cell("vm", "2")), true, false},
		"one of two":           {compared, skip(cell("vm", "1")), false, false},
		"the baselines":        {compared, skip(cell("process", "1"), cell("process", "2")), false, true},
		"one of the baselines": {compared, skip(cell("process", "1")), false, false},
		"nothing":              {compared, nil, false, false},
		"nothing to compare":   {alone, nil, false, false},
		"alone and skipped":    {alone, skip(cell("process", "1")), false, false},
	} {
		if got := onlyBaselines(c.st, c.skips); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if why := withoutBaselines(c.st, c.skips); (why != nil) != c.lost || c.lost && why.Reason != "no vm here" {
			t.Errorf("%s: %v is why no baseline is left", name, why)
		}
	}
}
