// Package tune finds the level of an ordered factor to set: the best, or the lowest that reaches a
// share of the best. After each block it says which levels the next block must measure. So levels that
// cannot change the answer cost no more time.
//
// The data path: 1. the first block measures a screen, the levels at doubling positions; 2. fit
// estimates all levels from all blocks, which need not hold the same levels; 3. draws from the
// estimate show how probable each level is as the answer; 4. the next block has the levels that may be
// the answer, the best one, and levels between them that were not measured yet; 5. once the answer is
// clear, fresh blocks confirm it.
package tune

import (
	"math"
	"slices"
)

// Goal is what is looked for.
type Goal struct {
	Reach      float64 // share of the best that a level must reach, over 0 and up to 1; 1: the best itself
	Margin     float64 // relative difference that does not matter, such as 0.03
	Confidence float64 // such as 0.95
}

// Level is what is known about a level.
type Level struct {
	Blocks int     // that have measured it; 0: the other fields mean nothing
	Share  float64 // of the best level's value, in the estimate
	Lo, Hi float64 // interval of Share, at the goal's confidence
	Answer float64 // probability that it is the answer
}

// Stage is how far the search has come.
type Stage string

// Stages.
const (
	Screening  Stage = "screening"  // the first block
	Narrowing  Stage = "narrowing"  // several levels may be the answer
	Confirming Stage = "confirming" // one level is the answer, and fresh blocks must agree
	Found      Stage = "found"
)

// Step is what is known after some blocks, and what comes next.
type Step struct {
	Stage   Stage
	Measure []int   // levels of the next block, rising; none if Found
	Answer  int     // the most probable answer; -1 before the first block
	Best    int     // the level with the highest estimate; -1 before the first block
	Sure    float64 // probability that Answer is right, within the margin
	Levels  []Level
}

const (
	// streak is how many blocks in a row must give the same clear answer. The first block makes the
	// answer clear, perhaps by chance. The other two are fresh and confirm it.
	streak = 3
	// chance is the least probability of being the answer at which a level is measured again.
	chance = 0.05
)

// Next returns what is known after the blocks, and what the next block measures. values holds a value
// for each block and level. More is better, and NaN stands for a level that the block has not measured.
// closed[i] says that level i cannot be measured. The random numbers depend only on the values, so the
// same values give the same step.
func Next(values [][]float64, closed []bool, g Goal) Step {
	open := make([]int, 0, len(closed))
	for i, c := range closed {
		if !c {
			open = append(open, i)
		}
	}
	step := Step{Stage: Screening, Measure: screen(open), Answer: -1, Best: -1, Levels: make([]Level, len(closed))}
	clear, last := 0, -1
	for n := max(1, len(values)-streak+1); n <= len(values); n++ {
		s := look(values[:n], open, g)
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
	return step
}

// screen returns the first, second, third, fifth, ninth ... and last of the levels, or all if they are
// few.
func screen(open []int) []int {
	const few = 6
	if len(open) <= few {
		return open
	}
	out := []int{open[0]}
	for i := 1; i < len(open); i *= 2 {
		out = append(out, open[i])
	}
	return slices.Compact(append(out, open[len(open)-1]))
}

// look judges the blocks by themselves; the stage is Narrowing or Confirming.
func look(values [][]float64, open []int, g Goal) Step {
	e, ok := fit(values)
	step := Step{Stage: Narrowing, Answer: -1, Best: -1, Levels: make([]Level, len(values[0]))}
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
	probes := e.probes(open, answer, best)
	// Two other levels confirm the answer: the best sets the share, and the level below must miss it.
	need := []int{e.levels[answer], e.levels[best]}
	if answer > 0 {
		need = append(need, e.levels[answer-1])
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

// nearBest is a distance in logarithms. If a neighbour of the best is no farther below it, a better
// level may lie between the two.
const nearBest = 0.25

// once returns the levels near the best that only one block has measured. One reading may be far off, and must not
// rule a level out.
func (e *estimate) once(best int) []int {
	var out []int
	for k, i := range e.levels {
		if e.blocks[k] < 2 && e.mean[k] >= e.mean[best]-nearBest {
			out = append(out, i)
		}
	}
	return out
}

// probes returns levels that were not measured and that may change the answer: levels of the screen,
// the middle of the gap below the answer, the middles of the gaps beside the best if both ends of a gap
// are near it, and, once, the middle of the widest gap, where a second peak may be.
func (e *estimate) probes(open []int, answer, best int) []int {
	at := make([]int, len(e.levels)) // places of the measured levels among the open ones
	for k, i := range e.levels {
		at[k] = slices.Index(open, i)
	}
	var out []int
	for _, i := range screen(open) { // again, if no trial was good
		if !slices.Contains(e.levels, i) {
			out = append(out, i)
		}
	}
	middle := func(k int) { // of the gap that ends at the kth measured level
		if k > 0 && k < len(at) && at[k]-at[k-1] > 1 {
			out = append(out, open[(at[k]+at[k-1])/2])
		}
	}
	near := func(k int) bool {
		return k >= 0 && k < len(at) && e.mean[k] >= e.mean[best]-nearBest
	}
	middle(answer)
	if near(best - 1) {
		middle(best)
	}
	if near(best + 1) {
		middle(best + 1)
	}
	// The screen leaves its widest gap at the end. Probe the middle of the widest gap, unless a level
	// inside the screen's widest gap was measured already.
	if widest := e.widest(at); widest > 0 && !e.probed(open) {
		middle(widest)
	}
	return out
}

// widest returns the measured level at which the widest gap ends, or 0 if there is none.
func (e *estimate) widest(at []int) int {
	k := 0
	for j := 1; j < len(at); j++ {
		if gap := at[j] - at[j-1]; gap > 1 && (k == 0 || gap > at[k]-at[k-1]) {
			k = j
		}
	}
	return k
}

// probed reports whether a level within the screen's widest gap was measured.
func (e *estimate) probed(open []int) bool {
	s := screen(open)
	from, to, gap := 0, 0, 1
	for i := 1; i < len(s); i++ {
		a, b := slices.Index(open, s[i-1]), slices.Index(open, s[i])
		if b-a > gap {
			from, to, gap = s[i-1], s[i], b-a
		}
	}
	return gap == 1 || slices.ContainsFunc(e.levels, func(i int) bool { return i > from && i < to })
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
