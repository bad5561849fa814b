package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/run/probe"
	"tare/sandbox"
	"tare/workload"
)

// life is a sandbox under way whose whole life is a command.
type life struct {
	en     *end
	spec   sandbox.Spec
	cancel context.CancelFunc
	ended  chan struct{} // closed when all of it is gone; then the rest is known
	got    sandbox.Launch
	err    error
	gone   time.Time

	stdout, stderr *output
}

// live begins the life of a sandbox. What it prints on its standard output is
// kept for the case that it fails; up is the line that says it runs, "" for none.
func live(ctx context.Context, l sandbox.Launcher, en *end, spec sandbox.Spec, mode sandbox.LaunchMode, up string, stderr *output) *life {
	v := &life{en: en, spec: spec, ended: make(chan struct{}), stdout: newOutput(en.role.Name, "stdout", up), stderr: stderr}
	v.stdout.most = maxSaid
	ctx, v.cancel = context.WithCancel(ctx)
	go func() {
		defer close(v.ended)
		v.got, v.err = l.Launch(ctx, spec, en.command(v.stdout, stderr), mode)
		v.gone = time.Now()
	}()
	return v
}

// maxSaid is what is kept of one such sandbox's output: there may be a great many.
const maxSaid = 64 << 10

// up waits until the sandbox's program does its work: until the role's Probe is
// answered, or until it printed its line.
func (v *life) up(ctx context.Context, t *trial) (at time.Time, err error) {
	if v.en.role.Probe != nil {
		return t.answered(ctx, v.en, v.spec, v.ended, func() error { return v.early(ctx) }, v.stdout, v.stderr)
	}
	select {
	case <-v.stdout.seen:
		return time.Now(), nil
	case <-v.ended:
		return at, v.early(ctx)
	case <-ctx.Done():
		return at, v.early(ctx)
	}
}

// early is the failure of a sandbox that was to live on.
func (v *life) early(ctx context.Context) error {
	select {
	case <-v.ended:
		return v.en.early(ctx, v.en.role.Name, v.got.Exit, v.err, v.stdout, v.stderr)
	case <-ctx.Done():
		return v.en.judge(ctx, v.en.role.Name, sandbox.Exit{}, fmt.Errorf("%s did not come up", v.en.role.Name), v.stdout, v.stderr)
	}
}

// kill ends the sandbox and waits until all of it is gone. An error says what is
// not.
func (v *life) kill() error {
	v.cancel()
	<-v.ended
	if onlyCanceled(v.err) {
		return nil
	}
	return v.err
}

// answered asks a role's server until it answers. It fails as early says when
// ended comes first.
func (t *trial) answered(ctx context.Context, en *end, spec sandbox.Spec, ended <-chan struct{}, early func() error, stdout, stderr *output) (time.Time, error) {
	type result struct {
		at  time.Time
		err error
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	results := make(chan result, 1)
	go func() {
		at, err := probe.Wait(asking, t.engine.Network.Socket, spec.Network.Addr.Addr(), *en.role.Probe)
		results <- result{at, err}
	}()
	select {
	case r := <-results:
		if r.err == nil {
			return r.at, nil
		}
		return r.at, en.silent(ctx, r.err, stdout, stderr)
	case <-ended:
		stop()
		r := <-results
		if ctx.Err() != nil && r.err != nil {
			return r.at, en.silent(ctx, r.err, stdout, stderr) // it ended because its time was over
		}
		return r.at, early()
	}
}

// silent is the failure of a server that gave no good answer: in time, or ever.
func (en *end) silent(ctx context.Context, err error, stdout, stderr *output) error {
	f := &failure{kind: "garbage", role: en.role.Name, tail: stderr.tail()}
	if f.tail == "" {
		f.tail = stdout.tail()
	}
	f.err = fmt.Errorf("%s did not answer on %w%s", en.role.Name, err, lastLine(f.tail))
	if ctx.Err() != nil {
		f.kind, f.err = "hung", en.crawled(withCause(ctx, f.err))
	}
	return f
}

// launch makes the role's command a sandbox's whole life, Count times, Whole
// and Phased in turn. With a Probe the life is cut when that was answered.
func (t *trial) launch(ctx context.Context, en *end, stdout, stderr *output) error {
	l, err := en.launcher()
	if err != nil {
		return err
	}
	enc := json.NewEncoder(stdout)
	var gone []string // sandboxes whose networks are still there
	for i := range en.role.Count {
		for _, mode := range []sandbox.LaunchMode{sandbox.Whole, sandbox.Phased} {
			spec, err := t.another(en, ordinal(i, string(mode)))
			if err != nil {
				return err
			}
			var line workload.LaunchLine
			if en.role.Probe != nil {
				line, err = t.launchServer(ctx, l, en, spec, mode, stderr)
			} else {
				line, err = launchOnce(ctx, l, en, spec, mode, stderr)
			}
			if err != nil {
				return err
			}
			if err := enc.Encode(line); err != nil {
				return err
			}
			if gone, err = t.thin(append(gone, spec.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// launchOnce is one life, from its begin to its end.
func launchOnce(ctx context.Context, l sandbox.Launcher, en *end, spec sandbox.Spec, mode sandbox.LaunchMode, stderr *output) (line workload.LaunchLine, err error) {
	v := live(ctx, l, en, spec, mode, "", stderr)
	defer v.cancel()
	<-v.ended
	if err := en.judge(ctx, en.role.Name, v.got.Exit, v.err, v.stdout, stderr); err != nil {
		return line, err
	}
	line = launchLine(mode, v.got)
	line.Instruction, line.Exited, line.Deleted = v.got.Instruction.Seconds(), v.got.Exited.Seconds(), v.got.Deleted.Seconds()
	return line, nil
}

// launchServer is one life from its begin to its first good answer, and on to
// where nothing is left of it.
func (t *trial) launchServer(ctx context.Context, l sandbox.Launcher, en *end, spec sandbox.Spec, mode sandbox.LaunchMode, stderr *output) (line workload.LaunchLine, err error) {
	v := live(ctx, l, en, spec, mode, "", stderr)
	at, err := v.up(ctx, t)
	if kerr := v.kill(); err == nil && kerr != nil {
		err = &failure{kind: "stop", role: en.role.Name, err: fmt.Errorf("it answered, and then could not be ended: %w", kerr)}
	}
	if err != nil {
		return line, err
	}
	line = launchLine(mode, v.got)
	line.Answered, line.Deleted = at.Sub(v.got.Begun).Seconds(), v.gone.Sub(v.got.Begun).Seconds()
	return line, nil
}

// launchLine has what the runtime's own steps took.
func launchLine(mode sandbox.LaunchMode, got sandbox.Launch) workload.LaunchLine {
	return workload.LaunchLine{Mode: string(mode), Created: got.Created.Seconds(), Started: got.Started.Seconds()}
}

// maxNetworks is how many networks of sandboxes that are gone a role keeps until
// the trial's end: the kernel takes a namespace apart in the background, with
// locks that the next sandbox's start would wait for.
const maxNetworks = 64

// thin detaches the oldest of too many networks, and returns those that stay.
func (t *trial) thin(gone []string) ([]string, error) {
	if len(gone) <= maxNetworks || t.engine.Network == nil {
		return gone, nil
	}
	if err := t.engine.Network.Detach(gone[0]); err != nil {
		return gone, fmt.Errorf("cannot take a sandbox from the bridge: %w", err)
	}
	return gone[1:], nil
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
