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

// Thin reports whether a cell that matters was measured in fewer than two blocks. Such a cell has no scatter of its own, so its
// chance, and with it every other, comes from the prior of the scatter: one bad reading looks like certainty. The search may use these
// chances to choose what it measures next, but reports must not show them.
func (s Step) Thin() bool {
	if s.Answer < 0 || s.Stage == Found {
		return false
	}
	once := func(i int) bool { return s.Levels[i].Blocks == 1 }
	return once(s.Answer) || slices.ContainsFunc(s.Measure, once)
}

const (
	// confirmations is how many fresh blocks must agree with a clear answer. The blocks before them made it clear, perhaps by chance.
	confirmations = 2
	// chance is the least probability of being the answer at which a cell is measured again.
	chance = 0.05
)

// Next returns what is known after the blocks, and what the next block measures. values holds a value
// for each block and cell. More is better, and NaN stands for a cell that the block has not measured.
// The random numbers depend only on the values, so the same values give the same step.
func Next(values [][]float64, grid Grid, g Goal) Step {
	sp := newSpace(grid)
	values = sp.rows(values)
	step, _ := look(values, sp, g)
	if step.Answer < 0 { // nothing was measured yet: the screen again
		step.Stage, step.Measure = Screening, sp.screen
	}
	if step.Stage == Confirming && confirmed(values, sp, g, step.Answer) {
		step.Stage, step.Measure = Found, nil
	}
	return sp.columns(step, len(grid.Closed))
}

// confirmed reports whether enough fresh blocks agree with a clear answer. A block that lacks the answer or its rival, because a trial
// failed, does not count: only differences within blocks say something.
func confirmed(values [][]float64, sp *space, g Goal, answer int) bool {
	fresh := 0
	for n := len(values) - 1; n > 0 && fresh < confirmations; n-- {
		before, rival := look(values[:n], sp, g)
		if before.Stage != Confirming || before.Answer != answer {
			return false
		}
		if good(values[n][answer]) && (rival < 0 || good(values[n][rival])) {
			fresh++
		}
	}
	return fresh == confirmations
}

// look judges the blocks by themselves; the stage is Narrowing or Confirming. It also returns the answer's rival, which
// each confirming block measures beside it; -1: no other cell was measured.
func look(values [][]float64, sp *space, g Goal) (step Step, rival int) {
	e, ok := fit(values)
	step = Step{Stage: Narrowing, Answer: -1, Best: -1, Levels: make([]Level, len(sp.cells))}
	if !ok {
		return step, -1
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
	rival = e.rival(sp, d, answer)
	if rival >= 0 {
		need = append(need, rival)
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
	return step, rival
}

// rival is the cell that is the most probable answer after the answer. Without chances, it is the nearest measured one, of two
// the lower. -1 stands for none.
func (e *estimate) rival(sp *space, d draws, answer int) int {
	rival := -1
	for k, i := range e.levels {
		if k == answer {
			continue
		}
		if rival < 0 || d.answer[k] > d.answer[rival] ||
			d.answer[k] == d.answer[rival] && sp.distance(i, e.levels[answer]) < sp.distance(e.levels[rival], e.levels[answer]) {
			rival = k
		}
	}
	if rival < 0 {
		return -1
	}
	return e.levels[rival]
}

// share is the share of the best that a level must reach. If the goal is the best itself, a level within
// half of the margin counts: of equal levels, the lowest is the answer.
func (g Goal) share() float64 {
	if g.Reach < 1 {
		return g.Reach
	}
	return 1 - g.Margin/2
}

// Band is the share of the best that a level must reach, and what the confidence of an answer allows: the answer reaches low, and
// no lower level reaches high. With the best as the goal, low is the margin below the best.
func (g Goal) Band() (low, share, high float64) {
	share, slack := g.share(), math.Log1p(g.Margin)
	if g.Reach >= 1 {
		slack = math.Log1p(g.Margin / 2)
	}
	return share * math.Exp(-slack), share, share * math.Exp(min(slack, -math.Log(share)/2))
}
