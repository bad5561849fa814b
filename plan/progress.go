package plan

import (
	"slices"
	"time"

	"tare/record"
)

// Progress is how far a study is and what is left of it. What is left at least
// holds when every comparison is decided at the next look and nothing fails; at
// most, when none is before the last.
type Progress struct {
	Done      int           `json:"done"` // trials noted, failed ones included
	Pass      int           `json:"pass"` // under way, from 1
	Passes    int           `json:"passes"`
	AtLeast   int           `json:"at_least"` // trials left
	AtMost    int           `json:"at_most"`
	LeastTime time.Duration `json:"least_time"`
	MostTime  time.Duration `json:"most_time"` // within the budget where the budget may cut
	Unknown   int           `json:"unknown"`   // trials of AtMost whose duration nothing is known of; they are counted as no time
}

// Remaining returns the progress. A cell's time is the mean of its trials so
// far; for a cell without any, estimate's answer, and where that is nil or zero
// the mean of its stratum's trials.
func (p *Plan) Remaining(estimate func(record.Cell) time.Duration) Progress {
	next, ok := p.advance()
	w := &p.walk
	out := Progress{Done: p.fed, Pass: w.pass, Passes: p.last}
	if !ok {
		return out
	}
	begun := p.cells[next].stratum
	nextLook := p.last
	var first time.Duration // of the first pass, which is always whole
	if p.study.Stop.Fixed <= 0 {
		for _, l := range p.rule.Looks {
			if l >= w.pass {
				nextLook = l
				break
			}
		}
	}
	for i := range p.strata {
		s := &p.strata[i]
		if s.ending != nil {
			continue
		}
		last, least := p.last, nextLook
		if p.study.Stop.Fixed <= 0 && (s.baseline < 0 || len(s.cells) < 2 || s.response == "") {
			last = min(last, max(w.pass, 3))
			least = last
		}
		mean, known := p.meanTime(s)
		for _, id := range s.cells {
			c := &p.cells[id]
			if c.skipped || c.gaveUp != "" {
				continue
			}
			from := s.closed
			if i == begun && !slices.Contains(w.block, id) {
				from++ // done in the block under way
			}
			d := c.meanTime()
			if d == 0 && estimate != nil {
				d = estimate(c.cell)
			}
			if d == 0 && known {
				d = mean
			}
			if d == 0 {
				out.Unknown += last - from
			}
			if from == 0 && w.pass == 1 {
				first += d
			}
			out.AtLeast += least - from
			out.AtMost += last - from
			out.LeastTime += time.Duration(least-from) * d
			out.MostTime += time.Duration(last-from) * d
		}
	}
	if b := p.study.Budget.Time; b > 0 {
		out.MostTime = min(out.MostTime, max(first, b-w.spent, 0))
		out.LeastTime = min(out.LeastTime, out.MostTime)
	}
	return out
}

// meanTime is the mean duration of a cell's noted trials, 0 without any.
func (c *cellState) meanTime() time.Duration {
	var sum time.Duration
	n := 0
	for _, b := range c.blocks {
		for _, t := range b {
			if !t.interrupted {
				sum += t.duration
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}

func (p *Plan) meanTime(s *stratumState) (mean time.Duration, known bool) {
	var sum time.Duration
	n := 0
	for _, id := range s.cells {
		if d := p.cells[id].meanTime(); d > 0 {
			sum += d
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / time.Duration(n), true
}

// Preview returns the first n trials of the first pass in order, all of them for
// n <= 0, as if nothing had been done.
func (p *Plan) Preview(n int) []Next {
	var out []Next
	for _, stratum := range p.passOrder(1) {
		for _, id := range p.blockOrder(1, stratum) {
			if n > 0 && len(out) == n {
				return out
			}
			out = append(out, Next{Cell: p.cells[id].cell, Block: 1, Attempt: 1, Seq: len(out) + 1, Stratum: stratum})
		}
	}
	return out
}
