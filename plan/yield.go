package plan

import (
	"time"

	"tare/analyse/stat"
)

// far is a multiple of the time, or of the blocks, that are left. A comparison that needs more counts as
// one that cannot be decided. In 5 % of cases, the variance of three blocks comes out three times too
// large by chance.
const far = 3

// yield ends comparisons that cannot be decided in the time that is left, so that others can be decided.
// It does so only if the time is too short for all, and something else can be decided. It looks at the
// scatter and the first block, but never at the mean. Rule.Enough gives the reason.
func (p *Plan) yield(pass int, sums map[int]stat.Summary, priors map[int]stat.Prior) {
	left := p.study.Budget.Time - p.walk.spent
	if p.study.Budget.Time <= 0 || left <= 0 || pass >= p.last {
		return
	}
	var hopeless []int
	var wanted time.Duration // by all open comparisons
	hope := false
	for i := range p.strata {
		s := &p.strata[i]
		if s.ending != nil || s.closed == 0 {
			continue
		}
		blocks, most := 0, p.last-s.closed
		for _, id := range p.open(s) {
			n := p.rule.Tells(sums[id], priors[id])
			each := p.cells[id].each() + p.cells[s.baseline].each()
			switch {
			case n == 0:
			case n <= far*most && float64(n)*float64(each) <= far*float64(left):
				hope = true
			case len(p.cells[id].blocks) <= pass: // else an earlier version went on with it
				hopeless = append(hopeless, id)
			}
			blocks = max(blocks, min(n, most))
		}
		wanted += s.time / time.Duration(s.closed) * time.Duration(blocks)
	}
	if !hope || wanted <= left {
		return
	}
	for _, id := range hopeless {
		p.cells[id].enough, p.cells[id].yields = pass, true
	}
}

// each is the mean time of a trial of the cell, as far as the walk has come.
func (c *cellState) each() time.Duration { return c.time / time.Duration(max(c.trials, 1)) }

// Yielded reports whether a comparison's treatment gave its time to others.
func (p *Plan) Yielded(key string) bool {
	p.advance()
	id, ok := p.index[key]
	return ok && p.cells[id].yields
}
