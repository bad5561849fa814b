package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tare/internal/state"
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
		fmt.Fprintln(a.stderr, "\ntare: ending what runs and cleaning up; once more to stop at once")
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
			fmt.Fprintf(a.stderr, "tare: %v; waiting\n", held)
		}
		select {
		case <-ctx.Done():
			return nil, run.ErrInterrupted
		case <-time.After(100 * time.Millisecond): // as often as tests ask, so that none starves
		}
	}
}

// sweep removes what a killed tare left behind: we hold the host, so nothing of
// it is in use.
func (a *app) sweep(ctx context.Context, d dirs) {
	left, err := cleanHost(ctx, d, false)
	if n := len(left); n > 0 {
		fmt.Fprintf(a.stderr, "tare: removed %s that an earlier run left behind\n", words.Count(n, "thing"))
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "tare: %v\n", err)
	}
}
