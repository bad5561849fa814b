package merit

import (
	"cmp"
	"math"
	"slices"

	"tare/ordered"
	"tare/record"
	"tare/study"
)

// Table is one figure of merit over rows and columns of levels.
type Table struct {
	Name     string           `json:"name"`
	Figure   string           `json:"figure"` // as the study writes it
	Kind     study.FigureKind `json:"kind"`
	Of       string           `json:"of,omitempty"`    // the factor that the figure is over
	Base     string           `json:"base,omitempty"`  // its first level, which a gain is over
	Share    float64          `json:"share,omitempty"` // of the best
	Response record.Response  `json:"response"`
	Rows     []Row            `json:"rows"`
	Columns  []record.Cell    `json:"columns"` // levels of the column factors; a single empty cell if the table has no such factors
	Factors  []string         `json:"row_factors,omitempty"`
	Across   []string         `json:"column_factors,omitempty"`
	Total    string           `json:"total,omitempty"` // the factor that totals are over
	Fixed    record.Cell      `json:"fixed,omitempty"` // levels that all cells have, of factors that vary elsewhere
}

// Row is one combination of the row factors' levels, or the total of the rows above.
type Row struct {
	Cell  record.Cell `json:"cell"` // of a total: without the factor that it is over
	Total bool        `json:"total,omitempty"`
	Cells []Cell      `json:"cells"` // one a column
}

// Cell is the figure of one row in one column. A gain is a share of the baseline: 0.5 is half
// as good again. If the figure is a level of a factor, Level, Lowest and Highest name levels, and
// Value is the number of Level, or its position if a level is a word. Positions have no mean: a
// Total of them has no Value.
type Cell struct {
	Value    *float64    `json:"value,omitempty"`
	Interval *[2]float64 `json:"interval,omitempty"`
	Level    string      `json:"level,omitempty"`
	Lowest   string      `json:"lowest,omitempty"`
	Highest  string      `json:"highest,omitempty"`
	Decided  bool        `json:"decided,omitempty"` // the interval holds one level only
	Blocks   int         `json:"blocks"`
	Missing  []string    `json:"missing,omitempty"` // levels without values, which the figure leaves out
	Why      string      `json:"why,omitempty"`     // the value or the interval is missing
}

// Reading has one cell's values of the response.
type Reading struct {
	Stratum string
	Cell    record.Cell
	Values  map[int]float64 // by block
}

// builder makes one table.
type builder struct {
	st         *study.Study
	ask        *study.Figure
	better     record.Better
	confidence float64
	groups     map[string][]Reading // by rowKey and column's key
	out        Table
}

// Build makes the table that the study asks for; nil if it has no cells.
func Build(st *study.Study, ask *study.Figure, response record.Response, confidence float64, readings []Reading) *Table {
	b := &builder{st: st, ask: ask, better: response.Better, confidence: confidence, groups: make(map[string][]Reading),
		out: Table{Name: ask.Name, Figure: ask.Text, Kind: ask.Kind, Of: ask.Of, Share: ask.Share, Response: response, Factors: ask.Rows, Across: ask.Columns, Total: ask.Total}}
	var rows, columns []record.Cell
	seen := make(map[string]bool)
	levels := make(map[string][]string)
	for _, r := range readings {
		row, column := only(r.Cell, ask.Rows), only(r.Cell, ask.Columns)
		k := row.Key() + "\n" + column.Key()
		b.groups[k] = append(b.groups[k], r)
		for _, x := range []struct {
			key  string
			cell record.Cell
			to   *[]record.Cell
		}{{"r" + row.Key(), row, &rows}, {"c" + column.Key(), column, &columns}} {
			if !seen[x.key] {
				seen[x.key] = true
				*x.to = append(*x.to, x.cell)
			}
		}
		for _, l := range r.Cell {
			levels[l.Factor] = ordered.Add(levels[l.Factor], l.Value)
		}
	}
	if len(readings) == 0 {
		return nil
	}
	b.sort(rows, ask.Rows)
	b.sort(columns, ask.Columns)
	b.out.Columns = columns
	if all := Order(b.levels(ask.Of)); len(all) > 0 {
		b.out.Base = all[0]
	}
	for _, f := range st.Factors { // what all of the study has goes without saying
		varied := len(f.Levels) > 1 || f.Name == study.FactorWorkload
		if l := levels[f.Name]; varied && len(l) == 1 && !slices.Contains(ask.Rows, f.Name) && !slices.Contains(ask.Columns, f.Name) {
			b.out.Fixed = append(b.out.Fixed, record.Level{Factor: f.Name, Value: l[0]})
		}
	}
	b.fill(rows)
	return &b.out
}

