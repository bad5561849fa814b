package tune

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Objective is what trials at a load must fulfil: a Search Goal of MLRsearch (RFC 9971), for one trial duration. A trial
// that does not meet the objective has the place of a High-Loss Trial there.
type Objective struct {
	Trials     int     // Goal Duration Sum, in trials, which all last equally long
	Exceed     float64 // Goal Exceed Ratio: the share of trials at a lower bound that may miss the objective
	Confidence float64 // that the bounds are right, such as 0.95
}

// Trial is what a trial at a load showed.
type Trial int8

// What trials show.
const (
	NoTrial Trial = iota
	Met           // a Low-Loss Trial
	Missed        // a High-Loss Trial
	Late          // Missed, because the load generator fell behind its schedule by itself
)

// Bound is what the trials at a load say about it: its Load Classification (RFC 9971).
type Bound string

// Classes of loads.
const (
	Undecided  Bound = ""
	LowerBound Bound = "lower bound" // whatever the rest of the Goal Duration Sum shows, enough trials meet the objective
	UpperBound Bound = "upper bound" // likewise too few
)

// bound classifies a load by its trials after the first, as Appendix A of RFC 9971 does for trials that all last
// equally long.
func (o Objective) bound(met, missed int) Bound {
	sum := float64(max(met+missed, o.Trials))
	switch limit := o.Exceed * sum; {
	case float64(missed) > limit:
		return UpperBound
	case sum-float64(met) <= limit:
		return LowerBound
	}
	return Undecided
}

// sure is the probability that the share of trials that miss the objective is at most the exceed ratio: of a beta
// distribution, where the prior is even.
func (o Objective) sure(met, missed int) float64 {
	return distuv.Beta{Alpha: 1 + float64(missed), Beta: 1 + float64(met)}.CDF(o.Exceed)
}

// Seek returns what is known of the highest load that meets the objective, and what the next block measures.
// trials holds what each block showed at each load; the loads rise. Of the step, Upper is the Relevant Upper Bound (RFC
// 9971), the lowest load that is an upper bound; Answer is the Relevant Lower Bound, the highest load below Upper that is
// a lower bound; -1 stands for none. As long as the search goes on, both are the nearest
// loads of which most trials say so. No load meets the objective if Answer is -1 in the end, and every load does if
// Upper is.
//
// The first block measures loads that double. Then each block measures both bounds and the load in the middle of them,
// in logarithms. A load's first trial only guides the search: it may have made the load a bound by chance. Its
// classification counts the later trials, fresh ones, in a block with the other bound. The Goal Width is the
// distance of neighbouring loads. The search ends with the bounds side by side, the Goal Duration Sum of trials at each, and
// the confidence reached, for which there may be more trials.
func Seek(trials [][]Trial, loads []float64, closed []bool, o Objective) Step {
	s := newSeeker(trials, loads, closed, o)
	step := Step{Stage: Narrowing, Answer: -1, Best: -1, Upper: -1, Levels: make([]Level, len(loads))}
	lower, upper, measured := -1, -1, false
	for _, i := range s.known() {
		measured = true
		l := s.of[i]
		step.Levels[i] = Level{Blocks: l.blocks, Met: l.met, Missed: l.missed, Late: l.late, Bound: l.bound}
		switch {
		case upper >= 0: // an upper bound below it decides
		case l.bad:
			upper = i
		default:
			lower = i
		}
	}
	if !measured {
		step.Stage, step.Measure = Screening, s.doubling()
		return step
	}
	step.Answer, step.Upper, step.Sure = lower, upper, 1
	if lower >= 0 {
		step.Sure *= s.of[lower].sure
	}
	if upper >= 0 {
		step.Sure *= s.of[upper].sure
	}
	middle := s.middle(lower, upper)
	if middle < 0 {
		step.Stage = Confirming
	}
	if middle < 0 && s.whole(lower, o) && s.whole(upper, o) && step.Sure >= o.Confidence {
		step.Stage = Found
		return step
	}
	for _, i := range []int{lower, middle, upper} {
		if i >= 0 && !closed[i] {
			step.Measure = append(step.Measure, i)
		}
	}
	return step
}

// seeker is what is known of each load.
type seeker struct {
	loads  []float64
	closed []bool
	of     []load
}

type load struct {
	blocks      int // with a trial
	met, missed int // after the first
	late        int // of missed
	bad         bool
	bound       Bound
	sure        float64 // of what bad says
}

func newSeeker(trials [][]Trial, loads []float64, closed []bool, o Objective) *seeker {
	s := &seeker{loads, closed, make([]load, len(loads))}
	for i := range s.of {
		l := &s.of[i]
		first := NoTrial
		for _, block := range trials {
			switch t := block[i]; {
			case t == NoTrial:
				continue
			case l.blocks == 0:
				first = t
			case t == Met:
				l.met++
			default:
				l.missed++
				if t == Late {
					l.late++
				}
			}
			l.blocks++
		}
		l.bad = float64(l.missed) > o.Exceed*float64(l.met+l.missed)
		if l.met+l.missed == 0 {
			l.bad = first != Met
		}
		l.bound, l.sure = o.bound(l.met, l.missed), o.sure(l.met, l.missed)
		if l.bad {
			l.sure = 1 - l.sure
		}
		if closed[i] && l.blocks > 0 { // it failed again and again, which no further trial can change
			l.bad, l.bound, l.sure = true, UpperBound, 1
		}
	}
	return s
}

// whole reports whether a load has the trials of the Goal Duration Sum, or can have no more; also for no load, -1. A load is
// often classified sooner. But a search that ended there would end by luck: where half of the trials miss the objective, five
// misses in a row are not rare.
func (s *seeker) whole(i int, o Objective) bool {
	return i < 0 || s.closed[i] || s.of[i].met+s.of[i].missed >= o.Trials
}

// known are the loads with trials.
func (s *seeker) known() []int {
	var out []int
	for i := range s.of {
		if s.of[i].blocks > 0 {
			out = append(out, i)
		}
	}
	return out
}

// doubling are the lowest load that can be measured, the next that is at least twice as high, and so on, and the highest.
func (s *seeker) doubling() []int {
	var out []int
	last := -1
	for i, closed := range s.closed {
		if closed {
			continue
		}
		if last = i; len(out) == 0 || s.loads[i] >= 2*s.loads[out[len(out)-1]] {
			out = append(out, i)
		}
	}
	if last >= 0 {
		out = append(out, last)
	}
	return slices.Compact(out)
}

// middle is the load between two others, not measured yet, that is nearest to their middle in logarithms; -1 if there is none.
// If lower or upper is missing, it is the load nearest to that end of the range: the trial at the end itself gave no value.
func (s *seeker) middle(lower, upper int) int {
	last := len(s.loads) - 1
	from, to := s.loads[max(lower, 0)], s.loads[last]
	if upper >= 0 {
		to = s.loads[upper]
	}
	best, at := -1, (math.Log(from)+math.Log(to))/2
	switch {
	case lower < 0:
		at = math.Log(from)
	case upper < 0:
		at, upper = math.Log(to), last+1
	}
	for i := lower + 1; i < upper; i++ {
		if !s.closed[i] && (best < 0 || math.Abs(math.Log(s.loads[i])-at) < math.Abs(math.Log(s.loads[best])-at)) {
			best = i
		}
	}
	return best
}
