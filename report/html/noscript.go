package html

import (
	"fmt"
	"html/template"
	"strings"

	"tare/analyse"
	"tare/analyse/summary"
	"tare/record"
	"tare/report/document"
	"tare/report/words"
)

// maxRows bounds the table for browsers without scripts: it stands uncompressed
// in the file.
const maxRows = 200

// table has a row for each stratum and response and a column for each treatment.
func table(d *document.Document) template.HTML {
	r := d.Result
	if r == nil || len(r.Compared) == 0 {
		return "<p>Nothing has been measured.</p>"
	}
	var b strings.Builder
	cell := func(tag, text string) {
		b.WriteString("<" + tag + ">" + template.HTMLEscapeString(text) + "</" + strings.Fields(tag)[0] + ">")
	}
	b.WriteString("<table><thead><tr>")
	cell(`th scope="col"`, "workload")
	cell(`th scope="col"`, "response")
	var columns []string
	for _, base := range []bool{true, false} {
		for _, t := range r.Treatments {
			if t.Baseline == base {
				columns = append(columns, t.Key)
				cell(`th scope="col"`, words.Treatment(r, t.Cell))
			}
		}
	}
	b.WriteString("</tr></thead><tbody>\n")
	rows := r.Rows()
	for _, row := range rows[:min(len(rows), maxRows)] {
		b.WriteString("<tr>")
		cell(`th scope="row"`, words.Stratum(r, row[0].Workload, row[0].Shared, nil))
		cell("td", row[0].Response.Name)
		by := make(map[string]*analyse.Comparison, len(row))
		for i := range row {
			by[row[i].Treatment] = &row[i]
		}
		for _, key := range columns {
			text := ""
			if c := by[key]; c != nil {
				text = words.Cell(c)
			}
			cell("td", text)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table>\n")
	if n := len(rows) - maxRows; n > 0 {
		fmt.Fprintf(&b, "<p>%d more rows: <code>tare report</code> prints them all.</p>\n", n)
	}
	modelled(&b, d)
	for i := range r.Tables {
		summaryTable(&b, r, &r.Tables[i])
		modelled(&b, d)
	}
	causeTables(&b, d)
	adviceList(&b, d)
	return template.HTML(b.String()) //nolint:gosec // every text is escaped above
}

// summaryTable writes one summary table: values, and ratios to the baseline's cell of
// the same column.
func summaryTable(b *strings.Builder, r *analyse.Result, t *summary.Table) {
	cell := func(tag, text string) {
		b.WriteString("<" + tag + ">" + template.HTMLEscapeString(text) + "</" + strings.Fields(tag)[0] + ">")
	}
	cell("h3", t.Name+": "+t.Response.Name)
	b.WriteString("<table><thead><tr>")
	cell(`th scope="col"`, strings.Join(t.Factors, ", "))
	for _, c := range t.Columns {
		text := t.Response.Name
		if t.Column != "" {
			text = words.Levels(r, record.Cell{{Factor: t.Column, Value: c.Level}}, " ")
		}
		cell(`th scope="col"`, text)
	}
	b.WriteString("</tr></thead><tbody>\n")
	for _, row := range t.Rows {
		b.WriteString("<tr>")
		name := words.Treatment(r, row.Cell)
		if row.Mean {
			name += fmt.Sprintf(": geometric mean of %d", row.Of)
		}
		cell(`th scope="row"`, name)
		for i := range row.Cells {
			c := &row.Cells[i]
			text := c.Why
			if c.Combinations > 0 {
				text = words.Value(c.Estimate.Value, t.Response.Unit)
			}
			if c.Combinations > 0 && !row.Baseline && c.Estimate.Ratio > 0 {
				text += " (" + words.Ratio(c.Estimate.Ratio) + " x, " + string(c.Verdict) + ")"
			}
			cell("td", text)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table>\n")
}
