package plot

import (
	"slices"

	"tare/ordered"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// The overview's x axis, and how much it holds.
const (
	factorWhat = "workload and response"
	manyRows   = 16 // more are a heat map
	mostRows   = 48 // more are not read
)

// chosen is what is drawn when no factor was named: an overview of all costs, and
// for each workload its responses over the first factor with numbers.
func (b *builder) chosen(items []item) []Figure {
	out := b.overview(items)
	var workloads ordered.Groups[string, item]
	for _, it := range items {
		workloads.Add(it.Workload, it)
	}
	for w, of := range workloads.All() {
		figs, err := b.figures(of, b.by(w))
		if err != nil {
			b.notes = append(b.notes, w+": "+err.Error())
		}
		out = append(out, figs...)
	}
	return out
}

// by chooses factors for a workload: x is the first with more than two numbers,
// colour the compared one, hatching the next that varies.
func (b *builder) by(workload string) []string {
	compare := b.src.Result.Compare
	var x string
	var rest []string
	for _, f := range b.factors {
		if b.varied[workload][f] < 2 || f == compare || f == study.FactorWorkload {
			continue
		}
		if x == "" && count(numbers(b.levels[f])) > 2 {
			x = f
			continue
		}
		rest = append(rest, f)
	}
	switch {
	case x == "" && len(rest) > 0:
		x, rest = rest[0], rest[1:]
	case x == "":
		return []string{compare} // a bar for each treatment
	}
	out := []string{x, compare}
	if len(rest) > 0 && len(b.levels[rest[0]]) <= mostDashed && len(b.levels[compare]) <= leastColours {
		out = append(out, rest[0])
	}
	return out
}

// overview is one figure of all costs, when there are not too many.
func (b *builder) overview(items []item) []Figure {
	if b.opt.Value == Level {
		return nil
	}
	fixed := shared(items)
	rows := []item{}
	var order, columns []string
	seen := make(map[string]bool)
	for _, it := range items {
		row := words.Stratum(b.src.Result, it.Workload, it.Shared, fixed) + "\n" + it.Response.Name
		column := b.treatment(it)
		for _, s := range []struct {
			text string
			list *[]string
		}{{row, &order}, {column, &columns}} {
			if !seen[s.text] {
				seen[s.text] = true
				*s.list = append(*s.list, s.text)
			}
		}
		rows = append(rows, item{it.Comparison, record.Cell{{Factor: factorWhat, Value: row}, {Factor: b.src.Result.Compare, Value: column}}})
	}
	if len(order) < 2 || len(order) > mostRows {
		return nil
	}
	f := Figure{Kind: b.opt.Kind, Value: Cost, Fixed: fixed}
	by := []string{factorWhat, b.src.Result.Compare}
	if f.Kind == "" && len(order) > manyRows {
		f.Kind, by = Heat, []string{b.src.Result.Compare, factorWhat}
	} else if f.Kind == "" {
		f.Kind = Bar
	}
	o := *b // its pseudo-factors have levels of their own
	o.levels = map[string][]string{factorWhat: order, b.src.Result.Compare: append(slices.Clone(b.levels[b.src.Result.Compare]), columns...)}
	o.fill(&f, rows, by)
	f.X.Numbers = nil
	return []Figure{f}
}

// treatment is what a cell is called beside the others of its stratum.
func (b *builder) treatment(it item) string {
	for _, t := range b.src.Result.Treatments {
		if t.Key == it.Treatment {
			return words.Treatment(b.src.Result, t.Cell)
		}
	}
	return it.Treatment
}

// shared are the levels that all items have in common.
func shared(items []item) record.Cell {
	return words.Fixed(items, func(x *item) record.Cell { return x.Shared })
}
