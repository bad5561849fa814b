package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tare/sandbox"
	"tare/workload"
)

// another is the spec of one more sandbox for a role that makes several.
func (t *trial) another(en *end, i int, what string) (sandbox.Spec, error) {
	spec := en.spec
	name := strconv.Itoa(i) + what
	spec.Name += "-" + name
	spec.Dir = filepath.Join(spec.Dir, name)
	if err := os.Mkdir(spec.Dir, 0o700); err != nil {
		return spec, fmt.Errorf("cannot make the sandbox's directory: %w", err)
	}
	return spec, nil
}

// launch makes the role's command a sandbox's whole life, Count times, Whole
// and Phased in turn.
func (t *trial) launch(ctx context.Context, en *end, stdout, stderr *output) error {
	l, ok := en.kind.(sandbox.Launcher)
	if !ok {
		return notLaunchable(en)
	}
	enc := json.NewEncoder(stdout)
	for i := range en.role.Count {
		for _, mode := range []sandbox.LaunchMode{sandbox.Whole, sandbox.Phased} {
			spec, err := t.another(en, i, string(mode))
			if err != nil {
				return err
			}
			got, err := l.Launch(ctx, spec, sandbox.Command{Args: en.role.Args, Env: en.role.Env, Stdout: io.Discard, Stderr: stderr}, mode)
			if err := judge(ctx, en.role.Name, got.Exit, err, stderr, stderr); err != nil {
				return err
			}
			line := workload.LaunchLine{
				Mode: string(mode), Created: got.Created.Seconds(), Started: got.Started.Seconds(),
				Instruction: got.Instruction.Seconds(), Exited: got.Exited.Seconds(), Deleted: got.Deleted.Seconds(),
			}
			if err := enc.Encode(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// idle launches Count sandboxes one after another, with the role's command as
// the whole life of each, and notes the host's available memory at each step and
// after all are gone. They have no agent in them and, being Phased, no runtime
// that waits beside them: as a cluster's containers.
func (t *trial) idle(ctx context.Context, en *end, stdout, stderr *output) (err error) {
	l, ok := en.kind.(sandbox.Launcher)
	if !ok {
		return notLaunchable(en)
	}
	enc := json.NewEncoder(stdout)
	note := func(count int) error {
		available, err := t.settled(ctx, count == 0)
		if err != nil {
			return err
		}
		return enc.Encode(workload.IdleLine{Count: count, Available: available})
	}
	if err := note(0); err != nil {
		return err
	}
	idlers := &group{early: make(chan error, en.role.Count)}
	defer func() { err = errors.Join(err, idlers.end()) }()
	for i := range en.role.Count {
		spec, err := t.another(en, i, "idle")
		if err != nil {
			return err
		}
		own, cancel := context.WithCancel(ctx)
		result := make(chan error, 1)
		idlers.cancels, idlers.results = append(idlers.cancels, cancel), append(idlers.results, result)
		up := newOutput(en.role.Name, "stdout", "x")
		go func() {
			_, err := l.Launch(own, spec, sandbox.Command{Args: en.role.Args, Env: en.role.Env, Stdout: up, Stderr: stderr}, sandbox.Phased)
			if own.Err() == nil {
				idlers.early <- errors.Join(errors.New("it ended by itself"), err)
			}
			if onlyCanceled(err) {
				err = nil
			}
			result <- err
		}()
		select {
		case <-up.seen:
		case err := <-idlers.early:
			return &failure{kind: "died", role: en.role.Name, tail: stderr.tail(),
				err: fmt.Errorf("sandbox %d of %d: %w", i+1, en.role.Count, withCause(ctx, err))}
		case <-ctx.Done():
			return withCause(ctx, fmt.Errorf("sandbox %d of %d did not start", i+1, en.role.Count))
		}
		if err := note(i + 1); err != nil {
			return err
		}
	}
	if err := idlers.end(); err != nil {
		return err
	}
	return note(0)
}

// onlyCanceled reports whether err says nothing but that its context ended.
func onlyCanceled(err error) bool {
	switch x := err.(type) { //nolint:errorlint // the whole tree is looked at
	case nil:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(x.Unwrap(), func(e error) bool { return !onlyCanceled(e) })
	case interface{ Unwrap() error }:
		return onlyCanceled(x.Unwrap())
	}
	return errors.Is(err, context.Canceled)
}

func notLaunchable(en *end) error {
	return &failure{kind: "start", role: en.role.Name,
		err: fmt.Errorf("sandbox %s cannot be launched with a command as its whole life", en.kind.Name())}
}

const (
	// idleStep is how long a step of an idle role rests before memory is read.
	idleStep = 100 * time.Millisecond
	// What a large sandbox had comes back for seconds after its end (gVisor's 60
	// MB of eight in about four), so that the next trial would see it rise. With
	// no sandbox running, memory is read when it has kept within calmBytes for
	// calmSteps, and at the latest after calmMost.
	calmBytes = 512 << 10
	calmSteps = 5
	calmMost  = 6 * time.Second
)

// settled returns the host's available memory after a step's rest, or when it
// has come to rest by itself.
func (t *trial) settled(ctx context.Context, calm bool) (int64, error) {
	var last []int64
	for begun := time.Now(); ; {
		if err := sleep(ctx, idleStep); err != nil {
			return 0, withCause(ctx, err)
		}
		now, err := t.engine.Available()
		if err != nil {
			return 0, fmt.Errorf("cannot read the available memory: %w", err)
		}
		last = append(last, now)
		last = last[max(0, len(last)-calmSteps):]
		rested := len(last) == calmSteps && slices.Max(last)-slices.Min(last) <= calmBytes
		if !calm || rested || time.Since(begun) > calmMost {
			return now, nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
