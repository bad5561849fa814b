// Package plan decides which trial comes next, and when the study ends. It is pure: no clock,
// no I/O, no goroutines. The same study, seed and results give the same next trial, so a
// study is resumed by passing its earlier results to a new Plan, in any order.
//
// The data path: 1. New lists the study's cells; 2. Done records a finished trial; 3. Next
// walks the study in its order (pass by pass, block by block) over the recorded trials, and
// stops at the first missing trial; 4. at the end of each pass the walk decides, from the
// blocks so far, which strata end.
//
// The order. In each pass every unfinished stratum has one block. The strata come in random
// order, and so do the cells within a block, back to back (order.go). So an interrupted study
// is a complete but coarser one.
//
// Failures. A failed trial is repeated at once, in its block, up to Study.Retries times. A
// trial that the user interrupted is repeated and does not count. If a cell still fails, its
// pair is missing in that block, and the study goes on. A cell without a value in three
// blocks in a row is given up. If its image cannot be had, it is left out after one trial, until a
// later session tries again.
//
// The sentinel. Between blocks a workload that is always the same runs, to detect changes of
// the machine. The blocks around a change run again (sentinel.go). Of a block that ran again,
// only the last round counts.
//
// Nodes. A block runs on one node, the strata visit the nodes in turn, and a block
// whose node is lost begins again on another (nodes.go).
//
// Counting. Before a stratum's first block a trial may count its system calls
// (counting.go).
//
// The budget never cuts a block that has begun, or the first pass, which shows what trials
// cost. If the rest of the time is too short for three blocks of every stratum, whole strata
// stay at one block, starting with the last in the study, because two blocks of everything
// would decide nothing. After that, blocks that no longer fit are left out.
//
// Time goes where it narrows an interval. A treatment whose interval is narrow enough has no
// part in later blocks, and a stratum ends when that is true of all its treatments. After the
// first look the widest strata come first in a pass, so the last time of a budget goes to them.
// A treatment that the rest of the time cannot decide gives it to those that it can (yield.go). An
// adaptive study measures only comparisons whose verdict is open (adaptive.go). Where the study
// says `turns: auto`, each look chooses the turns of the next blocks (turns.go). A search for a level begins where that of
// a like stratum ended (seed.go).
package plan

import (
	"fmt"
	"slices"
	"time"

	"tare/analyse/stat"
	"tare/analyse/tune"
	"tare/record"
	"tare/study"
)

// giveUpAfter is the number of blocks in a row without a value after which a cell is given up.
const giveUpAfter = 3

// Next is a trial to make.
type Next struct {
	Cell    record.Cell `json:"cell"`
	Block   int         `json:"block"`   // the pass, from 1
	Attempt int         `json:"attempt"` // from 1
	Seq     int         `json:"seq"`     // place in the order of execution, from 1
	Stratum int         `json:"stratum"` // index into Study.Strata; -1 for the sentinel
	Node    string      `json:"node,omitempty"`
	Turns   int         `json:"turns,omitempty"` // in which the block's cells are weighed; 0: one cell after another

	Sentinel bool `json:"sentinel,omitempty"` // a trial of the sentinel; nothing is compared with it
	Counting bool `json:"counting,omitempty"` // it counts system calls; nothing is compared with it
	Again    bool `json:"again,omitempty"`    // its block runs again, because the machine changed near it
}

// Ending is why a stratum needs no more blocks.
type Ending struct {
	Code   string `json:"code"` // one of the codes below
	Text   string `json:"text"` // a sentence
	Blocks int    `json:"blocks"`
}

