package section

import (
	"strings"

	"tare/analyse"
	"tare/analyse/summary"
	"tare/report/words"
)

// fewer follows the value of a cell that is over fewer combinations than the
// others of its column.
const fewer = "*"

// Tables are the summary tables that the study asks for, a section each.
func Tables(r *analyse.Result) []*Section {
	var out []*Section
	for i := range r.Tables {
		t := &r.Tables[i]
		s := &Section{ID: "table-" + t.Name, Title: words.TableTitle(r, t)}
		means, marked := means(r, t)
		s.Table(means)
		about := "Each cell: the value, the ratio to " + words.Base(r) + " in the same column and its interval, over the variants that both have."
		if t.Column == "" {
			about = "The value, the ratio to " + words.Base(r) + " and its interval, over the variants that both have."
		}
		if marked {
			about += " " + fewer + ": over fewer variants than its column has."
		}
		s.Note(about)
		for _, why := range lacking(t) {
			s.Item("-", why)
		}
		if said := words.TableSentence(r, t); said != "" {
			s.Item("", said)
		}
		out = append(out, s)
	}
	return out
}

// lacking says why cells of a table have no value, each reason once.
func lacking(t *summary.Table) []string {
	var why groups
	for i := range t.Rows {
		for j := range t.Rows[i].Cells {
			if c := &t.Rows[i].Cells[j]; c.Combinations == 0 && c.Why != "" {
				why.add(c.Why, "")
			}
		}
	}
	return why.names
}

// means is a summary table, and whether a cell of it is over fewer combinations.
func means(r *analyse.Result, t *summary.Table) (out *Table, marked bool) {
	out = NewTable(1, strings.Join(t.Factors, ", "))
	same := true
	for _, c := range t.Columns {
		same = same && c.Combinations == t.Columns[0].Combinations
	}
	for i := range t.Columns {
		out.Add(words.Column(t, i, !same))
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		cells := out.Row(words.Row(r, t, row))
		cells[0].Mean = row.Mean
		for j := range row.Cells {
			c := &row.Cells[j]
			marked = marked || c.Fewer
			cells[1+j] = meanCell(t, row, c)
		}
	}
	return out, marked
}

func meanCell(t *summary.Table, row *summary.Row, c *summary.Cell) Cell {
	if c.Combinations == 0 {
		return Cell{First: "-"}
	}
	out := Cell{First: words.Value(c.Estimate.Value, t.Response.Shown())}
	if c.Fewer {
		out.First += fewer
	}
	if !row.Baseline {
		ratio := ratioCell(&c.Estimate, c.Estimate.Shown(c.Verdict, t.Response.Better))
		out.Second, out.Tone = ratio.First+" "+ratio.Second, ratio.Tone
	}
	return out
}
