package ahead

import (
	"context"
	"fmt"
	"slices"

	"tare/plan"
	"tare/record"
	"tare/run"
	"tare/site"
	"tare/study"
)

// crew makes the trials of a study on several machines at once, and hands them on in the study's order. What
// it hands on is what one machine after another would have measured: plan hears of a trial only when it asks
// for it. A trial that was made ahead and is never asked for is forgotten.
type crew struct {
	inner   site.Session
	study   *study.Study
	most    int               // trials at once, or blocks of trials that take turns
	machine map[string]string // by node
	keep    func(plan.Next, record.Made) error

	plan   *plan.Plan     // of what was handed on
	guess  *plan.Plan     // of all that was made, to see ahead
	done   []record.Trial // that plan knows
	lost   []string       // nodes that plan knows to be gone
	made   map[string][]record.Made
	making int
	busy   map[string]bool // machines
	seq    int             // names a trial until it is handed on
	ended  chan set
}

// set is a trial, or trials that take turns.
type set struct {
	nexts []plan.Next
	nodes []string // that they need
	made  []record.Made
}

// newCrew is the crew of a session. s.mu is held.
func newCrew(s *Session, done []record.Trial) *crew {
	c := &crew{
		inner: s.Session, study: s.study, most: s.Preview().AtOnce, machine: map[string]string{}, keep: s.keep, done: slices.Clone(done),
		made: map[string][]record.Made{}, busy: map[string]bool{}, ended: make(chan set),
	}
	for on, nodes := range s.machines() {
		for _, n := range nodes {
			c.machine[n] = on
		}
	}
	c.plan, c.guess = c.fresh(), c.fresh()
	for i := range done {
		c.seq = max(c.seq, done[i].Seq)
	}
	return c
}

// fresh is a plan that knows what was handed on.
func (c *crew) fresh() *plan.Plan {
	p := plan.New(c.study, c.inner.Preview().Skips, run.Nodes(c.inner))
	for i := range c.done {
		p.Done(&c.done[i])
	}
	for _, n := range c.lost {
		p.Lost(n)
	}
	return p
}

// place is where a trial belongs, however often it was tried.
func place(n plan.Next) string { return fmt.Sprintf("%d %q %s", n.Block, n.Node, n.Cell.Key()) }

// run makes trials until the plan is content, ctx ends or more says that no more are to begin. What was made then and is not
// asked for yet stays in made.
func (c *crew) run(ctx context.Context, more func() bool) error {
	making, stop := context.WithCancel(ctx)
	defer stop()
	for {
		content, err := c.hand()
		if content || err != nil {
			stop()
		} else if ctx.Err() == nil && more() {
			c.start(making)
		}
		if c.making == 0 {
			return err
		}
		c.take(<-c.ended, making.Err() != nil)
	}
}

// hand hands on what the plan asks for, as far as it is made.
func (c *crew) hand() (content bool, err error) {
	for {
		nexts := c.plan.Together()
		if len(nexts) == 0 {
			return true, nil
		}
		if !c.has(nexts) {
			return false, nil
		}
		for _, n := range nexts {
			at := place(n)
			m := c.made[at][0]
			if c.made[at] = c.made[at][1:]; len(c.made[at]) == 0 {
				delete(c.made, at)
			}
			m.Seq, m.Attempt, m.Node = n.Seq, n.Attempt, n.Node
			if err := c.keep(n, m); err != nil {
				return false, err
			}
			t := *m.Trial
			t.Histograms = nil // no plan looks at them
			c.done = append(c.done, t)
			c.plan.Done(&t)
			if lost(m) {
				c.lost = append(c.lost, n.Node)
				if !c.plan.Lost(n.Node) {
					return false, run.ErrNoNode
				}
			}
		}
	}
}

func (c *crew) has(nexts []plan.Next) bool {
	return !slices.ContainsFunc(nexts, func(n plan.Next) bool { return len(c.made[place(n)]) == 0 })
}

// asks reports whether the plan asks for the same trials.
func (c *crew) asks(nexts []plan.Next) bool { return slices.EqualFunc(c.plan.Together(), nexts, same) }

func lost(m record.Made) bool { return m.Failure.Lost() }

// start begins what can be made now.
func (c *crew) start(ctx context.Context) {
	if front := c.plan.Together(); !c.expects(front[0]) {
		c.guess = c.fresh() // what was made ahead is not what the study wants: a node was lost
		clear(c.made)
	}
	for c.making < c.most {
		nexts := c.guess.Ahead(c.free)
		if len(nexts) == 0 {
			return
		}
		nodes := c.guess.Uses(nexts[0])
		c.occupy(nodes, true)
		for i := range nexts {
			c.seq++
			nexts[i].Seq = c.seq
		}
		go func() { c.ended <- set{nexts, nodes, c.inner.Trials(ctx, nexts)} }()
	}
}

// expects reports whether the guess has the plan's next trial as its own.
func (c *crew) expects(front plan.Next) bool {
	n, ok := c.guess.Next()
	return ok && place(n) == place(front)
}

// take takes over what was made. An interrupted trial says nothing.
func (c *crew) take(s set, interrupted bool) {
	c.occupy(s.nodes, false)
	for i, m := range s.made {
		if interrupted && m.Status == record.Failed {
			continue
		}
		m.Seq, m.Attempt, m.Node = s.nexts[i].Seq, s.nexts[i].Attempt, s.nexts[i].Node
		c.add(s.nexts[i], m)
	}
}

// add keeps a trial until the plan asks for it.
func (c *crew) add(n plan.Next, m record.Made) {
	c.made[place(n)] = append(c.made[place(n)], m)
	c.guess.Done(m.Trial)
	if lost(m) {
		c.guess.Lost(n.Node)
	}
}

func (c *crew) free(nodes []string) bool {
	return !slices.ContainsFunc(nodes, func(n string) bool { return c.busy[c.machine[n]] })
}

func (c *crew) occupy(nodes []string, busy bool) {
	if busy {
		c.making++
	} else {
		c.making--
	}
	for _, n := range nodes {
		c.busy[c.machine[n]] = busy
	}
}