// Codes of an Ending.
const (
	EndFixed        = "fixed"         // all requested blocks are made
	EndDecided      = "decided"       // every comparison has an interval that is narrow enough
	EndYielded      = "yielded"       // what is not narrow enough gave its time to others (yield.go, adaptive.go)
	EndLooks        = "looks"         // the last look
	EndBudgetBlocks = "budget-blocks" // Budget.Blocks
	EndBudgetTime   = "budget-time"   // Budget.Time
	EndNoComparison = "no-comparison" // there is no baseline, or no treatment
	EndGaveUp       = "gave-up"       // the baseline, or every treatment, was given up
	EndSkipped      = "skipped"       // none of its cells can run here
	EndFound        = "found"         // the level that the study looks for
)

type cellState struct {
	cell    record.Cell
	stratum int
	skipped bool
	blocks  []block // by block-1; grows as results come

	// of the walk:
	failing int    // blocks in a row without a value
	gaveUp  string // why
	absent  bool   // because its image was, or the site does not admit it
	enough  int    // pass after which its comparison needed no more blocks; 0: none yet
	yields  bool   // enough is where it gave its time to others
	time    time.Duration
	trials  int // that took the time
}

// over reports whether the cell has no part in a pass, because its comparison was narrow enough
// before, or gave its time to others.
func (c *cellState) over(pass int) bool { return c.enough > 0 && pass > c.enough }

type stratumState struct {
	cells    []int // indices into Plan.cells
	baseline int   // index into Plan.cells; -1: missing or skipped
	response string

	seed int // the stratum at whose answer its search begins; -1: none

	// of the walk:
	ending    *Ending
	waits     bool    // for the answer of seed
	from      int     // passes before its first block
	near      []int   // the answer of seed, and the best there
	asked     [][]int // of a study that looks for a level: the cells of each pass
	found     tune.Step
	turns     int     // of its next blocks; 0: it has none
	counted   bool    // its counting trial is done, or it has no counting trial
	uncounted string  // why its counting trials failed
	closed    int     // blocks that are complete
	width     float64 // half-width of its widest comparison at the last look
	gain      float64 // verdicts that a second of its next blocks may bring (adaptive.go)
	time      time.Duration
}

// Plan is a study in progress. It is not safe for concurrent use.
type Plan struct {
	study  *study.Study
	rule   stat.Rule
	last   int      // pass; of a search, of the blocks of a stratum
	most   int      // pass: last, and the passes that strata wait
	nodes  []string // that blocks can begin on, sorted; none: one node without a name
	all    []string // nodes holds these, but for those that were lost
	only   string   // the node of trials that name none
	turns  []int    // by stratum: its turn to choose a node; nil for one node
	cells  []cellState
	strata []stratumState
	mix    mix // of a study that looks for one level for several strata
	index  map[string]int
	seq    int // the highest seen
	fed    int
	strays int

	sentinel sentinelState
	counting countingState
	stale    bool // a trial was recorded at a place that the walk has passed
	walk     walk
}

// New plans a study. The cells in skips are not run. The nodes, in any order, are
// those that trials can run on; nil stands for one without a name.
func New(st *study.Study, skips []record.Skip, nodes []string) *Plan {
	p := &Plan{study: st, rule: Rule(st), last: lastPass(st)}
	p.setNodes(nodes)
	n := 0
	for i := range st.Strata {
		n += len(st.Strata[i].Cells)
	}
	p.cells = make([]cellState, 0, n)
	p.strata = make([]stratumState, len(st.Strata))
	p.index = make(map[string]int, n)
	for i := range st.Strata {
		s := &st.Strata[i]
		ps := &p.strata[i]
		ps.baseline, ps.seed = -1, -1
		if r := st.WorkloadOf(i).Responses; len(r) > 0 {
			ps.response = r[0]
		}
		for j, c := range s.Cells {
			id := len(p.cells)
			p.cells = append(p.cells, cellState{cell: c, stratum: i})
			p.index[c.Key()] = id
			ps.cells = append(ps.cells, id)
			if j == s.Baseline {
				ps.baseline = id
			}
		}
	}
	if s := st.Sentinel; s != nil && len(s.Workload.Responses) > 0 {
		p.sentinel.study, p.sentinel.key, p.sentinel.passes = s, s.Cell.Key(), make(map[string][][]sentinelTry)
	}
	for _, s := range skips {
		if p.sentinel.study != nil && s.Cell.Key() == p.sentinel.key {
			p.sentinel.skipped = true
		}
		id, ok := p.index[s.Cell.Key()]
		if !ok {
			continue
		}
		p.cells[id].skipped = true
		if ps := &p.strata[p.cells[id].stratum]; ps.baseline == id {
			ps.baseline = -1
		}
	}
	p.counting = newCounting(st, skips)
	p.mix.strata, p.mix.weights = st.Mixed()
	p.seeds()
	p.rewind()
	return p
}