func only(c record.Cell, factors []string) record.Cell {
	out := record.Cell{}
	for _, f := range factors {
		if l, ok := c.Get(f); ok {
			out = append(out, record.Level{Factor: f, Value: l})
		}
	}
	return out
}

// sort puts cells into the study's order of levels.
func (b *builder) sort(cells []record.Cell, factors []string) {
	rank := func(c record.Cell, factor string) int {
		l, ok := c.Get(factor)
		if !ok {
			return -1
		}
		return slices.Index(b.levels(factor), l)
	}
	slices.SortStableFunc(cells, func(x, y record.Cell) int {
		for _, f := range factors {
			if c := cmp.Compare(rank(x, f), rank(y, f)); c != 0 {
				return c
			}
		}
		return 0
	})
}

func (b *builder) levels(factor string) []string {
	for _, f := range b.st.Factors {
		if f.Name == factor {
			return f.Levels
		}
	}
	return nil
}

// fill computes all cells. A row of totals follows the rows that differ only in its factor.
func (b *builder) fill(rows []record.Cell) {
	var group [][]Estimate
	for i, row := range rows {
		line := Row{Cell: row}
		var estimates []Estimate
		for _, column := range b.out.Columns {
			in := b.groups[row.Key()+"\n"+column.Key()]
			e, c := b.cell(in)
			if b.ask.Kind.Each() {
				e, c = b.against(in, b.groups[row.Key()+"\n"+b.first(column).Key()])
			}
			estimates, line.Cells = append(estimates, e), append(line.Cells, c)
		}
		b.out.Rows = append(b.out.Rows, line)
		if b.ask.Total == "" {
			continue
		}
		group = append(group, estimates)
		of := row.Without(b.ask.Total)
		if i+1 < len(rows) && rows[i+1].Without(b.ask.Total).Key() == of.Key() {
			continue
		}
		total := Row{Cell: of, Total: true}
		for k := range b.out.Columns {
			var column []Estimate
			for _, estimates := range group {
				column = append(column, estimates[k])
			}
			total.Cells = append(total.Cells, b.cellOf(Mean(column, b.confidence)))
		}
		b.out.Rows, group = append(b.out.Rows, total), nil
	}
}

// first is a column with the first level of the figure's factor.
func (b *builder) first(column record.Cell) record.Cell {
	out := slices.Clone(column)
	for i := range out {
		if out[i].Factor == b.ask.Of {
			out[i].Value = b.out.Base
		}
	}
	return out
}

// against computes the quotient of a level and the first, or their difference.
func (b *builder) against(in, base []Reading) (Estimate, Cell) {
	figure := Figure{Of: func(v []float64) float64 { return v[0] / v[1] }}
	if b.ask.Kind == study.FigureDifference {
		figure = Figure{Signed: true, Of: func(v []float64) float64 { return v[0] - v[1] }}
	}
	var levels []Level
	for _, r := range slices.Concat(in, base) {
		levels = append(levels, Level{Stratum: r.Stratum, Values: r.Values})
	}
	e := none("the study has no such cell")
	if len(in) == 1 && len(base) == 1 {
		e = Compute(levels, b.confidence, figure)[0]
		if e.Why == "" && math.IsNaN(e.Value) {
			e.Why = "one of the two has no values"
		}
	}
	c := b.cellOf(e)
	if len(in) == 1 && len(base) == 1 && in[0].Cell.Key() == base[0].Cell.Key() {
		c.Interval = nil // it is the first itself
	}
	return e, c
}

