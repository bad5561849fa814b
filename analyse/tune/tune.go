// Package tune finds the level of an ordered factor to set, or the levels of several: the best, or the lowest that
// reach a share of the best. After each block it says which cells the next block must measure. So cells that
// cannot change the answer cost no more time. A cell is a level of one factor, or a combination of several.
//
// The data path: 1. the first block measures a screen, the cells at doubling positions, or those around the answer of a like search (space.go); 2. fit
// estimates all cells from all blocks, which need not hold the same cells; 3. draws from the
// estimate show how probable each cell is as the answer; 4. the next block has the cells that may be
// the answer, the best one, and cells between them that were not measured yet (probe.go); 5. once the answer is
// clear, fresh blocks confirm it.
package tune

import (
	"math"
	"slices"
)

// Goal is what is looked for.
type Goal struct {
	Reach      float64 // share of the best that a cell must reach, over 0 and up to 1; 1: the best itself
	Margin     float64 // relative difference that does not matter, such as 0.03
	Confidence float64 // such as 0.95
}

// Level is what is known about a cell.
type Level struct {
	Blocks int     // that have measured it; 0: the other fields mean nothing
	Share  float64 // of the best level's value, in the estimate
	Lo, Hi float64 // interval of Share, at the goal's confidence
	Answer float64 // probability that it is the answer

	// Of a load, with an objective; Share to Answer mean nothing then.
	Met, Missed int // trials after the first
	Late        int // of Missed: the load generator fell behind its schedule by itself
	Bound       Bound
}

// Stage is how far the search has come.
type Stage string

// Stages.
const (
	Screening  Stage = "screening"  // the first block
	Narrowing  Stage = "narrowing"  // several cells may be the answer
	Confirming Stage = "confirming" // one cell is the answer, and fresh blocks must agree
	Found      Stage = "found"
)

// Step is what is known after some blocks, and what comes next.
type Step struct {
	Stage   Stage
	Measure []int   // cells of the next block, rising; none if Found
	Answer  int     // the most probable answer; -1 before the first block
	Best    int     // the cell with the highest estimate; -1 before the first block
	Upper   int     // with an objective: the relevant upper bound; -1: none
	Sure    float64 // probability that Answer is right, within the margin
	Levels  []Level
}

const (
	// streak is how many blocks in a row must give the same clear answer. The first block makes the
	// answer clear, perhaps by chance. The other two are fresh and confirm it.
	streak = 3
	// chance is the least probability of being the answer at which a cell is measured again.
	chance = 0.05
)

// Next returns what is known after the blocks, and what the next block measures. values holds a value
// for each block and cell. More is better, and NaN stands for a cell that the block has not measured.
// The random numbers depend only on the values, so the same values give the same step.
func Next(values [][]float64, grid Grid, g Goal) Step {
	sp := newSpace(grid)
	values = sp.rows(values)
	step := Step{Stage: Screening, Measure: sp.screen, Answer: -1, Best: -1, Levels: make([]Level, len(sp.cells))}
	clear, last := 0, -1
	for n := max(1, len(values)-streak+1); n <= len(values); n++ {
		s := look(values[:n], sp, g)
		if s.Answer < 0 {
			continue // nothing was measured yet: the screen again
		}
		switch {
		case s.Stage != Confirming:
			clear = 0
		case s.Answer == last:
			clear++
		default:
			clear = 1
		}
		last, step = s.Answer, s
	}
	if clear >= streak {
		step.Stage, step.Measure = Found, nil
	}
	return sp.columns(step, len(grid.Closed))
}

// look judges the blocks by themselves; the stage is Narrowing or Confirming.
func look(values [][]float64, sp *space, g Goal) Step {
	e, ok := fit(values)
	step := Step{Stage: Narrowing, Answer: -1, Best: -1, Levels: make([]Level, len(sp.cells))}
	if !ok {
		return step
	}
	d := e.draw(g)
	best, answer := 0, 0
	for k := range e.levels {
		if e.mean[k] > e.mean[best] {
			best = k
		}
		if d.answer[k] > d.answer[answer] {
			answer = k
		}
	}
	step.Best, step.Answer, step.Sure = e.levels[best], e.levels[answer], d.right[answer]
	for k, i := range e.levels {
		step.Levels[i] = Level{Blocks: e.blocks[k], Share: math.Exp(e.mean[k] - e.mean[best]), Lo: d.lo[k], Hi: d.hi[k], Answer: d.answer[k]}
	}
	probes := e.probes(sp, answer, best, len(values))
	// Others confirm the answer: the best sets the share, and the cells below must miss it. Of several factors,
	// those above are there too: one more step of any factor must not be a new best.
	need := []int{e.levels[answer], e.levels[best]}
	for _, way := range sp.axes() {
		if _, end := e.gap(sp, answer, way); end >= 0 && (steps(way) < 0 || len(sp.size) > 1) {
			need = append(need, e.levels[end])
		}
	}
	once := e.once(best)
	if len(probes) == 0 && len(once) == 0 && len(values) > 1 && e.blocks[answer] > 1 && step.Sure >= g.Confidence {
		step.Stage = Confirming
	} else {
		for k, i := range e.levels {
			if d.answer[k] >= chance {
				need = append(need, i)
			}
		}
		need = append(append(need, probes...), once...)
	}
	slices.Sort(need)
	step.Measure = slices.Compact(need)
	return step
}

// share is the share of the best that a level must reach. If the goal is the best itself, a level within
// half of the margin counts: of equal levels, the lowest is the answer.
func (g Goal) share() float64 {
	if g.Reach < 1 {
		return g.Reach
	}
	return 1 - g.Margin/2
}

// slack is how far, in logarithms, an answer may be below the share. The answer to "best" is then at most the margin
// below the best.
func (g Goal) slack() float64 {
	if g.Reach < 1 {
		return math.Log1p(g.Margin)
	}
	return math.Log1p(g.Margin / 2)
}
