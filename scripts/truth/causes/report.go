package causes

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tare/analyse/cause"
)

// count sums the cases up.
func (rep *Report) count() {
	for _, from := range []float64{0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95} {
		if n := len(rep.Bins); n > 0 {
			rep.Bins[n-1].To = from
		}
		rep.Bins = append(rep.Bins, Bin{From: from, To: 1.01})
	}
	for _, p := range plants() {
		rep.Rows = append(rep.Rows, Row{Planted: p.name, Foreign: p.foreign, Found: map[cause.Name]int{}})
	}
	for i := range rep.Cases {
		c := &rep.Cases[i]
		k := c.Finding.Cause
		row := slices.IndexFunc(rep.Rows, func(r Row) bool { return r.Planted == c.Planted })
		rep.Rows[row].Found[k]++
		switch {
		case c.Foreign:
			rep.Foreign.count(c)
		case c.Crowded:
			rep.Crowded.count(c)
			continue // the curve is of hosts with room: these are too many
		default:
			rep.Known.count(c)
			if c.Full {
				rep.Full.count(c)
			}
		}
		if !told(k) {
			continue
		}
		at := slices.IndexFunc(rep.Bins, func(b Bin) bool { return c.Finding.Confidence < b.To })
		rep.Bins[at].Told++
		rep.Bins[at].Promised += c.Finding.Confidence
		named := k != cause.Other && k != cause.None
		if named {
			rep.Bins[at].Named++
		}
		if c.right() {
			rep.Bins[at].Right++
			if named {
				rep.Bins[at].NamedRight++
			}
		}
	}
}

// write prints the tables.
func (rep *Report) write(w io.Writer, seed uint64) error {
	var b strings.Builder
	pct := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	fmt.Fprintf(&b, "causes, %s, seed %d\n\n| planted | n | named correctly | left open | named wrongly |\n|---|---|---|---|---|\n", rep.Band, seed)
	for _, g := range []struct {
		name string
		Group
	}{
		{"a named cause, 75 to 95 % of the rate left", rep.Known},
		{"of these, in studies with everything that tells causes apart", rep.Full},
		{"a named cause beside neighbours that fill the host, natively too", rep.Crowded},
		{"a foreign cause, 60 to 90 % left; `other` is correct", rep.Foreign},
	} {
		fmt.Fprintf(&b, "| %s | %d | %.1f %% | %.1f %% | %.1f %% |\n", g.name, g.N, pct(g.Right, g.N), pct(g.N-g.Right-g.Wrong, g.N), pct(g.Wrong, g.N))
	}
	fmt.Fprintf(&b, "\n| confidence | findings | nominal (mean confidence) | achieved (right) | of these, a resource is named | achieved |\n|---|---|---|---|---|---|\n")
	for _, x := range rep.Bins {
		if x.Told > 0 {
			fmt.Fprintf(&b, "| %.2f to %.2f | %d | %.0f %% | %.0f %% | %d | %.0f %% |\n", x.From, min(1, x.To), x.Told, 100*x.Promised/float64(x.Told), pct(x.Right, x.Told), x.Named, pct(x.NamedRight, x.Named))
		}
	}
	fmt.Fprintf(&b, "\n| planted | found |\n|---|---|\n")
	for _, r := range rep.Rows {
		var found []string
		for _, k := range cause.Names() {
			if n := r.Found[k]; n > 0 {
				found = append(found, fmt.Sprintf("%s %d", k, n))
			}
		}
		foreign := ""
		if r.Foreign {
			foreign = " (foreign)"
		}
		fmt.Fprintf(&b, "| %s%s | %s |\n", r.Planted, foreign, strings.Join(found, ", "))
	}
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("write the report on causes: %w", err)
	}
	return nil
}
