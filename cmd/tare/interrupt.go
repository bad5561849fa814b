package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
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
		if a.logs == nil {
			fmt.Fprintln(a.stderr) // below the line of progress
		}
		a.say("stopping what runs and cleaning up; interrupt again to stop at once")
		cancel()
		select {
		case <-sigs:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(sigs); close(done); cancel() }
}

// waitHelp is the help of --wait, of every verb that takes the host; waitAnywhere, of those that can also measure elsewhere.
const (
	waitHelp     = "wait for another tare on this host to finish"
	waitAnywhere = "wait for another tare to finish: on this host, on the machine of --host, or on the same nodes of the cluster"
)
