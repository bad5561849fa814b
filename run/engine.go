// Package run puts trials together: it alone owns a trial's time, its
// concurrency and its clean-up.
//
// The data path: 1. Prepare tries every sandbox, tool and collector that the
// study names and says what this host cannot do; 2. the plan names the next
// cell; 3. a trial sets up, starts its sandboxes, warms up, measures, stops and
// cleans up, in that order (trial.go); 4. the store keeps the trial before the
// plan hears of it; 5. the plan decides, until it has nothing more to ask.
package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/collect"
	"tare/plan"
	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// Network gives each sandbox a place on one bridge.
type Network interface {
	Attach(name string) (sandbox.Network, error)
	Detach(name string) error
	// Socket makes a TCP socket, non-blocking, that connects to the sandboxes from the
	// bridge itself.
	Socket() (fd int, err error)
}

// Image is a root file system that roles ask for by name.
type Image struct {
	Root    string // of the unpacked tree
	Digest  string
	Missing string // why this host does not have it, in words a user can act on; "" when it does
}

// Store keeps a finished trial: when Append returns, the trial survives
// anything.
type Store interface {
	Append(context.Context, *record.Trial, record.Evidence) error
}

// Dirs are the places a trial may write to. Each trial has directories of its
// own below them and removes them.
type Dirs struct {
	State string // sandboxes' own files; a memory file system is right
	Data  string // what workloads see as /data: on the disk to be measured
	Root  string // the prepared root file system, read-only
	// Memory is a place like Data on a memory file system, for roles with
	// DataInMemory.
	Memory string
}

// Engine runs the trials of one study. All fields are set before Run, Observe,
// Trying and Available may be nil.
type Engine struct {
	ID         string // unique on this host; begins the name of every sandbox
	Study      *study.Study
	Catalogue  study.Catalogue
	Kinds      map[string]sandbox.Kind
	Workloads  map[string]workload.Workload
	Collectors []collect.Collector
	Counting   collect.Collector // of counting trials alone; nil: no calls are counted
	Network    Network
	Store      Store
	Dirs       Dirs
	Images     map[string]Image       // by name; all that NeedsImages lists
	Available  func() (int64, error)  // the host's available memory in bytes, for Idle roles
	DropCaches func(dir string) error // nil: the function of this name
	Observe    func(Event)
	// Trying hears of each kind that Skips is about to try, and for how long at most, 0 if
	// that is not known; what it returns is called when that has ended.
	Trying func(kind string, within time.Duration) (done func())
	// Make makes a trial in the place of Trial, from nothing of this host: a model's.
	// Then only Study, Store and Observe are needed beside it. Nil: Trial.
	Make func(context.Context, plan.Next) (*record.Trial, record.Evidence)

	serverTime time.Duration // that a server has to come up; 0: the constant of this name
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

// ErrInterrupted is returned by Run when its context ended: what was finished
// is stored, the study can be resumed.
var ErrInterrupted = errors.New("interrupted")

// Run executes what the plan asks for until the plan is content. A failed trial
// is stored and told to the plan; only a failing store, or the end of ctx, ends
// the study early.
func (e *Engine) Run(ctx context.Context, p *plan.Plan) error {
	trialOf := e.Trial
	if e.Make != nil {
		trialOf = e.Make
	}
	for {
		if ctx.Err() != nil {
			return ErrInterrupted
		}
		next, more := p.Next()
		if !more {
			return nil
		}
		e.observe(Event{Kind: TrialStarts, Next: next, Plan: p})
		trial, evidence := trialOf(ctx, next)
		if ctx.Err() != nil && trial.Status == record.Failed {
			// It failed because we were told to stop: it says nothing of the cell.
			return ErrInterrupted
		}
		// A finished trial is kept even if the user interrupts just now.
		if err := e.Store.Append(context.WithoutCancel(ctx), trial, evidence); err != nil {
			return fmt.Errorf("cannot keep trial %d: %w", trial.Seq, err)
		}
		p.Done(trial)
		e.observe(Event{Kind: TrialEnds, Next: next, Trial: trial, Plan: p})
	}
}

func (e *Engine) observe(ev Event) {
	if e.Observe != nil {
		e.Observe(ev)
	}
}

// cleanupTime bounds the end of a trial, whatever state it is in.
const cleanupTime = 30 * time.Second
