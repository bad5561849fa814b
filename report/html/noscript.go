package html

import (
	"fmt"
	"html/template"
	"strings"

	"tare/analyse"
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
	return template.HTML(b.String()) //nolint:gosec // every text is escaped above
}
