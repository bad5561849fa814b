package words

import (
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/analyse/summary"
	"tare/record"
)

// CauseMap is a table of causes.
type CauseMap struct {
	Table   string   // name of the summary table whose rows and columns it has; "": strata and treatments
	Title   string   // in words
	Factors []string // of the rows
	Column  string   // factor of the columns; "" for none
	Columns []string // as they are written
	Rows    []CauseRow
}

// CauseRow is one row of a map.
type CauseRow struct {
	Name     string
	Baseline bool
	Mean     bool
	Cells    [][]int // of each column: indices into Result.Causes
}

// Known reports whether any cause but the baseline's was found or ruled out.
func Known(r *analyse.Result) bool {
	return slices.ContainsFunc(r.Causes, func(f cause.Finding) bool { return !f.Baseline && f.Cause != cause.Unknown })
}

// TableCauses are the maps with the rows and columns of the study's summary tables. A
// cell has what the table's cell is the mean over. Tables of the same cells, such as
// those of two responses of one workload, share a map.
func TableCauses(r *analyse.Result) []CauseMap {
	if len(r.Causes) == 0 {
		return nil
	}
	var out []CauseMap
	for i := range r.Tables {
		m := tableCauses(r, &r.Tables[i])
		if k := slices.IndexFunc(out, func(o CauseMap) bool { return o.same(&m) }); k >= 0 {
			out[k].Title += " and " + m.Title
			continue
		}
		if slices.ContainsFunc(m.Rows, func(x CauseRow) bool {
			return !x.Baseline && slices.ContainsFunc(x.Cells, func(at []int) bool { return len(at) > 0 })
		}) {
			out = append(out, m)
		}
	}
	return out
}

func (m *CauseMap) same(o *CauseMap) bool {
	return slices.Equal(m.Columns, o.Columns) && slices.EqualFunc(m.Rows, o.Rows, func(a, b CauseRow) bool {
		return a.Name == b.Name && slices.EqualFunc(a.Cells, b.Cells, slices.Equal[[]int])
	})
}

func tableCauses(r *analyse.Result, t *summary.Table) CauseMap {
	m := CauseMap{Table: t.Name, Title: t.Name, Factors: t.Factors, Column: t.Column}
	for i, c := range t.Columns {
		m.Columns = append(m.Columns, c.Level)
		switch {
		case t.Column == "":
			m.Columns[i] = "cause"
		case c.Level == "":
			m.Columns[i] = "no " + t.Column
		default:
			m.Columns[i] = r.LevelName(record.Level{Factor: t.Column, Value: c.Level})
		}
	}
	col, at := make(map[string]int), make(map[string]int)
	for i, c := range t.Columns {
		col[c.Level] = i
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
	means := make(map[string]int)
	for i := range t.Rows {
		row := &t.Rows[i]
		m.Rows = append(m.Rows, CauseRow{Name: Row(r, t, row), Baseline: row.Baseline, Mean: row.Mean, Cells: make([][]int, len(t.Columns))})
		if row.Mean {
			means[row.Cell.Key()] = i
		} else {
			at[key(row.Cell, t.Factors)] = i
		}
	}
	for i := range r.Causes {
		f := &r.Causes[i]
		level, j := "", 0
		if t.Column != "" {
			level, _ = f.Cell.Get(t.Column)
			var ok bool
			if j, ok = col[level]; !ok {
				continue
			}
		}
		if !inTable(t, f.Cell) {
			continue
		}
		if k, ok := at[key(f.Cell, t.Factors)]; ok {
			m.Rows[k].Cells[j] = append(m.Rows[k].Cells[j], i)
		}
		if k, ok := means[key(f.Cell, t.Factors[:min(1, len(t.Factors))])]; ok {
			m.Rows[k].Cells[j] = append(m.Rows[k].Cells[j], i)
		}
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

// StrataCauses is the map of strata and treatments.
func StrataCauses(r *analyse.Result) CauseMap {
	m := CauseMap{Title: "all cells", Factors: []string{"workload"}, Column: r.Compare}
	col, at := make(map[string]int), make(map[string]int)
	for _, base := range []bool{true, false} {
		for _, t := range r.Treatments {
			if t.Baseline == base {
				col[t.Key] = len(m.Columns)
				m.Columns = append(m.Columns, Treatment(r, t.Cell))
			}
		}
	}
	fixed := Fixed(func(yield func(record.Cell) bool) {
		for i := range r.Causes {
			if !yield(r.Causes[i].Shared) {
				return
			}
		}
	})
	for i := range r.Causes {
		f := &r.Causes[i]
		j, ok := col[f.Treatment]
		if !ok {
			continue
		}
		k, ok := at[f.Stratum]
		if !ok {
			k = len(m.Rows)
			at[f.Stratum] = k
			m.Rows = append(m.Rows, CauseRow{Name: Stratum(r, f.Workload, f.Shared, fixed), Cells: make([][]int, len(m.Columns))})
			for _, l := range f.Shared.Without("workload") {
				if !slices.Contains(fixed, l) && !slices.Contains(m.Factors, l.Factor) {
					m.Factors = append(m.Factors, l.Factor)
				}
			}
		}
		m.Rows[k].Cells[j] = append(m.Rows[k].Cells[j], i)
	}
	return m
}

// Findings are those of one cell of a map, in its order.
func Findings(r *analyse.Result, at []int) []*cause.Finding {
	out := make([]*cause.Finding, len(at))
	for i, k := range at {
		out[i] = &r.Causes[k]
	}
	return out
}

// CauseWhere names a finding's cell: its work and its treatment.
func CauseWhere(r *analyse.Result, f *cause.Finding, fixed record.Cell) (work, in string) {
	in = f.Treatment
	for _, t := range r.Treatments {
		if t.Key == f.Treatment {
			in = Treatment(r, t.Cell)
		}
	}
	return strings.TrimSpace(Stratum(r, f.Workload, f.Shared, fixed)), in
}
