package summary

import (
	"cmp"
	"slices"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// Stratum is one response of one stratum, as an analysis found it.
type Stratum struct {
	Shared   record.Cell
	Response record.Response
	Base     *Reading // nil where the study has no baseline
	Others   []Reading
	// Prior is what moderated the estimates of this response. It moderates the mean over
	// several rows of one stratum too: a study has few such means to learn from. A mean varies
	// less than its rows, so its interval is a little too wide.
	Prior stat.Prior
}

// Reading is what one cell of a stratum has.
type Reading struct {
	Cell     record.Cell
	Value    float64       // of the baseline: its level, of N values
	N        int           // likewise
	Estimate stat.Estimate // of the others
	Part     stat.Estimate // the same for a mean over several strata: see stat.Rule.Part
	Missing  string        // why there is no value, or no ratio; "" where there is one
}

// Values sums up the ratios of the geometric mean of several cells of a stratum
// to the base, over the blocks that have all of them.
type Values func(base record.Cell, others []record.Cell, response string) stat.Summary

// Build makes the tables that a study asks for, those that have a cell of it. The
// strata are in the study's order.
func Build(st *study.Study, rule stat.Rule, strata []Stratum, values Values) []Table {
	var out []Table
	for i := range st.Tables {
		b := &builder{st: st, ask: &st.Tables[i], rule: rule, values: values, at: make(map[string]*row)}
		for j := range strata {
			b.add(&strata[j])
		}
		if len(b.rows) > 0 {
			out = append(out, b.table())
		}
	}
	return out
}

// builder makes one table.
type builder struct {
	st       *study.Study
	ask      *study.Table
	rule     stat.Rule
	values   Values
	response record.Response
	columns  []Column
	rows     []*row
	at       map[string]*row     // by the key of their cell
	strata   []map[string]int    // by column: how many have these levels of the row factors
	seen     map[string][]string // levels of each factor that is neither a row's nor the column's
}

// row is a row of the table to be.
type row struct {
	Row
	in [][]entry // by column: its strata
}

// entry is what a row has in one stratum.
type entry struct {
	s        *Stratum
	readings []Reading // several where factors vary within the stratum that are not the rows'
}

// add sorts a stratum's readings into rows and columns.
func (b *builder) add(s *Stratum) {
	if s.Response.Name != b.ask.Response || !b.ask.Holds(s.Shared) {
		return
	}
	level, _ := s.Shared.Get(b.ask.Columns)
	column := slices.IndexFunc(b.columns, func(c Column) bool { return c.Level == level })
	if column < 0 {
		column = len(b.columns)
		b.columns, b.strata = append(b.columns, Column{Level: level}), append(b.strata, make(map[string]int))
	}
	b.strata[column][b.levels(s.Shared).Key()]++
	b.columns[column].Combinations++
	if b.response.Unit == "" {
		b.response = s.Response
	}
	b.note(s.Shared)
	if s.Base != nil {
		b.put(column, s, s.Base, true)
	}
	for i := range s.Others {
		if r := &s.Others[i]; b.ask.Holds(r.Cell) {
			b.put(column, s, r, false)
			b.note(r.Cell)
		}
	}
}

// note remembers the levels that are averaged over, or that all have.
func (b *builder) note(c record.Cell) {
	if b.seen == nil {
		b.seen = make(map[string][]string)
	}
	for _, l := range c {
		if l.Factor != b.ask.Columns && !slices.Contains(b.ask.Rows, l.Factor) && !slices.Contains(b.seen[l.Factor], l.Value) {
			b.seen[l.Factor] = append(b.seen[l.Factor], l.Value)
		}
	}
}

func (b *builder) put(column int, s *Stratum, r *Reading, baseline bool) {
	cell := b.levels(r.Cell)
	x := b.at[cell.Key()]
	if x == nil {
		x = &row{Row: Row{Cell: cell, Baseline: baseline}}
		b.at[cell.Key()] = x
		b.rows = append(b.rows, x)
	}
	x.put(column, s, *r)
}

// levels are those of the row factors.
func (b *builder) levels(c record.Cell) record.Cell {
	var out record.Cell
	for _, f := range b.ask.Rows {
		if level, ok := c.Get(f); ok {
			out = append(out, record.Level{Factor: f, Value: level})
		}
	}
	return out
}

func (x *row) put(column int, s *Stratum, r Reading) {
	for len(x.in) <= column {
		x.in = append(x.in, nil)
	}
	in := x.in[column]
	if n := len(in); n > 0 && in[n-1].s == s {
		in[n-1].readings = append(in[n-1].readings, r)
		return
	}
	x.in[column] = append(in, entry{s, []Reading{r}})
}

// table makes it of what was added.
func (b *builder) table() Table {
	t := Table{Name: b.ask.Name, Response: b.response, Factors: b.ask.Rows, Column: b.ask.Columns}
	for _, w := range b.ask.Where {
		t.Where = append(t.Where, Levels{w.Name, w.Levels})
	}
	order := b.sorted()
	b.means()
	b.cells(order)
	for _, i := range order {
		t.Columns = append(t.Columns, b.columns[i])
	}
	for _, x := range b.rows {
		t.Rows = append(t.Rows, x.Row)
	}
	for _, f := range b.st.Factors {
		switch levels := b.seen[f.Name]; {
		case len(levels) == 1:
			t.Fixed = append(t.Fixed, record.Level{Factor: f.Name, Value: levels[0]})
		case len(levels) > 1:
			slices.SortStableFunc(levels, func(x, y string) int { return cmp.Compare(slices.Index(f.Levels, x), slices.Index(f.Levels, y)) })
			t.Over = append(t.Over, Levels{f.Name, levels})
		}
	}
	return t
}

// sorted puts the rows in the study's order of levels, the baseline first, and
// returns that of the columns.
func (b *builder) sorted() []int {
	rank := make(map[string]map[string]int)
	for _, f := range b.st.Factors {
		rank[f.Name] = make(map[string]int)
		for i, l := range f.Levels {
			rank[f.Name][l] = i + 1
		}
		if f.Name == b.st.Compare {
			rank[f.Name][b.st.Baseline] = 0
		}
	}
	slices.SortStableFunc(b.rows, func(x, y *row) int {
		for _, f := range b.ask.Rows {
			p, _ := x.Cell.Get(f)
			q, _ := y.Cell.Get(f)
			if c := cmp.Compare(rank[f][p], rank[f][q]); c != 0 {
				return c
			}
		}
		return 0
	})
	order := make([]int, len(b.columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(rank[b.ask.Columns][b.columns[x].Level], rank[b.ask.Columns][b.columns[y].Level])
	})
	return order
}

// means adds the row of the geometric mean after each level of the compared
// factor that has several.
func (b *builder) means() {
	var out []*row
	for i := 0; i < len(b.rows); {
		level, _ := b.rows[i].Cell.Get(b.st.Compare)
		j := i
		for ; j < len(b.rows); j++ {
			if l, _ := b.rows[j].Cell.Get(b.st.Compare); l != level {
				break
			}
		}
		out = append(out, b.rows[i:j]...)
		if j-i > 1 {
			out = append(out, b.mean(level, b.rows[i:j]))
		}
		i = j
	}
	b.rows = out
}

// mean is the row over all that the rows have, stratum by stratum.
func (b *builder) mean(level string, rows []*row) *row {
	x := &row{Row: Row{Cell: record.Cell{{Factor: b.st.Compare, Value: level}}, Baseline: rows[0].Baseline, Mean: true, Of: len(rows)}}
	place := make(map[*Stratum]int)
	for column := range b.columns {
		x.in = append(x.in, nil)
		for _, r := range rows {
			if column >= len(r.in) {
				continue
			}
			for _, e := range r.in[column] {
				at, ok := place[e.s]
				if !ok {
					at = len(x.in[column])
					place[e.s] = at
					x.in[column] = append(x.in[column], entry{s: e.s})
				}
				x.in[column][at].readings = append(x.in[column][at].readings, e.readings...)
			}
		}
	}
	return x
}
