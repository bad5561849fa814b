package section

import (
	"fmt"
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/merit"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// Figures are the tables of figures of merit that the study asks for, a section each.
func Figures(r *analyse.Result) []*Section {
	var out []*Section
	for i := range r.Figures {
		t := &r.Figures[i]
		s := &Section{ID: "figure-" + t.Name, Title: words.FigureTitle(r, t)}
		s.Table(figureTable(r, t))
		s.Note(figureNote(r, t))
		for _, why := range figureReasons(t, false) {
			s.Item("-", why)
		}
		for _, why := range figureReasons(t, true) {
			s.Item("no interval", why)
		}
		out = append(out, s)
	}
	return out
}

// meritPart is the part of the page that shows all figures of merit.
const meritPart = "merit"

// figuresPart is Figures for the page: they share one part of it.
func figuresPart(r *analyse.Result) []*Section {
	out := []*Section{{ID: meritPart, Title: "Figures of merit"}}
	for _, s := range Figures(r) {
		s.In = meritPart
		out = append(out, s)
	}
	if len(out) > 1 {
		out[0].Note("What the study asks for beyond ratios to the baseline.")
	}
	return out
}

// figureTable has a column for each row factor, so that the first is written once for all of
// its rows.
func figureTable(r *analyse.Result, t *merit.Table) *Table {
	out := NewTable(max(1, len(t.Factors)), t.Factors...)
	if len(t.Factors) == 0 {
		out.Add("figure")
	}
	out.Grouped = len(t.Factors) > 1
	for _, c := range t.Columns {
		out.Add(words.FigureColumn(r, t, c))
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		cells := out.Row()
		for k, f := range t.Factors {
			if l, ok := row.Cell.Get(f); ok {
				cells[k].First = r.LevelName(record.Level{Factor: f, Value: l})
			}
		}
		if len(t.Factors) == 0 {
			cells[0].First = t.Figure
		}
		if row.Total {
			cells[out.Keys-1] = Cell{First: "Total", Mean: true}
		}
		for j := range row.Cells {
			c := &row.Cells[j]
			x := &cells[out.Keys+j]
			x.First, x.Second = words.FigureValue(t, row, c)
			if len(c.Missing) > 0 {
				x.First += fewer
			}
			if t.Kind == study.FigureFewest && c.Interval != nil && !c.Decided && !row.Total {
				x.Tone = words.Undecided
			}
		}
	}
	return out
}

func figureNote(r *analyse.Result, t *merit.Table) string {
	var parts []string
	if across := words.FigureAcross(t); across != "" {
		parts = append(parts, across)
	}
	valued := func(c merit.Cell) bool { return c.Value != nil }
	if slices.ContainsFunc(t.Rows, func(row merit.Row) bool { return row.Total && slices.ContainsFunc(row.Cells, valued) }) {
		parts = append(parts, "Total: the arithmetic mean over "+t.Total+".")
	}
	interval, total, open, missing := false, false, false, false
	for i := range t.Rows {
		for j := range t.Rows[i].Cells {
			c := &t.Rows[i].Cells[j]
			single := t.Kind == study.FigureValue && !t.Rows[i].Total
			interval, total = interval || c.Interval != nil, total || c.Interval != nil && !single
			open = open || t.Kind == study.FigureFewest && !t.Rows[i].Total && c.Interval != nil && !c.Decided
			missing = missing || len(c.Missing) > 0
		}
	}
	if interval {
		how := "by resampling whole blocks"
		if t.Kind == study.FigureValue {
			how = "Student's on the logarithms"
			if total {
				how += ", of totals by resampling whole blocks"
			}
		}
		parts = append(parts, fmt.Sprintf("Beside it the %s %% interval, %s.", perCent(r.Level), how))
	}
	if open {
		parts = append(parts, "?: not decided, the interval holds several levels.")
	}
	if missing {
		parts = append(parts, fewer+": without the levels of "+t.Of+" that have no value.")
	}
	return strings.Join(parts, " ")
}

// figureReasons say why there is no value, or for values no interval, each once.
func figureReasons(t *merit.Table, values bool) []string {
	var why groups
	for i := range t.Rows {
		for j := range t.Rows[i].Cells {
			if c := &t.Rows[i].Cells[j]; c.Why != "" && (c.Value != nil) == values {
				why.add(c.Why, "")
			}
		}
	}
	return why.names
}
