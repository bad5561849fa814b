package plan

import (
	"slices"
	"time"

	"tare/record"
)

// Progress is how far a study is, and what is left. The least is left if every comparison is
// decided at the next look and nothing fails; the most, if none is decided before the last
// look.
type Progress struct {
	Done      int           `json:"done"` // trials recorded, including failed ones
	Pass      int           `json:"pass"` // present pass, from 1
	Passes    int           `json:"passes"`
	AtLeast   int           `json:"at_least"` // trials left
	AtMost    int           `json:"at_most"`
	LeastTime time.Duration `json:"least_time"`            // of trials, one after another
	MostTime  time.Duration `json:"most_time"`             // within the budget, if the budget may cut
	Past      time.Duration `json:"past_budget,omitempty"` // of MostTime: what the first pass takes past the end of the budget
	Unknown   int           `json:"unknown"`               // trials of AtMost of unknown duration; they count as no time

	Sentinels int `json:"sentinels,omitempty"` // of AtMost, about: trials of the sentinel
	Counting  int `json:"counting,omitempty"`  // of AtMost: trials that count system calls
}

// Across returns the progress with the times that pass if so many machines measure at the same time; 0: one.
func (r Progress) Across(machines int) Progress {
	r.LeastTime /= time.Duration(max(1, machines))
	r.MostTime /= time.Duration(max(1, machines))
	r.Past /= time.Duration(max(1, machines))
	return r
}

// Remaining returns the progress. A cell's time is the mean of its trials so far; without
// trials, estimate's answer, at the speed of the trials so far; if that is nil or zero, the mean
// of its stratum's trials, or else of those of the same level of the compared factor.
func (p *Plan) Remaining(estimate func(record.Cell) time.Duration) Progress {
	_, ok := p.advance()
	w := &p.walk
	out := Progress{Done: p.fed, Pass: w.pass, Passes: p.last}
	if !ok {
		return out
	}
	begun := -1 // stratum of the present block
	if w.block != nil {
		begun = w.of.stratum
	}
	blocks := [2]int{} // of all strata, at least and at most
	nextLook := p.last
	var first time.Duration // of the first pass, which is always complete
	firsts := 0
	speeds := p.speeds(estimate)
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
		if n := s.blocks(); last > n {
			blocks[0], blocks[1] = blocks[0]+max(least-n, 0), blocks[1]+last-n
		}
		mean, known := p.meanTime(s)
		for _, id := range s.cells {
			c := &p.cells[id]
			if c.skipped || c.gaveUp != "" || c.over(s.closed+1) || !s.asks(w.pass, id) {
				continue
			}
			from := s.blocks()
			if i == begun && !w.again && !slices.Contains(w.block, id) {
				from++ // done in the present block
			}
			d := c.meanTime()
			if d == 0 && estimate != nil {
				d = speeds.at(estimate(c.cell), p.compared(c.cell))
			}
			if d == 0 && known {
				d = mean
			}
			if d == 0 {
				d = speeds[p.compared(c.cell)].mean()
			}
			if d == 0 {
				out.Unknown += last - from
			}
			if from == 0 && w.pass == 1 {
				first, firsts = first+d, firsts+1
			}
			out.AtLeast += least - from
			out.AtMost += last - from
			out.LeastTime += time.Duration(least-from) * d
			out.MostTime += time.Duration(last-from) * d
		}
	}
	p.remainingAgain(&out)
	p.remainingCounting(&out, estimate)
	p.remainingSentinels(&out, blocks, estimate)
	if b := p.study.Budget.Time; b > 0 {
		left := max(b-w.spent, 0)
		if first >= left { // it uses the budget up, so nothing follows it
			out.AtMost = min(out.AtMost, firsts+out.Sentinels+out.Counting)
			out.AtLeast = min(out.AtLeast, out.AtMost)
			out.Past = first - left
		}
		out.MostTime = min(out.MostTime, max(first, left))
		out.LeastTime = min(out.LeastTime, out.MostTime)
	}
	return out
}

// speed is how long the trials of some cells took, beside what they were expected to take.
type speed struct {
	cells        int           // that have trials
	took         time.Duration // the sum of their means
	of, estimate time.Duration // of those that were expected to take some time: what they took, and what was expected
}

func (s speed) mean() time.Duration {
	if s.cells == 0 {
		return 0
	}
	return s.took / time.Duration(s.cells)
}

// speeds are by the level of the compared factor. A busy host makes each trial of a machine ten
// times as long as expected, and those of a process hardly longer.
type speeds map[string]speed

func (s speeds) at(estimate time.Duration, level string) time.Duration {
	if x := s[level]; x.estimate > 0 {
		return time.Duration(float64(estimate) * float64(x.of) / float64(x.estimate))
	}
	return estimate
}

func (p *Plan) compared(c record.Cell) string {
	l, _ := c.Get(p.study.Compare)
	return l
}

