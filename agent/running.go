package agent

import (
	"context"
	"errors"
	"io"
	"time"

	"tare/sandbox"
)

// running is a command that the client follows to its end.
type running struct {
	c     *Client
	id    uint32
	p     *pending
	cmd   sandbox.Command
	gone  bool               // a gated command was let go,
	clock sandbox.Clock      // by this clock;
	fresh chan sandbox.Clock // one estimate of its own, taken after the moment; closed without
}

// passed is what comes of waiting at a gate.
type passed struct {
	at    time.Time
	clock sandbox.Clock
	err   error
}

// follow returns how the command ended. A gated one is let go when all are ready.
func (r *running) follow(ctx context.Context) (sandbox.Exit, error) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	gate := make(chan passed, 1)
	ready := r.p.ready
	if r.cmd.Gate == nil {
		ready = nil
	}
	for {
		select {
		case <-ready:
			ready = nil // an agent that says so twice must not count twice
			go func() { gate <- r.wait(waiting) }()
		case w := <-gate:
			if w.err == nil {
				r.gone, r.clock, r.fresh = true, w.clock, make(chan sandbox.Clock, 1)
				w.err = r.c.send(ctx, frameGo, r.id, goBody{At: r.c.clock.sandboxNano(w.at, w.clock)})
				go r.look(waiting, w.at)
			}
			if w.err != nil && ctx.Err() == nil {
				exit, err := r.end()
				return exit, errors.Join(w.err, err)
			}
		case e := <-r.p.done:
			return r.exit(e), nil
		case <-r.c.gone:
			return r.lost()
		case <-ctx.Done():
			return r.end()
		}
	}
}

// look estimates the clock anew once the moment has passed. By the estimate with which
// the moment was sent, the command always begins on time: its error cancels out. A
// few round trips are enough, and all that the command is disturbed with.
func (r *running) look(ctx context.Context, moment time.Time) {
	defer close(r.fresh)
	past := time.NewTimer(time.Until(moment))
	defer past.Stop()
	select {
	case <-past.C:
	case <-r.c.gone:
		return
	case <-ctx.Done():
		return
	}
	if e, err := r.c.estimate(ctx, fewRoundTrips); err == nil {
		r.fresh <- e
	}
}

// lookWithin bounds the wait of a command that has ended for the estimate.
const lookWithin = time.Second

// began returns when a gated command began, by the fresh estimate where there is one.
func (r *running) began(at int64) (time.Time, time.Duration) {
	e := r.clock
	late := time.NewTimer(lookWithin)
	defer late.Stop()
	select {
	case fresh, ok := <-r.fresh:
		if ok {
			e = fresh
		}
	case <-late.C:
	}
	return r.c.clock.hostTime(at, e), e.Uncertainty
}

// wait waits at the command's gate. The clock is estimated before, for then
// there is time.
func (r *running) wait(ctx context.Context) (w passed) {
	if _, w.err = r.c.Clock(ctx); w.err != nil {
		return w
	}
	w.clock = r.c.clock.now()
	w.at, w.err = r.cmd.Gate.Arrive(ctx)
	return w
}

// exit is an agent's word on how a command ended as callers know it. The agent
// may be of a hostile guest: what it says is bounded.
func (r *running) exit(e exitBody) sandbox.Exit {
	if e.Error != "" && r.cmd.Stderr != nil {
		_, _ = io.WriteString(r.cmd.Stderr, text(e.Error)+"\n")
	}
	exit := sandbox.Exit{
		Code: e.Code, Signal: e.Signal, OOM: e.OOM,
		User: time.Duration(max(0, e.User)), System: time.Duration(max(0, e.System)),
	}
	if len(exit.Signal) > maxSignal {
		exit.Signal = exit.Signal[:maxSignal]
	}
	if r.gone && e.Start != 0 {
		exit.Start, exit.StartWithin = r.began(e.Start)
	}
	return exit
}

// maxSignal bounds the name of a signal, in bytes.
const maxSignal = 16
