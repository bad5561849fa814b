package study

import (
	"slices"

	"tare/param"
	"tare/record"
)

// MostCopies bounds the factor copies.
const MostCopies = 64

// responsesIn are the workload's responses with parameters and, where one of the cells says how many
// copies there are, those of the first copy behind them.
func (i WorkloadInfo) responsesIn(v param.Values, cells ...record.Cell) []record.Response {
	all := i.Responses(v)
	if copiesIn(cells) == "" {
		return all
	}
	return slices.Concat(all, record.First(all))
}

// ResponsesOf are the responses of a study's workload, as WorkloadOf returns it; v are its parameters.
func (i WorkloadInfo) ResponsesOf(w Workload, v param.Values) []record.Response {
	return i.responsesIn(v, record.Cell{{Factor: FactorCopies, Value: w.Params[FactorCopies]}})
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