// Rule returns the study's stopping rule for package stat: the looks within its budget of
// blocks. A budget in time may end a study between two looks. Then the last look is taken
// there instead of at the next one, so the number of looks does not rise.
func Rule(st *study.Study) stat.Rule {
	s := st.Stop
	if s.Confidence <= 0 || s.Confidence >= 1 {
		s.Confidence = 0.95
	}
	last := lastPass(st)
	if s.Fixed > 0 {
		return stat.NewRule(s.Confidence, s.Width, s.Margin, nil, last)
	}
	var looks []int
	for _, l := range declared(st) {
		// Before MinN blocks there is no interval, so there is no look.
		if l < last && l >= stat.MinN {
			looks = append(looks, l)
		}
	}
	r := stat.NewRule(s.Confidence, s.Width, s.Margin, append(looks, last), 0)
	r.Clear = s.Adaptive
	return r
}

func declared(st *study.Study) []int {
	if len(st.Stop.Looks) == 0 {
		return []int{3, 4, 6, 8, 12, 16}
	}
	return st.Stop.Looks
}

func lastPass(st *study.Study) int {
	last := st.Stop.Fixed
	switch {
	case st.Stop.Objective != nil:
		last = seekMost
	case len(st.Stop.Factors) > 0:
		last = severalMost
	case st.Stop.Tune > 0:
		last = tuneMost
	}
	if last <= 0 {
		last = slices.Max(declared(st))
	}
	if b := st.Budget.Blocks; b > 0 {
		last = min(last, b)
	}
	return max(last, 1)
}

// Done records a finished trial. It changes no decision if the trial was recorded before, or
// if the study does not have its cell or block.
func (p *Plan) Done(t *record.Trial) {
	late := t.Seq < p.seq // the walk may have left its node behind by what came after it
	p.seq = max(p.seq, t.Seq)
	inside := t.Block >= 1 && t.Block <= p.most
	key := t.Cell.Key()
	if inside && p.sentinel.study != nil && key == p.sentinel.key {
		p.noteSentinel(t)
		return
	}
	if i, ok := p.counting.index[key]; ok && t.Block == 1 {
		p.noteCounting(i, t)
		return
	}
	id, ok := p.index[key]
	if !ok || !inside {
		p.strays++
		return
	}
	c := &p.cells[id]
	n := p.tryOf(t, p.strata[c.stratum].response)
	for len(c.blocks) < t.Block {
		c.blocks = append(c.blocks, block{})
	}
	b := &c.blocks[t.Block-1]
	i, found := slices.BinarySearchFunc(b.tries, n.attempt, func(o try, a int) int { return o.attempt - a })
	if found {
		b.tries[i] = n
	} else {
		b.tries = slices.Insert(b.tries, i, n)
		p.fed++
	}
	// What the walk waits for is news to it and nothing else; for any other
	// trial, a decision already taken may depend on it.
	if w := p.walk.waiting; w.cell != id || w.block != t.Block || found || i+1 < len(b.tries) || late || n.lost || n.node != p.walk.node {
		p.stale = true
	}
	p.walk.waiting = waiting{cell: nobody}
}

// Strays returns the number of recorded trials that do not belong to the study.
func (p *Plan) Strays() int { return p.strays }

