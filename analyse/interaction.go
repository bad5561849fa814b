package analyse

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/analyse/stat"
	"tare/record"
)

// A ratio is taken within a block, and a block within an epoch: so a change of
// the machine that both sides feel alike is in both halves of each ratio, and
// the blocks of all epochs are pooled. Where one side feels it more, the ratio
// itself is another in each epoch, and the pooled one is a mean of machines. This
// file looks for that.

// differing is a comparison whose ratio seems to differ between epochs.
type differing struct {
	cell, response string
	ratios         []float64 // by epoch with a pair, in order
	p              float64
}

// epochRate is the false discovery rate at which a ratio is said to differ.
const epochRate = 0.05

// interaction warns of comparisons whose ratio differs between the epochs of one node:
// one-way analysis of variance of the log-ratios by epoch, Benjamini and Hochberg over
// the comparisons.
func (a *analysis) interaction(r *Result, epochs []Epoch) {
	if len(epochs) < 2 {
		return
	}
	var all []differing
	var p []float64
	for i := range r.Compared {
		if d, ok := a.byEpoch(epochs, &r.Compared[i]); ok {
			all, p = append(all, d), append(p, d.p)
		}
	}
	var found []differing
	q := stat.BenjaminiHochberg(p)
	most := -1
	for i, d := range all {
		if q[i] > epochRate {
			continue
		}
		if most < 0 || d.p < all[most].p {
			most = i
		}
		found = append(found, d)
	}
	if most < 0 {
		return
	}
	ratios := make([]string, len(all[most].ratios))
	for i, x := range all[most].ratios {
		ratios[i] = fmt.Sprintf("%.3g", x)
	}
	of := "epochs"
	if a.several {
		of += " of node " + epochs[0].Node
	}
	w := Warning{Code: "epoch-ratio", Text: fmt.Sprintf("the ratio differs between %s in %d of %d comparisons, most in %s of %s: %s (false discovery rate %.2g); "+
		"what is printed is a mean over different states of the machine", of, len(found), len(all), all[most].response, all[most].cell,
		strings.Join(ratios, ", then "), q[most])}
	for _, d := range found {
		if !slices.Contains(w.Cells, d.cell) {
			w.Cells = append(w.Cells, d.cell)
		}
	}
	r.Warnings = append(r.Warnings, w)
}

// byEpoch tests one comparison; false when there are too few blocks for it.
func (a *analysis) byEpoch(epochs []Epoch, c *Comparison) (differing, bool) {
	if c.Baseline || !c.Estimate.HasInterval() {
		return differing{}, false
	}
	base := a.counting[a.baselineOf(c)]
	groups := make([][]float64, len(epochs))
	for block, t := range a.counting[c.Cell.Key()] {
		b := base[block]
		if b == nil || a.node(b.Node) != epochs[0].Node {
			continue
		}
		x, y := value(b, c.Response.Name), value(t, c.Response.Name)
		at := epochOf(epochs, b.Seq)
		if at < 0 || at != epochOf(epochs, t.Seq) || !(x > 0) || !(y > 0) {
			continue
		}
		groups[at] = append(groups[at], math.Log(y)-math.Log(x))
	}
	d := differing{cell: c.Cell.Key(), response: c.Response.Name}
	for _, g := range groups {
		if len(g) > 0 {
			slices.Sort(g) // to the last bit the same, whatever order the map has
			mean := 0.0
			for _, x := range g {
				mean += x / float64(len(g))
			}
			d.ratios = append(d.ratios, math.Exp(mean))
		}
	}
	d.p = stat.OneWay(groups)
	return d, !math.IsNaN(d.p)
}

// baselineOf returns the key of the cell that c is compared with.
func (a *analysis) baselineOf(c *Comparison) string {
	for i := range a.study.Strata {
		if s := &a.study.Strata[i]; s.Key == c.Stratum && s.Baseline >= 0 {
			return s.Cells[s.Baseline].Key()
		}
	}
	return ""
}

func value(t *record.Trial, response string) float64 {
	if v, ok := t.Sample(response); ok && !t.BelowNoise(response) && !math.IsInf(v, 0) {
		return v
	}
	return math.NaN()
}

// epochOf returns the index of the epoch that a trial surely lies in; -1 for one
// between the last sentinel of an epoch and the first of the next.
func epochOf(epochs []Epoch, seq int) int {
	at := 0
	for i := 1; i < len(epochs); i++ {
		if seq >= epochs[i].Seq {
			at = i
		} else if seq > epochs[i].After {
			return -1
		}
	}
	return at
}
