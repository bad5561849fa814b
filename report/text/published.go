package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"tare/analyse"
	"tare/analyse/published"
	"tare/report/words"
)

// agreementColour goes with the word, which is always there.
func agreementColour(a published.Agreement) text.Colors {
	switch a {
	case published.Agrees:
		return text.Colors{text.Bold}
	case published.SameDirection:
		return text.Colors{text.FgCyan}
	case published.Disagrees:
		return text.Colors{text.FgRed}
	}
	return text.Colors{text.FgYellow}
}

// writePublished sets the measured ratios beside the published ones.
func writePublished(b *strings.Builder, res *analyse.Result, opt Options) {
	t := res.Published
	if t == nil {
		return
	}
	b.WriteString("\n" + wrap(fmt.Sprintf("beside %s (%s, %s):", t.Title, t.Source, t.Date), opt.width(), "  ") + "\n")
	item(b, opt, t.Summary)
	if t.Judged() > 0 {
		b.WriteString(publishedGrid(t).render(opt))
		b.WriteString(wrap(fmt.Sprintf("All are ratios %s, with the measured interval. same: the same direction. Agreement is of the platform that was published, the interval widened by a factor of %g; tare's documentation has the rest.",
			t.Ratio, t.Factor), opt.width(), "") + "\n")
	}
	writeExpected(b, t, opt)
	var missing []string
	var why []string
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Agreement == published.NotMeasured {
			at := slices.Index(why, r.Why)
			if at < 0 {
				at = len(why)
				why, missing = append(why, r.Why), append(missing, "")
			}
			missing[at] += ", " + publishedName(r)
		}
	}
	for i, w := range why {
		item(b, opt, "not measured: "+strings.TrimPrefix(missing[i], ", ")+": "+w)
	}
}

// publishedGrid has a row for each figure that is measured on any platform.
func publishedGrid(t *published.Table) grid {
	g := grid{keys: 1, header: []string{"benchmark", "published"}}
	col := make(map[string]int)
	for i := range t.Rows {
		for _, m := range t.Rows[i].Measured {
			if name := m.Name; col[name] == 0 {
				col[name] = len(g.header)
				g.header = append(g.header, name)
			}
		}
	}
	last := len(g.header)
	g.header = append(g.header, "agreement")
	for i := range t.Rows {
		r := &t.Rows[i]
		if !slices.ContainsFunc(r.Measured, func(m published.Measured) bool { return m.Estimate.N > 0 && m.Estimate.Undefined == "" }) {
			continue
		}
		row := make([]gridCell, len(g.header))
		row[0], row[1] = gridCell{first: publishedName(r)}, gridCell{first: words.Ratio(r.Ratio)}
		for j := range r.Measured {
			m := &r.Measured[j]
			row[col[m.Name]] = measuredCell(m)
		}
		word := string(r.Agreement)
		switch r.Agreement {
		case published.SameDirection:
			word = "same"
		case published.NotMeasured:
			word = "-"
		}
		row[last] = gridCell{first: word, colour: agreementColour(r.Agreement)}
		g.rows = append(g.rows, row)
	}
	return g
}

func measuredCell(m *published.Measured) gridCell {
	e := &m.Estimate
	switch {
	case e.Undefined != "":
		return gridCell{first: "-"}
	case !e.HasInterval():
		return gridCell{first: words.Ratio(e.Ratio), second: "?"}
	}
	return gridCell{first: words.Ratio(e.Ratio), second: words.Ratio(e.Lo) + "–" + words.Ratio(e.Hi)}
}

func publishedName(r *published.Row) string { return r.Benchmark + " " + r.Case }

// writeExpected says why the rows that do not agree were expected not to, rows
// with the same reasons together.
func writeExpected(b *strings.Builder, t *published.Table, opt Options) {
	var reasons []string
	rows := make(map[string][]string)
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Agreement != published.SameDirection && r.Agreement != published.Disagrees {
			continue
		}
		reason := strings.Join(r.Expected, "; ")
		if reason == "" {
			reason = "no reason is known beside what is other for all"
		}
		if rows[reason] == nil {
			reasons = append(reasons, reason)
		}
		rows[reason] = append(rows[reason], publishedName(r))
	}
	if len(reasons) == 0 {
		return
	}
	b.WriteString(wrap("why they do not agree, as far as that is expected:", opt.width(), "  ") + "\n")
	for _, n := range t.Notes {
		item(b, opt, "all: "+n)
	}
	for _, r := range reasons {
		item(b, opt, strings.Join(rows[r], ", ")+": "+r)
	}
}
