package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tare/agent"
)

// lab is the machine and the state that its steps share.
type lab struct {
	vm      *vm
	boot    func(ctx context.Context, line string) (*vm, error) // another machine, with more on the kernel's command line
	log     *journal                                            // of the current step
	full    bool                                                // all steps: make lab-vm
	budget  string                                              // for the first study; "": the study's own
	capture string                                              // folder on this host for the control groups' files; "": none
	fresh   host                                                // the state of the machine before tare first ran in it
}

// step is one test in the machine.
type step struct {
	name   string
	brief  bool // part of make test
	within time.Duration
	run    func(context.Context, *lab) error
}

// sh runs a script as root in the machine. An exit code other than 0 is an error.
func (l *lab) sh(ctx context.Context, script string) (string, error) {
	out, code, err := l.vm.run(ctx, l.log, "sh", "-euc", strings.TrimSpace(script))
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	return out, err
}

// tare runs tare as root in the machine. An exit code other than 0 is an error.
func (l *lab) tare(ctx context.Context, args ...string) (string, error) {
	out, code, err := l.vm.run(ctx, l.log, append([]string{"tare"}, args...)...)
	if err == nil && code != 0 {
		err = fmt.Errorf("tare %s ended with code %d", strings.Join(args, " "), code)
	}
	return out, err
}

// errFailed says that steps failed; they were printed already.
var errFailed = errors.New("steps failed")

// play runs the steps one after another and prints a line for each. After a failed step it
// runs the next one, unless the machine is gone or hangs: then each further step would wait for its time limit.
func (l *lab) play(ctx context.Context, steps []step, out io.Writer, live bool) error {
	failed := 0
	for _, s := range steps {
		l.log = &journal{}
		if live {
			l.log.live = out
		}
		begun := time.Now()
		within, cancel := context.WithTimeout(ctx, s.within)
		err := s.run(within, l)
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("it had not ended after %s: %w", s.within, err)
		}
		cancel()
		took := time.Since(begun).Seconds()
		if err == nil {
			fmt.Fprintf(out, "ok      %6.1f s  %s\n", took, s.name)
			continue
		}
		failed++
		if !live {
			fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(l.log.String()))
		}
		fmt.Fprintf(out, "FAILED  %6.1f s  %s: %v\n", took, s.name, err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, agent.ErrHangs) {
			return fmt.Errorf("%w: the machine hangs", errFailed)
		}
		select {
		case <-l.vm.proc.Done():
			return fmt.Errorf("%w: the machine is gone", errFailed)
		default:
		}
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d of %d", errFailed, failed, len(steps))
	}
	return nil
}

// choose returns the steps with those names, or all steps, in their order.
func choose(all []step, names []string) ([]step, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []step
	for _, s := range all {
		if slices.Contains(names, s.name) {
			out = append(out, s)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(all, func(s step) bool { return s.name == n }) {
			return nil, fmt.Errorf("there is no step %q; -list prints them", n)
		}
	}
	return out, nil
}
