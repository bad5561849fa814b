package summary

import (
	"fmt"
	"slices"

	"tare/analyse/stat"
	"tare/record"
)

// part is one stratum's share of a cell.
type part struct {
	alone  stat.Estimate // where it is the only one
	inMean stat.Estimate // in a mean over several: see stat.Rule.Part
}

// cells computes all cells, the columns in this order.
func (b *builder) cells(order []int) {
	for _, x := range b.rows {
		for _, c := range order {
			var in []entry
			if c < len(x.in) {
				in = x.in[c]
			}
			cell, parts := b.gather(x, in, b.expected(x, c, in))
			x.Cells = append(x.Cells, cell)
			if !x.Baseline {
				b.finish(&x.Cells[len(x.Cells)-1], parts)
			}
		}
	}
}

// expected is how many strata the study has for a cell.
func (b *builder) expected(x *row, column int, in []entry) int {
	if x.Mean || len(in) == 0 {
		return b.columns[column].Combinations
	}
	return b.strata[column][b.levels(in[0].s.Shared).Key()]
}

// gather picks the strata that a cell is over. It is finished already when the row
// is the baseline's.
func (b *builder) gather(x *row, in []entry, combinations int) (Cell, []part) {
	var out Cell
	if len(in) == 0 {
		out.Why = "the study has no such cell"
		return out, nil
	}
	absent, rows := b.missing(in)
	if x.Mean {
		out.Rows = rows
		out.Fewer = rows < x.Of
	}
	var parts []part
	var values []float64
	var why string
	most := 0
	for _, e := range in {
		most = max(most, len(e.readings))
	}
	for _, e := range in {
		list := slices.DeleteFunc(slices.Clone(e.readings), func(r Reading) bool { return absent[treatment(e.s, &r)] })
		out.Fewer = out.Fewer || len(list) < most
		bad := slices.IndexFunc(e.readings, func(r Reading) bool { return r.Missing != "" })
		if bad >= 0 && why == "" {
			why = e.readings[bad].Missing
		}
		switch {
		case len(list) == 0, slices.ContainsFunc(list, func(r Reading) bool { return r.Missing != "" }):
		case x.Baseline:
			values = append(values, list[0].Value)
			out.Estimate.N += list[0].N
		case len(list) == 1:
			parts = append(parts, part{alone: list[0].Estimate, inMean: list[0].Part})
		default:
			cells := make([]record.Cell, len(list))
			for i := range list {
				cells[i] = list[i].Cell
			}
			if sum := b.values(e.s.Base.Cell, cells, b.response.Name); sum.Undefined == "" {
				parts = append(parts, part{alone: b.rule.Estimate(sum, e.s.Prior), inMean: b.rule.Part(sum, e.s.Prior)})
			} else if why == "" {
				why = sum.Undefined
			}
		}
	}
	out.Combinations = len(parts) + len(values)
	out.Fewer = out.Combinations > 0 && (out.Fewer || out.Combinations < combinations)
	switch {
	case out.Combinations == 0:
		out.Why = why
	case x.Baseline:
		out.Estimate.Value = stat.GeoMean(values)
		out.Estimate.Base = out.Estimate.Value
	}
	return out, parts
}

// finish combines the strata into the cell's ratio and judges it.
func (b *builder) finish(c *Cell, parts []part) {
	if len(parts) == 0 {
		return
	}
	estimates := make([]stat.Estimate, len(parts))
	short := 0
	for i, p := range parts {
		if estimates[i] = p.inMean; len(parts) == 1 {
			estimates[i] = p.alone
		}
		if !estimates[i].HasInterval() {
			short++
		}
	}
	c.Estimate = stat.Combine(estimates)
	c.Verdict, c.Why = b.rule.Judge(c.Estimate, b.response.Better)
	c.Estimate.Bound = b.rule.Bound(c.Estimate, b.response.Better, c.Verdict)
	if short > 0 && len(parts) > 1 {
		c.Why = fmt.Sprintf("%d of %d combinations have fewer than %d blocks with values of both", short, len(parts), stat.MinN)
	}
}

// treatment tells the readings of one stratum apart.
func treatment(s *Stratum, r *Reading) string {
	var out record.Cell
	for _, l := range r.Cell {
		if _, ok := s.Shared.Get(l.Factor); !ok {
			out = append(out, l)
		}
	}
	return out.Key()
}

// missing are the treatments that have no value in any of the strata, such as a
// sandbox that this host cannot run: a mean is over the others. rows counts the
// combinations of the row factors' levels that have a value.
func (b *builder) missing(in []entry) (absent map[string]bool, rows int) {
	absent = make(map[string]bool)
	have, found := make(map[string]bool), make(map[string]bool)
	for _, e := range in {
		for i := range e.readings {
			r := &e.readings[i]
			t := treatment(e.s, r)
			if absent[t] = !have[t] && r.Missing != ""; r.Missing == "" {
				have[t] = true
				found[b.levels(r.Cell).Key()] = true
			}
		}
	}
	return absent, len(found)
}
