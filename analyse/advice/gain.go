package advice

import (
	"fmt"
	"math"
	"slices"

	"tare/analyse/stat"
	"tare/record"
)

// reaches is the part of the best measured setting's worth that a lesser change must
// reach to be preferred. Which of several good settings is the very best is mostly
// noise; the experiment with I/O threads (OpenShift Virtualization 4.19, 2025) reports
// the fewest threads that reach 90 % of the best.
const reaches = 0.9

// trial is one target that the study measured, for the cells of a group.
type trial struct {
	to    target
	pairs []pair
	sums  []stat.Summary // of the ratio with the setting to without, one for each cell it leads to

	response string // where it is the gain of several groups
	better   record.Better

	estimate stat.Estimate
	verdict  stat.Verdict
	worth    float64 // the ratio, above 1 where it is better
	reason   string  // of an undecided verdict
}

// pair is one cell without the setting, and the same with it.
type pair struct{ from, to record.Cell }

// try finds what the study measured of a group's rule: those targets that the most cells
// of the group have, so that they are held against each other over the same cells.
func (b *builder) try(g *group) []*trial {
	if len(g.rule.Set) == 0 || b.in.Mean == nil || b.in.Measured == nil {
		return nil
	}
	var out []*trial
	most := 1
	response := g.list[0].f.Response.Name
	for _, to := range b.candidates(g.rule, g.list) {
		t := &trial{to: to}
		for _, s := range g.list {
			if c := to.moved(s.f.Cell); c != nil && c.Key() != s.f.Cell.Key() && b.in.Measured(c, response) {
				t.pairs = append(t.pairs, pair{s.f.Cell, c})
			}
		}
		t.sum(b, response)
		if n := len(t.pairs); n >= most {
			most = n
			out = append(out, t)
		}
	}
	return slices.DeleteFunc(out, func(t *trial) bool { return len(t.pairs) < most })
}

// sum sums up the ratios. Cells that lead to the same one share its trials there: their
// mean is taken within each block first, and counts as one.
func (t *trial) sum(b *builder, response string) {
	var order []string
	from := make(map[string][]record.Cell)
	cell := make(map[string]record.Cell)
	for _, p := range t.pairs {
		k := p.to.Key()
		if from[k] == nil {
			order, cell[k] = append(order, k), p.to
		}
		from[k] = append(from[k], p.from)
	}
	for _, k := range order {
		s := b.in.Mean(cell[k], from[k], response)
		s.Mean, s.Base, s.Value = -s.Mean, s.Value, s.Base // the other way round: with the setting to without
		t.sums = append(t.sums, s)
	}
}

// choose picks the least change whose worth reaches most of the best one's, with the
// same verdict; nil when nothing was measured. The more targets were tried, the stricter
// is each interval (Bonferroni), so that the pick is not believed for being one of many.
func (b *builder) choose(g *group, prior stat.Prior) *trial {
	if len(g.tried) == 0 {
		return nil
	}
	var best *trial
	for _, t := range g.tried {
		t.response, t.better = g.list[0].f.Response.Name, g.list[0].f.Response.Better
		b.judge(t, prior, len(g.tried))
		if t.estimate.Undefined == "" && t.worth > 0 && (best == nil || t.worth > best.worth) {
			best = t
		}
	}
	if best == nil { // measured, and no ratio: it says why
		return g.tried[0]
	}
	for _, t := range g.tried {
		if t.verdict == best.verdict && t.worth >= reaches*best.worth {
			return t
		}
	}
	return best
}

// judge says what a trial's ratios come to, of so many that were tried.
func (b *builder) judge(t *trial, prior stat.Prior, tried int) {
	confidence := 1 - (1-b.in.Rule.Level())/float64(max(tried, 1))
	estimates := make([]stat.Estimate, len(t.sums))
	for i, s := range t.sums {
		estimates[i] = s.Estimate(prior, confidence)
	}
	t.estimate = stat.Combine(estimates)
	t.verdict, t.reason = b.in.Rule.Judge(t.estimate, t.better)
	t.worth = t.estimate.Ratio
	if t.better == record.Lower && t.worth > 0 {
		t.worth = 1 / t.worth
	}
}

// against reports whether what was measured contradicts the rule: no gain, or a loss.
func (t *trial) against() bool {
	return t.verdict == stat.Slower || t.verdict == stat.Equivalent
}

// more makes a run one of four times the blocks that the ratios have, which halve an interval. Whether that
// decides is not known.
func (t *trial) more() string {
	most := 0
	for _, s := range t.sums {
		most = max(most, s.N)
	}
	return fmt.Sprintf(" --set stop.fixed=%d", max(leastBlocks, 4*most))
}

// proven reports whether it was surely better.
func (t *trial) proven() bool { return t.verdict == stat.Faster }

// gain is nil where no ratio exists, and where there is no interval yet.
func (t *trial) gain(response string) *Gain {
	if e := t.estimate; e.HasInterval() && finite(e.Lo, e.Hi, e.Ratio) {
		return &Gain{Response: response, Better: t.better, From: t.pairs[0].from, To: t.pairs[0].to, Ratio: e.Ratio, Lo: e.Lo, Hi: e.Hi, Pairs: e.N, Cells: len(t.pairs)}
	}
	return nil
}

func finite(v ...float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
