package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// The sentinel is a workload that is always the same and runs between blocks. stat.Detector
// watches its values as they come. At a change an epoch begins, and the blocks between the
// last sentinel before the change and the first after it run again: one of them spans the
// change, and which one cannot be found without looking at the values to be compared.
//
// All of this is part of the walk, so it depends only on the study and the recorded results.
// A study that was begun without a sentinel, by an older tare or on a host that could not run
// it, continues without it: otherwise its first trial would have been one.

const (
	// maxAgain is how often one block may run again.
	maxAgain = 2
	// againShare bounds the time of all blocks that run again, as a share of the rest: on a
	// machine that changes all the time, the study must still make progress.
	againShare = 0.25
	// sameChange is how many sentinels apart changes of its time and of its wait may be to
	// count as one.
	sameChange = 2
	// waitFloor is the least change of the run-queue wait that matters, as a share of the time.
	waitFloor = 0.05
	// timeFloor is the least change of the sentinel's time that matters, as a
	// logarithm: less than the usual margin.
	timeFloor = 0.02
)

// What can change.
const (
	ChangedTime = "time" // the sentinel's response
	ChangedWait = "wait" // its run-queue wait
)

// Epoch is the part of a study between two changes of the machine.
type Epoch struct {
	Seq    int          // of its first sentinel
	After  int          // Seq of the last sentinel before the change; 0 for the first epoch
	What   []string     // what changed: ChangedTime, ChangedWait
	Blocks []Straddling // between After and Seq
}

// Straddling is a block between the two sentinels around a change.
type Straddling struct {
	Stratum int
	Block   int  // the pass
	Again   bool // it ran again
}

// Sentinel is one trial of the sentinel as the plan sees it.
type Sentinel struct {
	Seq   int
	Value float64 // of the response
	Wait  float64 // run-queue wait, as a share of the time; NaN if it was not read
}

// sentinelState is the state of the sentinel.
type sentinelState struct {
	study   *study.Sentinel // nil: the study has no sentinel
	key     string
	skipped bool
	fed     int
	passes  [][]sentinelTry // by pass-1, by attempt
}

type sentinelTry struct {
	try
	wait float64
}

// watch is the part of that state that belongs to the walk.
type watch struct {
	at      int // tries consumed of the pass
	made    int
	failing int
	off     string // why there are no more sentinels
	time    time.Duration
	since   int           // blocks since the last sentinel
	again   time.Duration // time of blocks that ran again
	points  []Sentinel
	gap     []ref   // blocks since the last point
	gaps    [][]ref // by point: the blocks before it
	epochs  []*epochState
	queue   []straddler
	wall    stat.Detector // of the time
	wait    stat.Detector
}

type ref struct{ pass, stratum int }

type epochState struct {
	at     int // index of its first point
	what   []string
	blocks []Straddling
}

type straddler struct {
	epoch *epochState
	index int // in its blocks
}

func newWatch() watch {
	return watch{wall: stat.Detector{Floor: timeFloor}, wait: stat.Detector{Floor: waitFloor}}
}

// noteSentinel records a finished trial of the sentinel.
func (p *Plan) noteSentinel(t *record.Trial) {
	s := &p.sentinel
	n := sentinelTry{try: tryOf(t, s.study.Workload.Responses[0]), wait: waitOf(t)}
	for len(s.passes) < t.Block {
		s.passes = append(s.passes, nil)
	}
	tries := s.passes[t.Block-1]
	i, found := slices.BinarySearchFunc(tries, n.attempt, func(o sentinelTry, a int) int { return o.attempt - a })
	if found {
		tries[i] = n
	} else {
		s.passes[t.Block-1] = slices.Insert(tries, i, n)
		s.fed++
		p.fed++
	}
	if w := p.walk.waiting; w.cell != sentinelCell || w.block != t.Block || found || i+1 < len(s.passes[t.Block-1]) || s.fed == 1 {
		p.stale = true
	}
	p.walk.waiting = waiting{cell: nobody}
}

// WaitSample is the name of a sample that package run adds to the sentinel's
// trials: the share of the time in which threads waited for a processor.
const WaitSample = "sentinel_wait"

// waitOf returns the run-queue wait of a trial of the sentinel; NaN if it was not read.
func waitOf(t *record.Trial) float64 {
	if v, ok := t.Sample(WaitSample); ok {
		return v
	}
	return math.NaN()
}

// watching reports whether the study has a sentinel. A study that was begun without it
// continues without it.
func (p *Plan) watching() bool {
	return p.sentinel.study != nil && (p.sentinel.fed > 0 || p.fed == 0)
}