// Next returns the trial to make now, and false if the study is finished. It returns the same
// trial until Done has recorded it.
func (p *Plan) Next() (Next, bool) {
	if nexts := p.Together(); len(nexts) > 0 {
		return nexts[0], true
	}
	return Next{}, false
}

// Together returns the trials to make now: the rest of the block under way if the study weighs
// in turns, and otherwise that of Next. It returns none if the study is finished.
func (p *Plan) Together() []Next {
	at, ok := p.advance()
	w := &p.walk
	switch {
	case !ok:
		return nil
	case at.cell == sentinelCell:
		return []Next{p.nextSentinel(at.block, w.node)}
	case at.cell <= countingCell:
		return []Next{p.nextCounting(countingCell-at.cell, w.node)}
	}
	missing, _ := p.missing(at.block, w.block, w.until)
	out := p.together(at.block, w.node, missing)
	for i := range out {
		out[i].Again = w.again
	}
	return out
}

// together returns the trials to make now of a block without these cells: all of them if the study weighs in turns,
// otherwise the first.
func (p *Plan) together(pass int, node string, missing []int) (out []Next) {
	for i, id := range missing {
		c := &p.cells[id]
		n := Next{Cell: c.cell, Block: pass, Attempt: c.at(pass).next(), Seq: p.seq + 1 + i, Stratum: c.stratum, Node: node, Turns: p.strata[c.stratum].turns}
		if out = append(out, n); n.Turns < 1 {
			break
		}
	}
	return out
}

// Ending returns why a stratum has ended; false if it has not.
func (p *Plan) Ending(stratum int) (Ending, bool) {
	p.advance()
	if e := p.strata[stratum].ending; e != nil {
		return *e, true
	}
	return Ending{}, false
}

// GaveUp returns why a cell was given up, "" if it was not.
func (p *Plan) GaveUp(c record.Cell) string {
	p.advance()
	if id, ok := p.index[c.Key()]; ok {
		return p.cells[id].gaveUp
	}
	return ""
}

// Skipped returns the cells that were given up because their image cannot be had, or because the site does not admit them.
func (p *Plan) Skipped() (out []record.Skip) {
	p.advance()
	for i := range p.cells {
		if c := &p.cells[i]; c.absent {
			out = append(out, record.Skip{Cell: c.cell, Reason: c.gaveUp})
		}
	}
	return out
}

// Reason returns a sentence that says why the study is finished; "" if it is not.
func (p *Plan) Reason() string {
	if _, ok := p.advance(); ok {
		return ""
	}
	var codes []string // of searches, what they found
	count, text, sure := map[string]int{}, map[string]string{}, map[string][]float64{}
	for i := range p.strata {
		s := &p.strata[i]
		code := s.ending.Code
		if code == EndFound { // several searches end well in several ways, and some are surer than others
			code = p.finding(s.found)
			sure[code] = append(sure[code], s.found.Sure)
		}
		if code == EndFixed { // not all lost as many blocks
			code = s.ending.Text
		}
		if count[code] == 0 {
			codes = append(codes, code)
			text[code] = s.ending.Text
		}
		count[code]++
	}
	for code, all := range sure {
		least, most := confidence(slices.Min(all)), confidence(slices.Max(all))
		text[code] = code + ", with a confidence of " + least
		if least != most {
			text[code] += " or more"
		}
	}
	if len(codes) == 0 {
		return "the study has no cells"
	}
	if len(codes) == 1 {
		return text[codes[0]]
	}
	// A report may cut the end of this: what ended most variants comes first.
	slices.SortStableFunc(codes, func(a, b string) int { return count[b] - count[a] })
	out := ""
	for i, c := range codes {
		if i > 0 {
			out += "; "
		}
		out += fmt.Sprintf("%d of %d workload variants: %s", count[c], len(p.strata), text[c])
	}
	return out
}
