package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
		return &failure{kind: "start", role: en.role.Name,
			err: fmt.Errorf("sandbox %s cannot be launched with a command as its whole life", en.kind.Name())}
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

// idle starts Count sandboxes one after another, each with the role's command
// running, and notes the host's available memory at each step and after all are
// gone.
func (t *trial) idle(ctx context.Context, en *end, stdout *output) (err error) {
	enc := json.NewEncoder(stdout)
	note := func(count int) error {
		// Freed pages come back a moment after the last process has gone.
		if err := sleep(ctx, idleSettle); err != nil {
			return withCause(ctx, err)
		}
		available, err := t.engine.Available()
		if err != nil {
			return fmt.Errorf("cannot read the available memory: %w", err)
		}
		return enc.Encode(workload.IdleLine{Count: count, Available: available})
	}
	if err := note(0); err != nil {
		return err
	}
	idlers := &group{early: make(chan error, en.role.Count)}
	var instances []sandbox.Instance
	stop := func() error {
		errs := []error{idlers.end()}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		for _, inst := range instances {
			errs = append(errs, inst.Stop(ctx))
		}
		instances = nil
		return errors.Join(errs...)
	}
	defer func() { err = errors.Join(err, stop()) }()
	for i := range en.role.Count {
		spec, err := t.another(en, i, "idle")
		if err != nil {
			return err
		}
		inst, err := en.kind.Start(ctx, spec)
		if err != nil {
			return &failure{kind: "start", role: en.role.Name,
				err: fmt.Errorf("sandbox %d of %d did not start: %w", i+1, en.role.Count, withCause(ctx, err))}
		}
		instances = append(instances, inst)
		own, cancel := context.WithCancel(ctx)
		result := make(chan error, 1)
		idlers.cancels, idlers.results = append(idlers.cancels, cancel), append(idlers.results, result)
		go func() {
			exit, err := inst.Exec(own, sandbox.Command{Args: en.role.Args, Env: en.role.Env})
			if own.Err() == nil && (err != nil || exit.Code != 0) {
				idlers.early <- fmt.Errorf("an idle sandbox ended (exit code %d): %w", exit.Code, err)
			}
			result <- nil
		}()
		if err := note(i + 1); err != nil {
			return err
		}
		select {
		case err := <-idlers.early:
			return &failure{kind: "died", role: en.role.Name, err: err}
		default:
		}
	}
	if err := stop(); err != nil {
		return err
	}
	return note(0)
}

// idleSettle is how long a step of an idle role rests before memory is read.
const idleSettle = 100 * time.Millisecond

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