// speeds sums up the trials so far.
func (p *Plan) speeds(estimate func(record.Cell) time.Duration) speeds {
	out := speeds{}
	for i := range p.cells {
		c := &p.cells[i]
		d := c.meanTime()
		if d == 0 {
			continue
		}
		x := out[p.compared(c.cell)]
		x.cells, x.took = x.cells+1, x.took+d
		if estimate != nil {
			if e := estimate(c.cell); e > 0 {
				x.of, x.estimate = x.of+d, x.estimate+e
			}
		}
		out[p.compared(c.cell)] = x
	}
	return out
}

// remainingAgain adds the blocks that are to run again.
func (p *Plan) remainingAgain(out *Progress) {
	add := func(cells []int) {
		for _, id := range cells {
			if c := &p.cells[id]; c.gaveUp == "" {
				d := c.meanTime()
				out.AtLeast, out.AtMost = out.AtLeast+1, out.AtMost+1
				out.LeastTime, out.MostTime = out.LeastTime+d, out.MostTime+d
			}
		}
	}
	w := &p.walk
	if w.again {
		add(w.block)
	}
	for _, q := range w.queue {
		b := q.epoch.blocks[q.index]
		add(p.blockOrder(b.Block, b.Stratum, 0))
	}
}

// remainingSentinels adds the trials of the sentinel: their share of the remaining time.
func (p *Plan) remainingSentinels(out *Progress, blocks [2]int, estimate func(record.Cell) time.Duration) {
	if !p.watching() || p.sentinel.skipped {
		return
	}
	// The blocks that are left fall to all nodes alike.
	nodes := p.nodes
	if len(nodes) == 0 {
		nodes = []string{p.walk.node}
	}
	least, most, rest := out.LeastTime/time.Duration(len(nodes)), out.MostTime/time.Duration(len(nodes)), [2]int{blocks[0] / len(nodes), blocks[1] / len(nodes)}
	for _, n := range nodes {
		if w := p.watch(n); w.off == "" {
			p.remainingOn(w, out, rest, least, most, estimate)
		}
	}
}

// remainingOn adds the trials of the sentinel on one node, where so many blocks and so
// much time are left.
func (p *Plan) remainingOn(w *watch, out *Progress, blocks [2]int, leastTime, mostTime time.Duration, estimate func(record.Cell) time.Duration) {
	s := p.sentinel.study
	var d time.Duration
	if w.made > 0 {
		d = w.time / time.Duration(w.made)
	} else if estimate != nil {
		d = estimate(s.Cell)
	}
	number := func(blocks int, rest time.Duration) (n int) {
		switch {
		case s.Every > 0 && w.made == 0:
			n = (blocks - 1) / s.Every
		case s.Every > 0:
			n = (blocks - 1 + w.since) / s.Every
		case d > 0:
			n = int(min(float64(rest)*s.Share/(1-s.Share)/float64(d), float64(max(blocks-1, 0))))
		}
		if w.made == 0 {
			n++
		}
		return n
	}
	least, most := number(blocks[0], leastTime), number(blocks[1], mostTime)
	if d == 0 {
		out.Unknown += most
	}
	out.Sentinels += most
	out.AtLeast, out.AtMost = out.AtLeast+least, out.AtMost+most
	out.LeastTime, out.MostTime = out.LeastTime+time.Duration(least)*d, out.MostTime+time.Duration(most)*d
}

// meanTime returns the mean duration of a cell's recorded trials, 0 without trials.
func (c *cellState) meanTime() time.Duration {
	var sum time.Duration
	n := 0
	for _, b := range c.blocks {
		for _, t := range b.tries {
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

// Preview returns the first n trials of the first pass in order, all for n <= 0, as if nothing
// had been done. If the sentinel runs by its share of the time, only its first trial has a
// place yet.
func (p *Plan) Preview(n int) []Next {
	var out []Next
	full := func() bool { return n > 0 && len(out) == n }
	watch := p.Watches()
	sentinels, blocks := 0, make(map[string]int)
	for _, stratum := range p.passOrder(1) {
		if p.strata[stratum].waits {
			continue
		}
		node := p.turn(1, stratum)
		i := blocks[node]
		blocks[node]++
		if watch && !full() && (i == 0 || p.sentinel.study.Every > 0 && i%p.sentinel.study.Every == 0) {
			sentinels++
			out = append(out, Next{Cell: p.sentinel.study.Cell, Block: 1, Attempt: sentinels, Seq: len(out) + 1, Stratum: -1, Node: node, Sentinel: true})
		}
		if !full() && p.countingDue(stratum) {
			out = append(out, Next{Cell: p.study.Strata[stratum].Counting, Block: 1, Attempt: 1, Seq: len(out) + 1, Stratum: stratum, Node: node, Counting: true})
		}
		for _, id := range p.blockOrder(1, stratum, 0) {
			if full() {
				return out
			}
			out = append(out, Next{Cell: p.cells[id].cell, Block: 1, Attempt: 1, Seq: len(out) + 1, Stratum: stratum, Node: node, Turns: p.study.WorkloadOf(stratum).Turns})
		}
	}
	return out
}