// sentinelDue decides before a block whether the sentinel runs first: at the beginning, and
// whenever one more stays within its share of the time.
func (p *Plan) sentinelDue() bool {
	w, s := &p.walk.watch, p.sentinel.study
	switch {
	case !p.watching() || w.off != "":
		return false
	case w.made == 0:
		return true
	case s.Every > 0:
		return w.since >= s.Every
	case w.since == 0:
		return false
	}
	return float64(w.time+w.time/time.Duration(w.made)) <= s.Share*float64(p.walk.spent)
}

// takeSentinel continues the walk over the sentinel that is due; false if it is still to run.
func (p *Plan) takeSentinel() bool {
	w, s := &p.walk.watch, &p.sentinel
	var tries []sentinelTry
	if p.walk.pass <= len(s.passes) {
		tries = s.passes[p.walk.pass-1]
	}
	for w.at < len(tries) && tries[w.at].interrupted {
		w.at++
	}
	if w.at == len(tries) {
		if !s.skipped {
			return false
		}
		w.off = "this host cannot run it"
		return true
	}
	t := &tries[w.at]
	w.at++
	w.made++
	w.since = 0
	w.time += t.duration
	p.walk.spent += t.duration
	if !t.ok || !t.has || !(t.value > 0) || math.IsInf(t.value, 0) {
		if w.failing++; w.failing == giveUpAfter {
			w.off = fmt.Sprintf("failed %d times running", giveUpAfter)
		}
		return true
	}
	w.failing = 0
	w.points = append(w.points, Sentinel{Seq: t.seq, Value: t.value, Wait: t.wait})
	w.gaps, w.gap = append(w.gaps, w.gap), nil
	if k, changed := w.wall.Add(math.Log(t.value)); changed {
		p.change(k, ChangedTime)
	}
	if k, changed := w.wait.Add(t.wait); changed {
		p.change(k, ChangedWait)
	}
	return true
}

// change begins an epoch at a point, and queues the blocks before it to run again.
func (p *Plan) change(k int, what string) {
	w := &p.walk.watch
	for _, e := range w.epochs {
		if max(e.at-k, k-e.at) <= sameChange {
			if !slices.Contains(e.what, what) {
				e.what = append(e.what, what)
			}
			return
		}
	}
	e := &epochState{at: k, what: []string{what}}
	for _, r := range w.gaps[k] {
		if !slices.ContainsFunc(e.blocks, func(s Straddling) bool { return s.Stratum == r.stratum && s.Block == r.pass }) {
			e.blocks = append(e.blocks, Straddling{Stratum: r.stratum, Block: r.pass})
			w.queue = append(w.queue, straddler{e, len(e.blocks) - 1})
		}
	}
	w.epochs = append(w.epochs, e)
	slices.SortStableFunc(w.epochs, func(a, b *epochState) int { return a.at - b.at })
}

// beginAgain begins the next block of the queue, if it may run again.
func (p *Plan) beginAgain() {
	w := &p.walk
	next := w.watch.queue[0]
	w.watch.queue = w.watch.queue[1:]
	b := &next.epoch.blocks[next.index]
	s := &p.strata[b.Stratum]
	if s.baseline >= 0 && p.cells[s.baseline].gaveUp != "" || s.closed == 0 {
		return
	}
	cost := s.time / time.Duration(s.closed)
	if budget := p.study.Budget.Time; budget > 0 && w.spent+cost > budget {
		return
	}
	if float64(w.watch.again+cost) > againShare*float64(w.spent-w.watch.again) {
		return
	}
	cells := p.blockOrder(b.Block, b.Stratum, 0)
	round := 0
	for _, id := range cells {
		if c := p.cells[id].at(b.Block); c != nil {
			round = max(round, c.again)
		}
	}
	if round++; round > maxAgain {
		return
	}
	for _, id := range cells {
		if c := p.cells[id].at(b.Block); c != nil {
			c.again, c.good = round, 0
		}
	}
	b.Again = true
	w.block, w.of, w.again = p.blockOrder(b.Block, b.Stratum, round), ref{b.Block, b.Stratum}, true
}

// Epochs returns the parts between changes of the machine; nil if it did not change.
func (p *Plan) Epochs() []Epoch {
	p.advance()
	w := &p.walk.watch
	if len(w.epochs) == 0 {
		return nil
	}
	out := []Epoch{{Seq: w.points[0].Seq}}
	for _, e := range w.epochs {
		x := Epoch{Seq: w.points[e.at].Seq, What: e.what, Blocks: e.blocks}
		if e.at > 0 {
			x.After = w.points[e.at-1].Seq
		}
		out = append(out, x)
	}
	return out
}

// Sentinels returns the sentinel's values in the order in which they were read.
func (p *Plan) Sentinels() []Sentinel {
	p.advance()
	return p.walk.watch.points
}

// Watches reports whether the study uses a sentinel: it has one, was begun with it, and this
// host can run it.
func (p *Plan) Watches() bool {
	p.advance()
	return p.watching() && !p.sentinel.skipped && p.walk.watch.off == ""
}
