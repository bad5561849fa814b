package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tare/host/cgroup"
	"tare/host/state"
	"tare/report/words"
	"tare/run"
)

// interruptible ends the context at the first SIGINT or SIGTERM; the second
// ends the process, whatever it is doing.
func (a *app) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	sigs := make(chan os.Signal, 2)
	signal.Notify(sigs, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-sigs:
		case <-done:
			return
		}
		fmt.Fprintln(a.stderr) // below the line of progress
		a.say("ending what runs and cleaning up; interrupt again to stop at once")
		cancel()
		select {
		case <-sigs:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(sigs); close(done); cancel() }
}

// waitHelp is the help of --wait, of every verb that takes the host.
const waitHelp = "wait for another tare on this host to finish"

// hold takes the host, waiting for another tare if the user wants that.
func (a *app) hold(ctx context.Context, d dirs, what string, wait bool) (*state.Lock, error) {
	told := 0 // the process that the user was told about
	for {
		lock, err := state.Hold(d.run, what)
		var held *state.HeldError
		if !wait || !errors.As(err, &held) {
			return lock, err
		}
		if told != held.Holder.Pid {
			told = held.Holder.Pid
			a.say("%v; waiting", held)
		}
		select {
		case <-ctx.Done():
			return nil, run.ErrInterrupted
		case <-time.After(100 * time.Millisecond): // as often as tests ask, so that none starves
		}
	}
}

// sweep removes what a killed tare left behind, and names what it cannot remove. We
// hold the host, so nothing of it is in use.
func (a *app) sweep(ctx context.Context, d dirs) { a.sweepUp(ctx, d, "an earlier run") }

// sweepAfter runs at the end of a verb that starts sandboxes, when all that it made should
// be gone. It removes or names what is still left, for example after a badly timed signal.
func (a *app) sweepAfter(ctx context.Context, d dirs) {
	a.sweepUp(context.WithoutCancel(ctx), d, "this run")
}

// sweepIfEnded is sweepAfter for a verb that was interrupted.
func (a *app) sweepIfEnded(ctx context.Context, d dirs) {
	if ctx.Err() != nil {
		a.sweepAfter(ctx, d)
	}
}

func (a *app) sweepUp(ctx context.Context, d dirs, whose string) {
	found, err := cleanHost(ctx, d, false)
	gone := 0
	for _, l := range found {
		if l.Err != nil {
			a.say("%s", whyLeft(l, false))
			continue
		}
		gone++
	}
	if gone > 0 {
		a.say("removed %s that %s left behind", words.Count(gone, "thing"), whose)
	}
	if err != nil {
		a.say("%v", err)
	}
}

// place prepares the place of the sandboxes' control groups. It returns where that is, and a
// function that restores it. The caller holds the host, and has swept it. After an error
// sandboxes may still start; if not, their checks say so.
func (a *app) place(ctx context.Context) (where string, release func() error, err error) {
	p, err := cgroup.Hold(ctx)
	if err != nil {
		return "", func() error { return nil }, err
	}
	return p.Where(), func() error {
		err := p.Release()
		if err != nil {
			a.say("%v", err)
		}
		return err
	}, nil
}
