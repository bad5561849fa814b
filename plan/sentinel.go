package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
	"tare/study"
)

// The sentinel is one workload that is always the same, run between blocks. What
// it shows is watched by stat.Detector as it comes, on each node by itself; where it
// changes, an epoch of that node begins, and the node's blocks between the last sentinel before the change and the
// first after it run again: one of them straddles the change, and which it is
// cannot be told without looking at what is to be compared.
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
	Node   string       // that changed
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
	Node  string
	Value float64 // of the response
	Wait  float64 // run-queue wait, as a share of the time; NaN if it was not read
}

// sentinelState is the state of the sentinel.
type sentinelState struct {
	study   *study.Sentinel // nil: the study has no sentinel
	key     string
	skipped bool
	fed     int
	passes  map[string][][]sentinelTry // by node, by pass-1, by attempt
}

type sentinelTry struct {
	try
	wait float64
}

// watch is the walk's part of it, for one node.
type watch struct {
	pace
	failing int
	off     string // why there are no more sentinels
	points  []Sentinel
	gap     []ref   // blocks since the last point
	gaps    [][]ref // by point: the blocks before it
	epochs  []*epochState
	wall    stat.Detector // of the time
	wait    stat.Detector
}

// pace decides when a node's sentinel is due.
type pace struct {
	at    int // tries consumed of the pass
	made  int
	since int           // blocks since the last
	time  time.Duration // of sentinels
	spent time.Duration // on the node
}

// took counts a sentinel.
func (v *pace) took(d time.Duration) {
	v.made++
	v.since = 0
	v.time += d
	v.spent += d
}

type ref struct{ pass, stratum int }

type epochState struct {
	node   string
	at     int // index of its first point
	what   []string
	blocks []Straddling
}

type straddler struct {
	epoch *epochState
	index int // in its blocks
}

// watch is what is seen of a node.
func (p *Plan) watch(node string) *watch {
	w := p.walk.watches[node]
	if w == nil {
		w = &watch{wall: stat.Detector{Floor: timeFloor}, wait: stat.Detector{Floor: waitFloor}}
		p.walk.watches[node] = w
	}
	return w
}

// spend adds to the time that the study took, and took of a node.
func (p *Plan) spend(node string, d time.Duration) {
	p.walk.spent += d
	p.watch(node).spent += d
}

