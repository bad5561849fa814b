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
	gone  bool               // the gate was opened
	clock sandbox.Clock      // the estimate by which it was opened
	fresh chan sandbox.Clock // gets an estimate taken after the moment; closed without one if the estimate fails
}

// passed is the result of the wait at a gate.
type passed struct {
	at    time.Time
	clock sandbox.Clock
	err   error
}

// follow returns how the command ended. The gate opens when all commands are ready.
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
			ready = nil // a second frameReady of the agent must not count
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

// look estimates the clock anew after the moment. By the estimate with which the moment was
// sent, every command would start on time, because the estimate's error cancels out. It
// takes only a few round trips, to disturb the command little.
func (r *running) look(ctx context.Context, moment time.Time) {
	defer close(r.fresh)
	past := time.NewTimer(time.Until(moment) + lookAfter)
	defer past.Stop()
	select {
	case <-past.C:
	case <-r.c.gone:
		return
	case <-ctx.Done():
		return
	}
	_ = r.cmd.Gate.Ask(ctx, func() error { // without one, the estimate from before the moment counts
		e, err := r.c.estimate(ctx, fewRoundTrips)
		if err == nil {
			r.fresh <- e
		}
		return err
	})
}

// lookAfter is how long after the moment this host begins to estimate the clocks again. At the moment it would take processor time
// from commands that start on this host.
const lookAfter = 20 * time.Millisecond

// lookWithin bounds how long an ended command waits for that estimate.
const lookWithin = time.Second

// began returns when a gated command started, by the fresh estimate if there is one.
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

// wait waits at the command's gate. It estimates the clock first, while there is time.
func (r *running) wait(ctx context.Context) (w passed) {
	w.err = r.cmd.Gate.Ask(ctx, func() error {
		_, err := r.c.Clock(ctx)
		return err
	})
	if w.err != nil {
		return w
	}
	w.clock = r.c.clock.now()
	w.at, w.err = r.cmd.Gate.Arrive(ctx)
	return w
}

// exit converts the agent's report of a command's end. The agent may run in a hostile
// guest, so the values are bounded.
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
