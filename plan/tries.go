package plan

import (
	"math"
	"slices"
	"time"

	"tare/record"
)

// try is what the plan keeps of one trial.
type try struct {
	attempt     int
	seq         int
	ok          bool
	interrupted bool // by the user, or because its node was lost
	lost        bool // its node was
	node        string
	has         bool
	value       float64 // of the stopping response
	offered     bool    // the load generator sent what was due, nearly
	late        bool    // it fell behind by itself
	duration    time.Duration
	turns       map[int]float64 // of the stopping response, by turn number; nil without turns
	start, turn float64         // seconds that it took once, and for each turn
	reason      string
	unfit       bool // running it again changes nothing (record.Unfit)
	absent      bool // its image was, or the site does not admit it (record.Failure.Lasting)
	session     int64
}

// block is the tries of a cell in one block.
type block struct {
	tries []try // by attempt

	// of the walk:
	from  int // tries before this belong to rounds that are over
	left  int // tries before this were left behind on a lost node
	again int // rounds begun after the first
	good  int // 1 + index of the try that counts; 0: no try counts
}

// offered is the share of the due requests that must be sent for a trial to say anything good about its load.
const offered = 0.99

// tryOf is what the plan keeps of a trial.
func (p *Plan) tryOf(t *record.Trial, response string) try {
	n := try{node: p.named(t.Node), attempt: t.Attempt, seq: t.Seq, session: t.Session, ok: t.Status == record.OK, duration: t.Duration}
	n.value, n.has = t.Sample(response)
	n.has = n.has && !t.BelowNoise(response)
	n.offered, n.late = t.Offered() >= offered, t.Warned(record.GeneratorLate)
	if turns := Turns(t, response); len(turns) > 0 {
		n.turns = turns
		n.start, n.turn = Costs(t, len(turns))
	}
	if t.Failure != nil {
		n.interrupted, n.lost = t.Failure.Passing(), t.Failure.Lost()
		n.reason, n.unfit, n.absent = t.Failure.Reason, t.Failure.Kind == record.Unfit, t.Failure.Lasting()
	}
	return n
}

// at returns the cell's tries in a block; nil without any.
func (c *cellState) at(pass int) *block {
	if pass < 1 || pass > len(c.blocks) {
		return nil
	}
	return &c.blocks[pass-1]
}

// value returns the stopping response in a block, as far as the walk has come.
func (c *cellState) value(pass int) float64 {
	if b := c.at(pass); b != nil && b.good > 0 {
		if t := &b.tries[b.good-1]; t.has {
			return t.value
		}
	}
	return math.NaN()
}

// next is the number of the next try.
func (b *block) next() int {
	if b == nil || len(b.tries) == 0 {
		return 1
	}
	return b.tries[len(b.tries)-1].attempt + 1
}

// passed reports whether a try counts as if it had not been made. So does one without its image if a later session has tried again.
func (b *block) passed(i int) bool {
	t := &b.tries[i]
	return t.interrupted || t.absent && slices.ContainsFunc(b.tries[i+1:], func(o try) bool { return o.session != t.session })
}

// settled reports whether a cell needs no more tries in the round under way, of which
// those from the seq until on are not, where its tries end, and whether the last of
// them was good.
func (b *block) settled(retries, until int) (end int, ok, settled bool) {
	if b == nil {
		return 0, false, false
	}
	failed := 0
	for i := b.from; i < len(b.tries) && b.tries[i].seq < until; i++ {
		switch t := &b.tries[i]; {
		case t.ok:
			return i + 1, true, true
		case b.passed(i):
		case t.absent:
			return i + 1, false, true
		default:
			if failed++; failed > retries {
				return i + 1, false, true
			}
		}
	}
	return 0, false, false
}

// lastGood returns the index of the last good try; -1 if there is none.
func lastGood(tries []try) int {
	for i := len(tries) - 1; i >= 0; i-- {
		if tries[i].ok {
			return i
		}
	}
	return -1
}

// Counts reports whether a good trial may count. Of several, the last attempt counts, by
// which the plan has decided. In a study with a sentinel that is the first good one of the
// block's last round: compared values must come from one round, and a later try may belong to
// a later round, which no earlier decision may know.
func (p *Plan) Counts(t *record.Trial) bool {
	p.advance()
	id, ok := p.index[t.Cell.Key()]
	if !ok {
		return true
	}
	b := p.cells[id].at(t.Block)
	switch {
	case b == nil || !p.watching() && b.left == 0:
		return true
	case b.good > 0:
		return t.Attempt == b.tries[b.good-1].attempt
	}
	return b.again == 0 && b.left == 0 // the walk has not come here: no decision is taken by it
}
