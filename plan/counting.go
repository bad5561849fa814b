package plan

import (
	"slices"
	"time"

	"tare/record"
	"tare/study"
)

// A counting trial counts the system calls of one cell of a stratum, before the stratum's
// first block. It slows what it counts, so it belongs to no block: nothing is compared with
// it or waits for its value, and its failure does not count for the cell. A counting trial
// that fails is tried once more.
//
// Like the sentinel it is part of the walk. A stratum that was begun without one, by an
// older tare or on a host that could not count, continues without it.

// CoresSample is the name of a sample that package run adds to counting trials: the
// processors that the isolated endpoint's own program used, in cores.
const CoresSample = "counted_cores"

// ActiveSample is another: the rate of calls while the program was working, divided by the
// rate in the whole measured window.
const ActiveSample = "counted_active"

// WindowSample is a third: the length of the measured window in seconds.
const WindowSample = "counted_window"

// IsolatedSample names the samples that mark the isolated ends: one for each, with the labels
// of the end and its sandbox.
const IsolatedSample = "counted_end"

// countingTries is how often a stratum's counting trial may fail.
const countingTries = 2

// countingState is the state of counting trials.
type countingState struct {
	index   map[string]int // Cell.Key to stratum
	tries   [][]try        // by stratum, by attempt
	skipped []bool         // by stratum: this host cannot count
}

func newCounting(st *study.Study, skips []record.Skip) countingState {
	s := countingState{index: map[string]int{}, tries: make([][]try, len(st.Strata)), skipped: make([]bool, len(st.Strata))}
	skipped := map[string]bool{}
	for i := range skips {
		skipped[skips[i].Cell.Key()] = true
	}
	all := skipped[study.CountingAll().Key()]
	for i := range st.Strata {
		if c := st.Strata[i].Counting; c != nil {
			s.index[c.Key()] = i
			s.skipped[i] = all || skipped[c.Key()] || skipped[c.Without(study.FactorCounting).Key()]
		}
	}
	return s
}

// noteCounting notes a finished counting trial.
func (p *Plan) noteCounting(stratum int, t *record.Trial) {
	n := p.tryOf(t, p.strata[stratum].response)
	tries := p.counting.tries[stratum]
	i, found := slices.BinarySearchFunc(tries, n.attempt, func(o try, a int) int { return o.attempt - a })
	if found {
		tries[i] = n
	} else {
		p.counting.tries[stratum] = slices.Insert(tries, i, n)
		p.fed++
	}
	if w := p.walk.waiting; w.cell != countingCell-stratum || found || i < len(tries) {
		p.stale = true
	}
	p.walk.waiting = waiting{cell: nobody}
}

// begunWithout reports whether a stratum has trials of its first block, but no counting
// trial before it.
func (p *Plan) begunWithout(stratum int) bool {
	return len(p.counting.tries[stratum]) == 0 && slices.ContainsFunc(p.strata[stratum].cells, func(id int) bool {
		b := p.cells[id].at(1)
		return b != nil && len(b.tries) > 0
	})
}

// takeCounting continues the walk over the counting trial before a stratum's first block;
// false if that trial is still to run.
func (p *Plan) takeCounting(stratum int) bool {
	s := &p.strata[stratum]
	if s.counted || p.study.Strata[stratum].Counting == nil {
		return true
	}
	if p.begunWithout(stratum) {
		s.counted = true
		return true
	}
	failed, spent := 0, time.Duration(0)
	for _, t := range p.counting.tries[stratum] {
		if t.interrupted {
			continue
		}
		spent += t.duration
		if failed++; t.ok || failed == countingTries {
			s.counted = true
			if !t.ok {
				s.uncounted = t.reason
			}
			p.spend(p.walk.node, spent)
			return true
		}
	}
	s.counted = p.counting.skipped[stratum]
	return s.counted
}

// countingDue reports whether a stratum's counting trial is still to come.
func (p *Plan) countingDue(stratum int) bool {
	s := &p.strata[stratum]
	return p.study.Strata[stratum].Counting != nil && s.ending == nil && s.blocks() == 0 && !s.counted &&
		!p.counting.skipped[stratum] && !p.begunWithout(stratum)
}

// remainingCounting adds the counting trials that are still to come.
func (p *Plan) remainingCounting(out *Progress, estimate func(record.Cell) time.Duration) {
	for i := range p.strata {
		if !p.countingDue(i) || p.walk.block != nil && p.walk.of.stratum == i {
			continue
		}
		c := p.study.Strata[i].Counting
		d := time.Duration(0)
		if id, ok := p.index[c.Without(study.FactorCounting).Key()]; ok {
			d = p.cells[id].meanTime()
		}
		if d == 0 && estimate != nil {
			d = estimate(c)
		}
		if d == 0 {
			out.Unknown++
		}
		out.Counting++
		out.AtLeast, out.AtMost = out.AtLeast+1, out.AtMost+1
		out.LeastTime, out.MostTime = out.LeastTime+d, out.MostTime+d
	}
}

// nextCounting returns the counting trial to make.
func (p *Plan) nextCounting(stratum int, node string) Next {
	n := Next{Cell: p.study.Strata[stratum].Counting, Block: 1, Attempt: 1, Seq: p.seq + 1, Stratum: stratum, Node: node, Counting: true}
	for _, t := range p.counting.tries[stratum] {
		n.Attempt = t.attempt + 1
	}
	return n
}

// Uncounted returns why the counting trials of a stratum failed; "" if they did not.
func (p *Plan) Uncounted(stratum int) string {
	p.advance()
	return p.strata[stratum].uncounted
}
