package analyse

import (
	"math"

	"tare/analyse/stat"
)

// A verdict is about its own comparison: of a hundred comparisons of equal things
// up to five may be called different. This file says which of the rows that are
// called different are also discoveries among all that were compared.

// DiscoveryRate is the false discovery rate that rows are held against.
const DiscoveryRate = 0.05

// Discoveries counts the rows that are called different, and those of them that
// hold among so many rows.
type Discoveries struct {
	Rate   float64 `json:"rate"`   // false discovery rate, DiscoveryRate
	Rows   int     `json:"rows"`   // rows with a p-value, among which it is held
	Called int     `json:"called"` // rows whose verdict is faster, slower, higher or lower
	Hold   int     `json:"hold"`   // of Called: those with q <= Rate
}

// Called reports whether the verdict says that the row is different.
func (c *Comparison) Called() bool {
	switch c.Verdict {
	case stat.Faster, stat.Slower, stat.Higher, stat.Lower:
		return true
	}
	return false
}

// key tells the comparisons of a study apart.
func (c *Comparison) key() string { return c.Cell.Key() + "\x00" + c.Response.Name }

// Doubtful reports whether a row is called different, but is not a discovery among
// all rows of the study.
func (c *Comparison) Doubtful() bool { return c.Called() && c.Q != nil && *c.Q > DiscoveryRate }

// discoveries gives every row that has an interval its p and q; nil when none has.
// All rows of the study are one family: that is the table in which a reader
// looks for what differs.
func discoveries(rule stat.Rule, rows []Comparison) *Discoveries {
	var p []float64
	var of []*Comparison
	for i := range rows {
		c := &rows[i]
		if c.Baseline {
			continue
		}
		if x := rule.P(c.Estimate); !math.IsNaN(x) {
			p, of = append(p, x), append(of, c)
		}
	}
	if len(of) == 0 {
		return nil
	}
	d := &Discoveries{Rate: DiscoveryRate, Rows: len(of)}
	q := stat.BenjaminiHochberg(p)
	for i, c := range of {
		c.P, c.Q = &p[i], &q[i]
		if c.Called() {
			d.Called++
			if !c.Doubtful() {
				d.Hold++
			}
		}
	}
	return d
}