// noteSentinel records a finished trial of the sentinel.
func (p *Plan) noteSentinel(t *record.Trial) {
	s := &p.sentinel
	n := sentinelTry{try: p.tryOf(t, s.study.Workload.Responses[0]), wait: waitOf(t)}
	passes := s.passes[n.node]
	for len(passes) < t.Block {
		passes = append(passes, nil)
	}
	s.passes[n.node] = passes
	tries := passes[t.Block-1]
	i, found := slices.BinarySearchFunc(tries, n.attempt, func(o sentinelTry, a int) int { return o.attempt - a })
	if found {
		tries[i] = n
	} else {
		passes[t.Block-1] = slices.Insert(tries, i, n)
		s.fed++
		p.fed++
	}
	if w := p.walk.waiting; w.cell != sentinelCell || w.block != t.Block || found || i+1 < len(passes[t.Block-1]) || s.fed == 1 || n.node != p.walk.node {
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

// sentinelDue decides before a block whether the sentinel runs first on its node: at
// the beginning, and whenever another one keeps within its share of the time there.
func (p *Plan) sentinelDue(w *pace) bool {
	s := p.sentinel.study
	switch {
	case !p.watching():
		return false
	case w.made == 0:
		return true
	case s.Every > 0:
		return w.since >= s.Every
	case w.since == 0:
		return false
	}
	return float64(w.time+w.time/time.Duration(w.made)) <= s.Share*float64(w.spent)
}

// takeSentinel follows the walk over the sentinel that is due; false when it is
// yet to run.
func (p *Plan) takeSentinel(w *watch, node string) bool {
	t := p.sentinelAt(node, p.walk.pass, &w.at)
	if t == nil {
		if !p.sentinel.skipped {
			return false
		}
		w.off = "this host cannot run it"
		return true
	}
	w.took(t.duration)
	p.walk.spent += t.duration
	if !t.ok || !t.has || !(t.value > 0) || math.IsInf(t.value, 0) {
		if w.failing++; w.failing == giveUpAfter {
			w.off = fmt.Sprintf("failed %d times running", giveUpAfter)
		}
		return true
	}
	w.failing = 0
	w.points = append(w.points, Sentinel{Seq: t.seq, Node: node, Value: t.value, Wait: t.wait})
	w.gaps, w.gap = append(w.gaps, w.gap), nil
	if k, changed := w.wall.Add(math.Log(t.value)); changed {
		p.change(w, node, k, ChangedTime)
	}
	if k, changed := w.wait.Add(t.wait); changed {
		p.change(w, node, k, ChangedWait)
	}
	return true
}

// nextSentinel returns the trial of the sentinel to make.
func (p *Plan) nextSentinel(pass int, node string) Next {
	n := Next{Cell: p.sentinel.study.Cell, Block: pass, Attempt: 1, Seq: p.seq + 1, Stratum: -1, Node: node, Sentinel: true}
	for _, passes := range p.sentinel.passes {
		if pass <= len(passes) {
			for _, t := range passes[pass-1] {
				n.Attempt = max(n.Attempt, t.attempt+1)
			}
		}
	}
	return n
}

// sentinelAt returns a node's try of the sentinel in a pass after the first at of them, and counts it; nil if there is none.
func (p *Plan) sentinelAt(node string, pass int, at *int) *sentinelTry {
	passes := p.sentinel.passes[node]
	if pass > len(passes) {
		return nil
	}
	for tries := passes[pass-1]; *at < len(tries); {
		t := &tries[*at]
		*at++
		if !t.interrupted {
			return t
		}
	}
	return nil
}

// change begins an epoch of a node at a point and puts the blocks before it down to
// run again.
func (p *Plan) change(w *watch, node string, k int, what string) {
	for _, e := range w.epochs {
		if max(e.at-k, k-e.at) <= sameChange {
			e.what = ordered.Add(e.what, what)
			return
		}
	}
	e := &epochState{node: node, at: k, what: []string{what}}
	for _, r := range w.gaps[k] {
		if !slices.ContainsFunc(e.blocks, func(s Straddling) bool { return s.Stratum == r.stratum && s.Block == r.pass }) {
			e.blocks = append(e.blocks, Straddling{Stratum: r.stratum, Block: r.pass})
			p.walk.queue = append(p.walk.queue, straddler{e, len(e.blocks) - 1})
		}
	}
	w.epochs = append(w.epochs, e)
	slices.SortStableFunc(w.epochs, func(a, b *epochState) int { return a.at - b.at })
}

// beginAgain begins the next block of the queue, if it may run again.
func (p *Plan) beginAgain() {
	w := &p.walk
	next := w.queue[0]
	w.queue = w.queue[1:]
	b := &next.epoch.blocks[next.index]
	s := &p.strata[b.Stratum]
	if s.baseline >= 0 && p.cells[s.baseline].gaveUp != "" || s.blocks() == 0 {
		return
	}
	cost := s.time / time.Duration(s.blocks())
	if budget := p.study.Budget.Time; budget > 0 && w.spent+cost > budget {
		return
	}
	if float64(w.redone+cost) > againShare*float64(w.spent-w.redone) {
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
	node := next.epoch.node
	if !p.has(node) {
		node = p.turn(b.Block, b.Stratum)
	}
	stay := p.stay(ref{b.Block, b.Stratum}, cells, node)
	for ; stay.lost; stay = p.stay(ref{b.Block, b.Stratum}, cells, node) {
		p.leave(b.Block, cells, stay)
	}
	w.node, w.until = stay.node, stay.until
	w.block, w.of, w.again = p.blockOrder(b.Block, b.Stratum, round), ref{b.Block, b.Stratum}, true
}

// Epochs returns the stretches between changes of the machine, node by node; none of
// a node that did not change.
func (p *Plan) Epochs() []Epoch {
	p.advance()
	var out []Epoch
	for _, node := range slices.Sorted(maps.Keys(p.walk.watches)) {
		w := p.walk.watches[node]
		if len(w.epochs) == 0 {
			continue
		}
		out = append(out, Epoch{Node: node, Seq: w.points[0].Seq})
		for _, e := range w.epochs {
			x := Epoch{Node: node, Seq: w.points[e.at].Seq, What: e.what, Blocks: e.blocks}
			if e.at > 0 {
				x.After = w.points[e.at-1].Seq
			}
			out = append(out, x)
		}
	}
	return out
}

// Sentinels returns the sentinel's values, node by node, in the order in which they were
// read.
func (p *Plan) Sentinels() (out []Sentinel) {
	p.advance()
	for _, node := range slices.Sorted(maps.Keys(p.walk.watches)) {
		out = append(out, p.walk.watches[node].points...)
	}
	return out
}

// Watches reports whether the study goes on with a sentinel on a node: it has one, it
// was begun with it, and this host can run it.
func (p *Plan) Watches() bool {
	p.advance()
	off := 0
	for _, w := range p.walk.watches {
		if w.off != "" {
			off++
		}
	}
	return p.watching() && !p.sentinel.skipped && (off == 0 || off < max(len(p.nodes), len(p.walk.watches)))
}
