package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// interruptible ends the context at the first SIGINT, SIGTERM or SIGHUP, or when the reader of the output is gone, as in
// `tare run | head`. It leaves SIGHUP ignored if the caller ignores it, as nohup does. A later signal ends the process at once.
// Signals within a moment count as one, because timeout(1) sends one to its child and one to its process group.
func (a *app) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	sigs := make(chan os.Signal, 2)
	signal.Notify(sigs, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(sigs, syscall.SIGHUP)
	}
	done := make(chan struct{})
	signal.Ignore(syscall.SIGPIPE) // the signal would end the process before it has cleaned up
	unread := closedPipe(done)
	go func() {
		select {
		case <-sigs:
		case <-unread:
		case <-done:
			return
		}
		if a.logs == nil {
			fmt.Fprintln(a.stderr) // below the line of progress
		}
		a.say("stopping what runs and cleaning up; interrupt again to stop at once")
		cancel()
		for first := time.Now(); ; {
			select {
			case <-sigs:
				if time.Since(first) > moment {
					a.stopAtOnce()
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(sigs); close(done); cancel() }
}

// moment is how long after the first signal further signals count as the same one.
const moment = time.Second

// stopAtOnce ends the process, and says how to remove what the process leaves behind.
func (a *app) stopAtOnce() {
	clean := "tare clean"
	if left := a.left.Load(); left != nil {
		clean = *left
	}
	if clean != "" {
		a.say("stopped at once; remove what is left with `%s`", clean)
	}
	_ = a.stderr.Flush()
	os.Exit(exitInterrupted)
}

// closedPipe returns a channel that is closed once stdout or stderr is a pipe or a socket without a reader. poll(2)
// then reports POLLERR. It checks this each second, until done is closed.
func closedPipe(done <-chan struct{}) <-chan struct{} {
	closed := make(chan struct{})
	go func() {
		for {
			fds := []unix.PollFd{{Fd: 1}, {Fd: 2}}
			if n, err := unix.Poll(fds, 0); err == nil && n > 0 && (fds[0].Revents|fds[1].Revents)&unix.POLLERR != 0 {
				close(closed)
				return
			}
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return closed
}

// waitHelp is the help of --wait, of every verb that takes the host; waitAnywhere, of those that can also measure elsewhere.
const (
	waitHelp     = "wait for another tare on this host to finish"
	waitAnywhere = "wait for another tare to finish: on this host, on the machine of --host, or on the same nodes of the cluster"
)
