package study

import (
	"slices"

	"tare/param"
	"tare/record"
)

// MostCopies bounds the factor copies.
const MostCopies = 64

// Levels of the factor copies-on: one host or node, or several nodes.
const (
	copiesOnOne  = "one"
	CopiesSpread = "spread"
)

// Spread is how many copies of a cell are to be on different nodes, as far as there are as many; 1: it has one copy, or all of them
// are on one node.
func Spread(cell record.Cell) int {
	if on, _ := cell.Get(FactorCopiesOn); on != CopiesSpread {
		return 1
	}
	if n, ok := cell.Get(FactorCopies); ok {
		return max(1, param.Values{"": n}.Int(""))
	}
	return 1
}

// copiesOn refuses the factor copies-on of a study that has no copies to place.
func (d *draft) copiesOn() {
	on, has := d.index[FactorCopiesOn]
	if _, copies := d.index[FactorCopies]; has && !copies {
		d.bad(d.factors[on].at, "add the factor copies: [1, 2], or remove "+FactorCopiesOn, "%s places copies, and the study has none", FactorCopiesOn)
	}
}

// responsesIn are the workload's responses with parameters and, where one of the cells says how many
// copies there are, those of the first copy behind them.
func (i WorkloadInfo) responsesIn(v param.Values, cells ...record.Cell) []record.Response {
	if i.Responses == nil {
		return nil
	}
	all := i.Responses(v)
	if copiesIn(cells) == "" {
		return all
	}
	return slices.Concat(all, record.First(all))
}

// copiesIn is the last level of the factor copies in cells, "" if none has it.
func copiesIn(cells []record.Cell) string {
	out := ""
	for _, c := range cells {
		if l, ok := c.Get(FactorCopies); ok {
			out = l
		}
	}
	return out
}

// copiesOf has a level of the factor copies where a workload has any.
func (d *draft) copiesOf(w *load) record.Cell {
	i, ok := d.index[FactorCopies]
	if !ok {
		return nil
	}
	if levels := d.levelsFor(w, i); len(levels) > 0 {
		return record.Cell{{Factor: FactorCopies, Value: levels[0]}}
	}
	return nil
}
