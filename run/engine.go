// Package run runs a study: it asks the plan for the next trial, a site's session for the
// trial, and a store to keep it.
//
// The data path: 1. the plan names the next cell; 2. the session makes the trial (package
// trial on this host, package modelled on the model); 3. the store keeps the trial before
// the plan hears of it; 4. the plan decides, until it has nothing more to ask. A trial
// that says that its node is lost makes the plan go on without that node.
package run

import (
	"context"
	"errors"
	"fmt"

	"tare/plan"
	"tare/record"
	"tare/site"
)

// Store keeps a finished trial: when Append returns, the trial survives
// anything.
type Store interface {
	Append(context.Context, *record.Trial, record.Evidence) error
}

// Engine runs the trials of one study. Observe may be nil.
type Engine struct {
	Session site.Session
	Store   Store
	Observe func(Event)
}

// EventKind says what happened.
type EventKind string

// Events, in the order in which a trial gives them.
const (
	TrialStarts EventKind = "start"
	TrialEnds   EventKind = "end"
)

// Event tells a watcher how far the study is. It is called from Run's
// goroutine and must not block for long.
type Event struct {
	Kind  EventKind
	Next  plan.Next
	Trial *record.Trial // of TrialEnds
	Plan  *plan.Plan
}

// ErrNoNode says that the last node was lost, or all of them at once. What was finished is kept.
var ErrNoNode = errors.New("no more trials can run")

// Nodes are the names of a session's nodes, as plan.New takes them.
func Nodes(s site.Session) []string {
	var out []string
	for _, n := range s.Nodes() {
		out = append(out, n.Name)
	}
	return out
}

// Run makes the trials that the plan asks for until the plan is content. A failed trial
// is stored and told to the plan; only a failing store, or the end of ctx, ends
// the study early, or the loss of its last node (ErrNoNode). The error is
// site.ErrInterrupted if ctx ended: what was finished is stored, and the study can go on
// later.
func (e *Engine) Run(ctx context.Context, p *plan.Plan) error {
	for {
		if ctx.Err() != nil {
			return site.ErrInterrupted
		}
		nexts := p.Together()
		if len(nexts) == 0 {
			return nil
		}
		for _, n := range nexts {
			e.observe(Event{Kind: TrialStarts, Next: n, Plan: p})
		}
		made := e.Session.Trials(ctx, nexts)
		interrupted := ctx.Err() != nil
		for i, m := range made {
			if interrupted && m.Status == record.Failed {
				// It failed because we were told to stop: it says nothing of the cell.
				continue
			}
			m.Node = nexts[i].Node
			// A finished trial is kept even if the user interrupts just now.
			if err := e.Store.Append(context.WithoutCancel(ctx), m.Trial, m.Evidence); err != nil {
				return fmt.Errorf("cannot keep trial %d: %w; the trials before it are kept; make room, or repair the disk, and repeat the command", m.Seq, err)
			}
			p.Done(m.Trial)
			e.observe(Event{Kind: TrialEnds, Next: nexts[i], Trial: m.Trial, Plan: p})
			if f := m.Failure; f.Lost() && !p.Lost(m.Node) {
				return fmt.Errorf("%s: %w", f.Reason, ErrNoNode)
			}
		}
	}
}

func (e *Engine) observe(ev Event) {
	if e.Observe != nil {
		e.Observe(ev)
	}
}
