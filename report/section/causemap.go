package section

import (
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/analyse/summary"
	"tare/record"
	"tare/report/words"
)

// CauseMap is a table of causes: what bounds each cell.
type CauseMap struct {
	Name    string   `json:"table"` // of the summary table whose rows and columns it has; "": strata and treatments
	Title   string   `json:"title"`
	Factors []string `json:"factors"`          // of the rows
	Column  string   `json:"column,omitempty"` // factor of the columns; "" for none
	Levels  []string `json:"columns"`          // of the columns, as they are written
	Table   *Table   `json:"cells"`
}

// CauseMaps are the maps with the rows and columns of the study's summary tables. A cell
// has what the table's cell is the mean over. Tables of the same cells, such as those of
// two responses of one workload, share a map.
func CauseMaps(r *analyse.Result) []CauseMap {
	var out []CauseMap
	for i := range r.Tables {
		m := tableCauses(r, &r.Tables[i])
		if k := slices.IndexFunc(out, func(o CauseMap) bool { return o.same(&m) }); k >= 0 {
			out[k].Title += " and " + m.Title
		} else if slices.ContainsFunc(m.Table.Rows, func(row []Cell) bool {
			return slices.ContainsFunc(row, func(c Cell) bool { return c.Cause != nil && !c.Cause.Baseline })
		}) {
			out = append(out, m)
		}
	}
	return out
}

func (m *CauseMap) same(o *CauseMap) bool {
	return slices.Equal(m.Levels, o.Levels) && slices.EqualFunc(m.Table.Rows, o.Table.Rows, func(a, b []Cell) bool {
		return slices.EqualFunc(a, b, func(x, y Cell) bool { return x.First == y.First && slices.Equal(x.findings(), y.findings()) })
	})
}

func (c *Cell) findings() []int {
	if c.Cause == nil {
		return nil
	}
	return c.Cause.Findings
}

// newCauseMap makes a map without rows.
func newCauseMap(name, title, column string, factors, levels []string) CauseMap {
	t := NewTable(1, strings.Join(factors, ", "))
	for _, l := range levels {
		if column != "" && !strings.HasPrefix(l, "no ") && name != "" {
			l = column + " " + l
		}
		t.Add(l)
	}
	return CauseMap{Name: name, Title: title, Factors: factors, Column: column, Levels: levels, Table: t}
}

// fill adds a row of cells with these findings.
func (m *CauseMap) fill(r *analyse.Result, name string, cells [][]int) {
	row := m.Table.Row(name)
	for j, at := range cells {
		row[1+j] = CauseCell(r, at)
	}
}

func tableCauses(r *analyse.Result, t *summary.Table) CauseMap {
	var levels []string
	col := make(map[string]int)
	for i, c := range t.Columns {
		col[c.Level] = i
		switch {
		case t.Column == "":
			levels = append(levels, "cause")
		case c.Level == "":
			levels = append(levels, "no "+t.Column)
		default:
			levels = append(levels, r.LevelName(record.Level{Factor: t.Column, Value: c.Level}))
		}
	}
	key := func(c record.Cell, factors []string) string {
		var k record.Cell
		for _, f := range factors {
			if v, ok := c.Get(f); ok {
				k = append(k, record.Level{Factor: f, Value: v})
			}
		}
		return k.Key()
	}
	at, means, cells := make(map[string]int), make(map[string]int), make([][][]int, len(t.Rows))
	for i := range t.Rows {
		cells[i] = make([][]int, len(t.Columns))
		if row := &t.Rows[i]; row.Mean {
			means[row.Cell.Key()] = i
		} else {
			at[key(row.Cell, t.Factors)] = i
		}
	}
	for i := range r.Causes {
		f := &r.Causes[i]
		j := 0
		if t.Column != "" {
			level, _ := f.Cell.Get(t.Column)
			var ok bool
			if j, ok = col[level]; !ok {
				continue
			}
		}
		if !inTable(t, f.Cell) {
			continue
		}
		if k, ok := at[key(f.Cell, t.Factors)]; ok {
			cells[k][j] = append(cells[k][j], i)
		}
		if k, ok := means[key(f.Cell, t.Factors[:min(1, len(t.Factors))])]; ok {
			cells[k][j] = append(cells[k][j], i)
		}
	}
	m := newCauseMap(t.Name, t.Name, t.Column, t.Factors, levels)
	for i := range t.Rows {
		m.fill(r, words.Row(r, t, &t.Rows[i]), cells[i])
		m.Table.Rows[i][0].Mean = t.Rows[i].Mean
	}
	return m
}

// inTable reports whether a cell is among those that a table is of.
func inTable(t *summary.Table, c record.Cell) bool {
	for _, l := range t.Fixed {
		// What a treatment does not have, such as the native one's vCPUs, does not exclude it.
		if v, ok := c.Get(l.Factor); ok && v != l.Value {
			return false
		}
	}
	for _, list := range [][]summary.Levels{t.Where, t.Over} {
		for _, l := range list {
			if v, ok := c.Get(l.Factor); ok && !slices.Contains(l.Levels, v) {
				return false
			}
		}
	}
	return true
}

// StrataCauses is the map of strata and treatments, the baseline's column first.
func StrataCauses(r *analyse.Result) CauseMap {
	treatments, col := treatments(r)
	fixed := fixedCauses(r)
	at := make(map[string]int)
	var names []string
	var cells [][][]int
	factors := []string{"workload"}
	for i := range r.Causes {
		f := &r.Causes[i]
		j, ok := col[f.Treatment]
		if !ok {
			continue
		}
		k, ok := at[f.Stratum]
		if !ok {
			k = len(names)
			at[f.Stratum] = k
			names, cells = append(names, words.Stratum(r, f.Workload, f.Shared, fixed)), append(cells, make([][]int, len(treatments)))
			for _, l := range f.Shared.Without("workload") {
				if !slices.Contains(fixed, l) && !slices.Contains(factors, l.Factor) {
					factors = append(factors, l.Factor)
				}
			}
		}
		cells[k][j] = append(cells[k][j], i)
	}
	m := newCauseMap("", "all cells", r.Compare, factors, treatments)
	for i, name := range names {
		m.fill(r, name, cells[i])
	}
	return m
}

// Known reports whether any cause but the baseline's was found or ruled out.
func Known(r *analyse.Result) bool {
	return slices.ContainsFunc(r.Causes, func(f cause.Finding) bool { return !f.Baseline && f.Cause != cause.Unknown })
}

// treatments names the treatments, the baseline first: the others are read against it. at
// is the place of each Treatment.Key.
func treatments(r *analyse.Result) (names []string, at map[string]int) {
	at = make(map[string]int)
	for _, base := range []bool{true, false} {
		for _, t := range r.Treatments {
			if t.Baseline == base {
				at[t.Key] = len(names)
				names = append(names, words.Treatment(r, t.Cell))
			}
		}
	}
	return names, at
}