// cell computes one cell of the table from the readings that belong to it.
func (b *builder) cell(in []Reading) (Estimate, Cell) {
	if len(in) == 0 {
		e := none("the study has no such cell")
		return e, b.cellOf(e)
	}
	switch {
	case b.ask.Kind != study.FigureValue && b.better != record.Higher && b.better != record.Lower:
		e := none("neither more nor less of " + b.ask.Response + " is better")
		return e, b.cellOf(e)
	case b.ask.Kind == study.FigureOver:
		return b.over(in)
	}
	names := make([]string, len(in))
	for i, r := range in {
		names[i], _ = r.Cell.Get(b.ask.Of)
	}
	all := Order(b.levels(b.ask.Of))
	order := make([]int, len(in))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return slices.Index(all, names[x]) - slices.Index(all, names[y]) })
	var levels []Level
	var ordered, missing []string
	for _, i := range order {
		levels, ordered = append(levels, Level{Stratum: in[i].Stratum, Values: in[i].Values}), append(ordered, names[i])
		if !valued(in[i].Values) && b.ask.Of != "" {
			missing = append(missing, names[i])
		}
	}
	var base int
	if base = -1; len(all) > 0 {
		base = slices.Index(ordered, all[0])
	}
	e := Compute(levels, b.confidence, b.figure(ordered, base))[0]
	c := b.cellOf(e)
	if c.Missing = missing; b.ask.Kind == study.FigureFewest {
		b.name(&c, ordered)
	}
	return e, c
}

// figure is what the table asks for, over these levels.
func (b *builder) figure(levels []string, base int) Figure {
	switch b.ask.Kind {
	case study.FigureFewest:
		number := numbers(levels)
		return Figure{Level: true, Words: worded(levels), Of: func(v []float64) float64 {
			if k := Fewest(v, b.ask.Share, b.better); k >= 0 {
				return number[k]
			}
			return math.NaN()
		}}
	case study.FigureGain:
		return Figure{Least: 1, Of: func(v []float64) float64 { return Gain(v, base, b.better) + 1 }}
	}
	return Figure{Of: func(v []float64) float64 {
		best, _ := Best(v, b.better)
		return best
	}}
}

// over computes the best of one level of the compared factor over the best of another.
func (b *builder) over(in []Reading) (Estimate, Cell) {
	var one, other []Level
	for _, r := range in {
		l := Level{Stratum: r.Stratum, Values: r.Values}
		if name, _ := r.Cell.Get(b.st.Compare); name == b.ask.One {
			one = append(one, l)
		} else {
			other = append(other, l)
		}
	}
	n := len(one)
	e := Compute(append(one, other...), b.confidence, Figure{Of: func(v []float64) float64 { return Over(v, n, b.better) }})[0]
	if e.Why == "" && math.IsNaN(e.Value) {
		e.Why = "one of the two has no values"
	}
	return e, b.cellOf(e)
}

// worded reports whether a level is a word, which has a position and no number.
func worded(levels []string) bool {
	return slices.ContainsFunc(levels, func(l string) bool { return math.IsNaN(Number(l)) })
}

// numbers are the levels' numbers, or their positions if they are words.
func numbers(levels []string) []float64 {
	out := make([]float64, len(levels))
	for i, l := range levels {
		out[i] = Number(l)
	}
	if worded(levels) {
		for i := range out {
			out[i] = float64(i)
		}
	}
	return out
}

// name turns a cell's numbers into names of levels.
func (b *builder) name(c *Cell, levels []string) {
	number := numbers(levels)
	of := func(v float64) string {
		if k := slices.Index(number, v); k >= 0 {
			return levels[k]
		}
		return ""
	}
	if c.Value != nil {
		c.Level = of(*c.Value)
	}
	if c.Interval != nil {
		c.Lowest, c.Highest = of(c.Interval[0]), of(c.Interval[1])
		c.Decided = c.Lowest == c.Highest
	}
}

func valued(values map[int]float64) bool {
	for _, v := range values {
		if !math.IsNaN(v) {
			return true
		}
	}
	return false
}

func (b *builder) cellOf(e Estimate) Cell {
	c := Cell{Blocks: e.Blocks, Why: e.Why}
	less := 0.0
	if b.ask.Kind == study.FigureGain {
		less = 1 // it was a ratio until here, which is positive
	}
	if !math.IsNaN(e.Value) {
		c.Value = new(e.Value - less)
	}
	if e.HasInterval() {
		c.Interval = &[2]float64{e.Lo - less, e.Hi - less}
	}
	return c
}
