package text

import (
	"fmt"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/report/words"
)

// fewer follows the value of a cell that is over fewer combinations than the
// others of its column.
const fewer = "*"

// writeTables prints the summary tables that the study asks for.
func writeTables(b *strings.Builder, res *analyse.Result, opt Options) {
	for i := range res.Tables {
		t := &res.Tables[i]
		b.WriteString("\n" + wrap(words.TableTitle(res, t)+":", opt.width(), "  ") + "\n")
		g, marked := summaryGrid(res, t)
		b.WriteString(g.render(opt))
		about := "Each cell: the value, the ratio to " + res.Baseline + " in the same column and its interval, of the strata that both have."
		if t.Column == "" {
			about = "The value, the ratio to " + res.Baseline + " and its interval, of the strata that both have."
		}
		if marked {
			about += " " + fewer + ": over fewer strata than the column has."
		}
		b.WriteString(wrap(about, opt.width(), "") + "\n")
		if s := words.TableSentence(res, t); s != "" {
			item(b, opt, s)
		}
	}
}

func summaryGrid(res *analyse.Result, t *summary.Table) (grid, bool) {
	g := grid{keys: 1, header: []string{strings.Join(t.Factors, ", ")}}
	same := true
	for _, c := range t.Columns {
		same = same && c.Combinations == t.Columns[0].Combinations
	}
	for i := range t.Columns {
		g.header = append(g.header, words.Column(t, i, !same))
	}
	marked := false
	for i := range t.Rows {
		r := &t.Rows[i]
		row := []gridCell{{first: words.Row(res, t, r)}}
		for j := range r.Cells {
			c := &r.Cells[j]
			marked = marked || c.Fewer
			row = append(row, summaryCell(t, r, c))
		}
		g.rows = append(g.rows, row)
	}
	return g, marked
}

func summaryCell(t *summary.Table, r *summary.Row, c *summary.Cell) gridCell {
	if c.Combinations == 0 {
		return gridCell{first: "-"}
	}
	e := &c.Estimate
	out := gridCell{first: words.Value(e.Value, t.Response.Unit)}
	if c.Fewer {
		out.first += fewer
	}
	if r.Baseline {
		return out
	}
	s := signOf(c.Verdict)
	out.second, out.colour = words.Ratio(e.Ratio)+" "+s.mark, s.colour
	if e.HasInterval() {
		out.second += " " + words.Ratio(e.Lo) + "–" + words.Ratio(e.Hi)
	} else {
		out.second += fmt.Sprintf(" need n≥%d", stat.MinN)
	}
	return out
}

// writeAccelerators says what the levels' names mean.
func writeAccelerators(b *strings.Builder, res *analyse.Result, opt Options) {
	if s := words.Accelerators(res); s != "" {
		b.WriteString(wrap(s, opt.width(), "  ") + "\n")
	}
}

// writeCPUCosts says what CPU a unit of work costs.
func writeCPUCosts(b *strings.Builder, res *analyse.Result, opt Options) {
	if len(res.CPUCosts) == 0 {
		return
	}
	b.WriteString("\n" + wrap(words.CPUCostsTitle(res)+":", opt.width(), "  ") + "\n")
	g := grid{keys: 2, header: []string{"work", "unit"}}
	col, at := make(map[string]int), make(map[string]int)
	for _, base := range []bool{true, false} {
		for _, t := range res.Treatments {
			if t.Baseline == base {
				col[t.Key] = len(g.header)
				g.header = append(g.header, words.Treatment(res, t.Cell))
			}
		}
	}
	fixed := fixedLevels(res)
	for i := range res.CPUCosts {
		c := &res.CPUCosts[i]
		k, ok := at[c.Stratum]
		if !ok {
			k = len(g.rows)
			at[c.Stratum] = k
			row := make([]gridCell, len(g.header))
			row[0].first, row[1].first = words.Stratum(res, c.Workload, c.Shared, fixed), c.Unit
			g.rows = append(g.rows, row)
		}
		if j, ok := col[c.Treatment]; ok {
			g.rows[k][j] = costCell(c)
		}
	}
	more := len(g.rows) - maxCosts
	g.rows = g.rows[:min(len(g.rows), maxCosts)]
	b.WriteString(g.render(opt))
	b.WriteString(wrap(res.Baseline+": CPU time a unit; others: ratio to it in the same block and its interval. Counted are "+words.CountedEnds(res)+
		", each with all that the sandbox runs for it on the host; not tare's agent, nor the other end.", opt.width(), "") + "\n")
	if more > 0 {
		item(b, opt, strconv.Itoa(more)+" more strata: --csv --cpu has all")
	}
	for _, s := range words.CPUCosts(res) {
		item(b, opt, s)
	}
}

// maxCosts bounds the rows of what CPU a unit of work costs.
const maxCosts = 40
