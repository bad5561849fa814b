package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// column is a column of figures: one quantity of all cases.
type column struct {
	head string
	q    quantity
	band band
	as   format
	long bool // promised only where a study may have enough blocks
}

// enoughBlocks is how many a study must be allowed so that a test that does not know the scatter
// can come near to one that does: with five, Student's quantile is 2.8 instead of 1.96.
const enoughBlocks = 8

// table simulates cases and prints a table of them, unless no case is wanted.
func (l *lab) table(ctx context.Context, w io.Writer, title string, units []unit, columns []column) ([]figure, error) {
	units, totals, err := l.all(ctx, units)
	if err != nil || len(units) == 0 {
		return nil, err
	}
	return l.print(w, title, units, totals, columns)
}

// print writes a table of cases and columns, and returns its figures. What no case has is left
// out.
func (l *lab) print(w io.Writer, title string, units []unit, totals []*total, columns []column) ([]figure, error) {
	var all []figure
	head, bands := []string{"design", "rule", "machine", "studies"}, []string{"wanted", "", "", ""}
	rows := make([][]string, len(units))
	for i := range units {
		u := &units[i]
		rows[i] = []string{u.shape.String(), u.rule.name, u.machine.name, fmt.Sprint(len(totals[i].scores))}
	}
	for _, c := range columns {
		var cells []string
		some := false
		for i := range units {
			v, e := totals[i].value(c.q)
			f := figure{of: units[i].name(), name: c.head, value: v, err: e, number: totals[i].number(c.q), studies: len(totals[i].scores), band: c.band, promised: units[i].promised}
			if u := &units[i]; u.rule.name == adaptive().name && !math.IsInf(f.band.lo, -1) {
				f.band.hi = math.Inf(1) // its intervals hold in every block, so more often in the last
			}
			if c.long && units[i].most < enoughBlocks {
				f.band = none()
			}
			cells = append(cells, f.text(c.as))
			if f.number > 0 {
				all, some = append(all, f), true
			}
		}
		if !some {
			continue
		}
		head, bands = append(head, c.head), append(bands, c.band.String())
		for i := range rows {
			rows[i] = append(rows[i], cells[i])
		}
	}
	return all, l.write(w, title, append([][]string{head, bands}, rows...))
}

// write lays a table out as text or as Markdown. The first row is the head.
func (l *lab) write(w io.Writer, title string, rows [][]string) error {
	fmt.Fprintf(w, "\n%s\n\n", title)
	if l.markdown {
		for i, r := range rows {
			fmt.Fprintf(w, "| %s |\n", strings.Join(r, " | "))
			if i == 0 {
				fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(r)))
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	return t.Flush()
}
