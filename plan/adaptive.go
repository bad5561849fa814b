package plan

import (
	"time"

	"tare/analyse/stat"
)

// An adaptive study (Stop.Adaptive) measures only comparisons whose verdict is open. At a look, a treatment
// ends if it has a verdict, or would hardly get one by the last look (stat.Rule.Hopeless). The strata that
// may bring the most verdicts a second come first in the next pass, so a budget, or an interruption, cuts
// those that bring least.

// adapt takes the decisions of a look beside those of narrow.
func (p *Plan) adapt(pass int, sums map[int]stat.Summary, priors map[int]stat.Prior) {
	next := p.last
	for _, l := range p.rule.Looks {
		if l > pass {
			next = l
			break
		}
	}
	for i := range p.strata {
		s := &p.strata[i]
		if s.ending != nil || s.closed == 0 {
			continue
		}
		s.gain = 0
		var cost time.Duration // of a block of what is open
		for _, id := range p.open(s) {
			c := &p.cells[id]
			if pass < p.last && p.rule.Hopeless(sums[id], priors[id]) {
				c.enough, c.yields = pass, true
				continue
			}
			s.gain += p.rule.Chance(sums[id], priors[id], next)
			cost += c.each()
		}
		cost += p.cells[max(s.baseline, 0)].each()
		s.gain /= max(cost.Seconds(), 1e-3) * float64(max(next-pass, 1))
	}
}
