package analyse

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
)

// A ratio is taken within a block, and a block within an epoch: so a change of
// the machine that both sides feel alike is in both halves of each ratio, and
// the blocks of all epochs are pooled. Where one side feels it more, the ratio
// itself is another in each epoch, and the pooled one is a mean of machines. This
// file looks for that.

// differing is a comparison whose ratio seems to differ between groups of blocks.
type differing struct {
	cell, response string
	ratios         []float64 // of the groups with a pair, in order
	of             []int     // beside ratios: the group
	p              float64
}

// differRate is the false discovery rate at which a ratio is said to differ.
const differRate = 0.05

// interaction warns of comparisons whose ratio differs between the epochs of one node.
func (a *analysis) interaction(r *Result, epochs []Epoch) {
	if len(epochs) < 2 {
		return
	}
	what := "epochs"
	if a.several {
		what += " of node " + epochs[0].Node
	}
	at := func(b, t *record.Trial) int {
		if at := epochOf(epochs, b.Seq); a.node(b.Node) == epochs[0].Node && at == epochOf(epochs, t.Seq) {
			return at
		}
		return -1
	}
	a.warnDiffering(r, Warning{Code: "epoch-ratio", Text: what}, "different states of the machine", len(epochs), at, func(d *differing) string {
		ratios := make([]string, len(d.ratios))
		for i, x := range d.ratios {
			ratios[i] = fmt.Sprintf("%.3g", x)
		}
		return strings.Join(ratios, ", then ")
	})
}

// warnDiffering warns of comparisons whose ratio differs between n groups of blocks, which at gives:
// one-way analysis of variance of the log-ratios, Benjamini and Hochberg over the comparisons. The
// text of the warning says what the groups are.
func (a *analysis) warnDiffering(r *Result, w Warning, mean string, n int, at func(base, own *record.Trial) int, say func(*differing) string) {
	var all []differing
	var p []float64
	for i := range r.Compared {
		c := &r.Compared[i]
		if c.Baseline || !c.Estimate.HasInterval() {
			continue
		}
		d := differs(c, a.grouped(c, n, at))
		if !math.IsNaN(d.p) {
			all, p = append(all, d), append(p, d.p)
		}
	}
	q := stat.BenjaminiHochberg(p)
	most, found := -1, 0
	for i := range all {
		if q[i] > differRate {
			continue
		}
		found++
		if most < 0 || all[i].p < all[most].p {
			most = i
		}
		w.Cells = ordered.Add(w.Cells, all[i].cell)
	}
	if most < 0 {
		return
	}
	w.Text = fmt.Sprintf("the ratio differs between %s in %d of %d comparisons, most in %s of %s: %s (false discovery rate %.2g); "+
		"what is printed is a mean over %s", w.Text, found, len(all), all[most].response, all[most].cell, say(&all[most]), q[most], mean)
	r.Warnings = append(r.Warnings, w)
}

// grouped returns the log-ratios of a comparison's blocks by the group that at gives, from 0 to
// below n; -1 leaves a block out.
func (a *analysis) grouped(c *Comparison, n int, at func(base, own *record.Trial) int) [][]float64 {
	base := a.counting[a.baselineOf(c)]
	groups := make([][]float64, n)
	for block, t := range a.counting[c.Cell.Key()] {
		b := base[block]
		if b == nil {
			continue
		}
		x, y := value(b, c.Response.Name), value(t, c.Response.Name)
		if i := at(b, t); i >= 0 && x > 0 && y > 0 {
			groups[i] = append(groups[i], math.Log(y)-math.Log(x))
		}
	}
	for _, g := range groups {
		slices.Sort(g) // to the last bit the same, whatever order the map has
	}
	return groups
}

// differs tests whether the groups have one ratio.
func differs(c *Comparison, groups [][]float64) differing {
	d := differing{cell: c.Cell.Key(), response: c.Response.Name, p: stat.OneWay(groups)}
	for i, g := range groups {
		if len(g) > 0 {
			mean := 0.0
			for _, x := range g {
				mean += x / float64(len(g))
			}
			d.ratios, d.of = append(d.ratios, math.Exp(mean)), append(d.of, i)
		}
	}
	return d
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
