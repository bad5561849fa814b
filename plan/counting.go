package plan

import (
	"slices"
	"time"

	"tare/record"
	"tare/study"
)

// A counting trial counts the system calls of one cell of a stratum, before the
// stratum's first block. It slows what it counts, so it is of no block: nothing is
// compared with it, nothing waits for its value, and the cell whose place it takes
// neither fails nor is given up by it. One that fails is tried once more.
//
// Like the sentinel it is part of the walk. A stratum that was begun without one,
// by an older tare or where the host could not count, goes on without.

// CoresSample is the name of a sample that package run adds to counting trials: the
// processors that the isolated end's own program used, in cores.
const CoresSample = "counted_cores"

// ActiveSample is the name of another: the rate of calls while the program was at
// work over that in the whole measured window.
const ActiveSample = "counted_active"

// WindowSample is the name of a third: how long the measured window was, in
// seconds.
const WindowSample = "counted_window"

// IsolatedSample is the name of those, one for each end, with the labels of the end and
// its sandbox, that say which ends are the isolated ones.
const IsolatedSample = "counted_end"

// countingTries is how often a stratum's counting trial may fail.
const countingTries = 2

// countingState is what is noted of counting trials.
type countingState struct {
	index   map[string]int // Cell.Key to stratum
	tries   [][]try        // by stratum, by attempt
	skipped []bool         // by stratum: this host cannot
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
	n := tryOf(t, p.strata[stratum].response)
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

// begunWithout reports whether a stratum has trials of its first block, and none
// that counted before it.
func (p *Plan) begunWithout(stratum int) bool {
	return len(p.counting.tries[stratum]) == 0 && slices.ContainsFunc(p.strata[stratum].cells, func(id int) bool {
		b := p.cells[id].at(1)
		return b != nil && len(b.tries) > 0
	})
}

// takeCounting follows the walk over the counting trial before a stratum's first
// block; false when it is yet to run.
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
			p.walk.spent += spent
			return true
		}
	}
	s.counted = p.counting.skipped[stratum]
	return s.counted
}

// countingDue reports whether a stratum's counting trial is yet to come.
func (p *Plan) countingDue(stratum int) bool {
	s := &p.strata[stratum]
	return p.study.Strata[stratum].Counting != nil && s.ending == nil && s.closed == 0 && !s.counted &&
		!p.counting.skipped[stratum] && !p.begunWithout(stratum)
}

// remainingCounting adds the counting trials that are yet to come.
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

// nextCounting is the counting trial to make.
func (p *Plan) nextCounting(stratum int) Next {
	n := Next{Cell: p.study.Strata[stratum].Counting, Block: 1, Attempt: 1, Seq: p.seq + 1, Stratum: stratum, Counting: true}
	for _, t := range p.counting.tries[stratum] {
		n.Attempt = t.attempt + 1
	}
	return n
}

// Uncounted returns why a stratum's calls were to be counted and are not: its
// counting trials failed. "" otherwise.
func (p *Plan) Uncounted(stratum int) string {
	p.advance()
	return p.strata[stratum].uncounted
}
