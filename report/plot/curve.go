package plot

import (
	"fmt"
	"slices"
	"strings"

	"tare/analyse/merit"
	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// curves draws the tables of ratios to a factor's first level: the factor along x, and a line for each
// level of the last row factor. With the factor copies this is the neighbour curve.
func (b *builder) curves() []Figure {
	if len(b.opt.By) > 0 || len(b.opt.Only) > 0 || b.opt.Value == Cost || b.opt.Kind != "" && b.opt.Kind != Line {
		return nil
	}
	var out []Figure
	for i := range b.src.Result.Figures {
		t := &b.src.Result.Figures[i]
		if t.Kind != study.FigureRatio || len(b.opt.Responses) > 0 && !slices.Contains(b.opt.Responses, t.Response.Name) {
			continue
		}
		seen := make(map[string]int) // in out, by what its cells share
		for j := range t.Rows {
			row := &t.Rows[j]
			if row.Total {
				continue
			}
			for k, column := range t.Columns {
				shared := append(slices.Clone(above(t, row.Cell)), column.Without(t.Of)...)
				if _, ok := seen[shared.Key()]; !ok {
					seen[shared.Key()] = len(out)
					out = append(out, b.curve(t, shared))
				}
				f := &out[seen[shared.Key()]]
				f.Marks = append(f.Marks, curveMark(f, t, row, column, &row.Cells[k]))
			}
		}
	}
	for i := range out {
		slices.SortStableFunc(out[i].Marks, func(x, y Mark) int { return x.X - y.X })
	}
	return out
}

// curve is an empty figure of a table.
func (b *builder) curve(t *merit.Table, shared record.Cell) Figure {
	r := b.src.Result
	f := Figure{Curve: t, Kind: Line, Value: Level, Response: t.Response, Compare: r.Compare, Baseline: r.Baseline, Margin: r.Margin,
		Fixed: append(t.Fixed.Without(study.FactorWorkload), shared.Without(study.FactorWorkload)...)}
	f.Response.Unit = record.Fraction
	f.Workload, _ = append(slices.Clone(t.Fixed), shared...).Get(study.FactorWorkload)
	var x, lines []string
	add := func(to *[]string, level string) {
		*to = ordered.Add(*to, level)
	}
	for _, c := range t.Columns {
		l, _ := c.Get(t.Of)
		add(&x, l)
	}
	factor := ""
	if n := len(t.Factors); n > 0 {
		factor = t.Factors[n-1]
		for i := range t.Rows {
			if l, ok := t.Rows[i].Cell.Get(factor); ok {
				add(&lines, l)
			}
		}
	}
	f.X, f.Colour = newAxis(t.Of, x, b.levels[t.Of]), newAxis(factor, lines, b.levels[factor])
	for _, l := range f.Colour.Levels {
		f.Colour.Names = append(f.Colour.Names, b.levelName(record.Level{Factor: factor, Value: l}))
	}
	return f
}

// curveMark is a cell of the table.
func curveMark(f *Figure, t *merit.Table, row *merit.Row, column record.Cell, c *merit.Cell) Mark {
	m := Mark{Cell: append(slices.Clone(row.Cell), column...), Response: f.Response, N: c.Blocks}
	at, _ := column.Get(t.Of)
	m.X = max(0, slices.Index(f.X.Levels, at))
	line, _ := row.Cell.Get(f.Colour.Factor)
	m.Colour = max(0, slices.Index(f.Colour.Levels, line))
	if c.Value == nil {
		m.Gap, m.Why = "no value", c.Why
		return m
	}
	m.Value, m.Points = *c.Value, []float64{*c.Value}
	if c.Interval != nil {
		m.Lo, m.Hi = c.Interval[0], c.Interval[1]
		m.Points = nil
	}
	return m
}

// describeCurve writes the words of a curve.
func (b *builder) describeCurve(f *Figure) {
	t := f.Curve
	f.Title = fmt.Sprintf("%s: %s relative to %s %s", t.Name, t.Response.Name, t.Of, t.Base)
	if f.Workload != "" {
		f.Title = f.Workload + ": " + f.Title
	}
	if len(f.Fixed) > 0 {
		f.Subtitle = words.Levels(b.src.Result, f.Fixed, ", ")
	}
	var parts []string
	least, gaps := 0, 0
	for i := range f.Marks {
		if m := &f.Marks[i]; m.Gap != "" {
			gaps++
		} else if least == 0 || m.N < least {
			least = m.N
		}
	}
	if least > 0 {
		parts = append(parts, "n = "+words.Count(least, "block"))
	}
	if slices.ContainsFunc(f.Marks, func(m Mark) bool { return m.HasInterval() }) {
		parts = append(parts, fmt.Sprintf("whiskers: %.4g %% interval of the ratio, by resampling whole blocks", 100*b.src.Result.Level))
	} else if least > 0 && least < stat.MinN {
		parts = append(parts, fmt.Sprintf("an interval needs %d blocks", stat.MinN))
	}
	if gaps > 0 {
		parts = append(parts, fmt.Sprintf("%s without a value: %s", cells(gaps), reasons(f)))
	}
	f.Caption = strings.TrimSpace(b.withTail(f, parts))
	f.Alt = alt(f)
}
