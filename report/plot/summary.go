package plot

import (
	"fmt"
	"slices"
	"strings"

	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// fewer marks a cell of a summary table that is over fewer combinations than its
// column or row has.
const fewer = "†"

// tables draws the summary tables of the study as heat maps: they are of the whole
// study, so that there are none where only some levels are wanted.
func (b *builder) tables() []Figure {
	if len(b.opt.By) > 0 || len(b.opt.Only) > 0 || b.opt.Value == Level || b.opt.Kind != "" && b.opt.Kind != Heat {
		return nil
	}
	var out []Figure
	for i := range b.src.Result.Tables {
		t := &b.src.Result.Tables[i]
		if len(b.opt.Responses) > 0 && !slices.Contains(b.opt.Responses, t.Response.Name) {
			continue
		}
		out = append(out, b.table(t))
	}
	return out
}

func (b *builder) table(t *summary.Table) Figure {
	r := b.src.Result
	f := Figure{Summary: t.Name, Kind: Heat, Value: Cost, Response: t.Response, Fixed: t.Fixed.Without(study.FactorWorkload), Compare: r.Compare, Baseline: r.Baseline, Margin: r.Margin}
	f.Workload, _ = t.Fixed.Get(study.FactorWorkload)
	f.X = Axis{Factor: t.Column}
	for i, c := range t.Columns {
		f.X.Levels, f.X.Index = append(f.X.Levels, c.Level), append(f.X.Index, i)
		f.X.Names = append(f.X.Names, r.LevelName(record.Level{Factor: t.Column, Value: c.Level}))
	}
	if t.Column == "" {
		f.X.Factor, f.X.Levels, f.X.Names = FactorResponse, []string{t.Response.Name}, nil
	}
	f.Colour = Axis{Factor: strings.Join(t.Factors, ", ")}
	for i := range t.Rows {
		row := &t.Rows[i]
		name := words.Treatment(r, row.Cell)
		if row.Mean {
			name += fmt.Sprintf(": geometric mean of %d", row.Of)
		}
		f.Colour.Levels, f.Colour.Index = append(f.Colour.Levels, name), append(f.Colour.Index, i)
		for j := range row.Cells {
			m := cellMark(&row.Cells[j], row, t.Response)
			m.X, m.Colour = j, i
			f.Marks = append(f.Marks, m)
		}
	}
	slices.SortStableFunc(f.Marks, func(x, y Mark) int { return x.X - y.X })
	return f
}

// cellMark is a cell with its cost, and the value that the cost is of.
func cellMark(c *summary.Cell, row *summary.Row, response record.Response) Mark {
	e := &c.Estimate
	m := Mark{Cell: row.Cell, Response: response, N: e.N, Verdict: c.Verdict, Level: e.Value, Baseline: row.Baseline, Fewer: c.Fewer}
	m.Value, m.Lo, m.Hi = e.Cost(response.Better)
	switch {
	case c.Combinations == 0:
		m.Gap, m.Why = "no value", c.Why
	case row.Baseline:
		m.Value, m.Lo, m.Hi, m.Verdict = 1, 0, 0, ""
	case !(e.Ratio > 0):
		m.Gap, m.Why = "no ratio", c.Why
	case m.Verdict == "":
		m.Verdict = stat.Undecided
	}
	return m
}

// summaryText is what stands in such a cell: the value, and below it the cost.
func (m *Mark) summaryText(known bool) (value, cost string) {
	value = words.Value(m.Level, m.Response.Shown())
	if m.Fewer {
		value += fewer
	}
	if m.Baseline {
		return value, ""
	}
	cost = words.Times(m.Value)
	switch {
	case !known:
		cost += " ?"
	case m.Verdict == stat.Equivalent:
		cost += " ="
	}
	return value, cost
}

// describeTable writes the words of a summary table's figure.
func (b *builder) describeTable(f *Figure) {
	t := &b.src.Result.Tables[slices.IndexFunc(b.src.Result.Tables, func(t summary.Table) bool { return t.Name == f.Summary })]
	by := append(slices.Clone(t.Factors), t.Column)
	f.Title = fmt.Sprintf("%s: %s by %s", t.Name, t.Response.Name, words.List(slices.DeleteFunc(by, func(s string) bool { return s == "" })))
	var sub []string
	if len(t.Fixed) > 0 {
		sub = append(sub, words.Levels(b.src.Result, t.Fixed, ", "))
	}
	if t.Response.Better != record.Neither && t.Response.Better != "" {
		sub = append(sub, string(t.Response.Better)+" is better")
	}
	f.Subtitle = strings.Join(sub, "; ")
	parts := []string{"Value, and cost as a multiple of " + f.Baseline + "'s in the same column, which the colour is of"}
	if len(t.Over) > 0 {
		var over []string
		for _, l := range t.Over {
			over = append(over, l.Factor+" "+strings.Join(l.Levels, ", "))
		}
		parts = append(parts, "geometric means over "+strings.Join(over, ", over "))
	}
	if slices.ContainsFunc(f.Marks, func(m Mark) bool { return m.Fewer }) {
		parts = append(parts, fewer+": over fewer combinations than its column or row has")
	}
	f.Caption = b.withTail(f, parts)
	f.Alt = alt(f)
}
