package section

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/published"
	"tare/ordered"
	"tare/report/words"
)

// Published sets the measured ratios beside the published ones.
func Published(r *analyse.Result) *Section {
	s := &Section{ID: "published", In: "published"}
	t := r.Published
	if t == nil {
		return s
	}
	s.Title, s.About = "Beside "+t.Title, t.Source+", "+t.Date
	s.Item("", t.Summary)
	if t.Judged() > 0 {
		s.Table(beside(t))
		s.Note(fmt.Sprintf("All are ratios %s, with the measured interval. same: the same direction. Agreement is judged for the published platform, with the interval widened by a factor of %g; see tare's documentation.",
			t.Ratio, t.Factor))
	}
	var reasons, missing groups
	for i := range t.Rows {
		row := &t.Rows[i]
		switch row.Agreement {
		case published.NotMeasured:
			missing.add(row.Why, figure(row))
		case published.SameDirection, published.Disagrees:
			reasons.add(cmp.Or(strings.Join(row.Expected, "; "), "no reason is known beyond the differences that affect all"), figure(row))
		case published.Agrees, published.Undecided:
		}
	}
	if len(reasons.names) > 0 {
		s.Head("expected reasons why they do not agree")
		for _, n := range t.Notes {
			s.Item("all", n)
		}
		for _, why := range reasons.names {
			s.Item(strings.Join(reasons.members[why], ", "), why)
		}
	}
	if len(missing.names) > 0 {
		s.Head("not measured")
		for _, why := range missing.names {
			s.Item(strings.Join(missing.members[why], ", "), why)
		}
	}
	return s
}

// beside has a row for each figure that is measured on any platform.
func beside(t *published.Table) *Table {
	out := NewTable(1, "benchmark", "published")
	var names []string
	for i := range t.Rows {
		for _, m := range t.Rows[i].Measured {
			names = ordered.Add(names, m.Name)
		}
	}
	out.Add(names...)
	out.Add("n", "agreement", "why")
	n := len(names) + 2
	out.Columns[n].Wide, out.Columns[n+2].Wide = true, true
	for i := range t.Rows {
		r := &t.Rows[i]
		if !slices.ContainsFunc(r.Measured, func(m published.Measured) bool { return m.Estimate.N > 0 && m.Estimate.Undefined == "" }) {
			continue
		}
		row := out.Row(figure(r), words.Ratio(r.Ratio))
		row[n].First, row[n+1], row[n+2].First = "-", agreement(r.Agreement), r.Why
		for j := range r.Measured {
			m := &r.Measured[j]
			row[2+slices.Index(names, m.Name)] = measured(m)
			if m.Compared {
				row[n].First = strconv.Itoa(m.Estimate.N)
			}
		}
	}
	return out
}

func measured(m *published.Measured) Cell {
	e := &m.Estimate
	switch {
	case e.Undefined != "":
		return Cell{First: "-"}
	case !e.HasInterval():
		return Cell{First: words.Ratio(e.Ratio), Second: "?"}
	}
	return Cell{First: words.Ratio(e.Ratio), Second: interval(e)}
}

func figure(r *published.Row) string { return r.Benchmark + " " + r.Case }

func agreement(a published.Agreement) Cell {
	switch a {
	case published.Agrees:
		return Cell{First: string(a), Tone: words.Equal}
	case published.SameDirection:
		return Cell{First: "same", Tone: words.Differs}
	case published.Disagrees:
		return Cell{First: string(a), Tone: words.Worse}
	case published.NotMeasured:
		return Cell{First: "-"}
	case published.Undecided:
	}
	return Cell{First: string(a), Tone: words.Undecided}
}
