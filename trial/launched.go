package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// launched is a sandbox under way whose whole lifecycle is a command.
type launched struct {
	ep      *endpoint
	located chan netip.Addr // has its address, once that is known
	cancel  context.CancelFunc
	ended   chan struct{} // closed when all of it is gone; then the rest is known
	got     sandbox.Launch
	err     error
	gone    time.Time

	stdout, stderr *output
}

// startLaunch launches a sandbox. What it prints on its standard output is
// kept for the case that it fails; up is the line that says it runs, "" for none.
func startLaunch(ctx context.Context, l sandbox.Launcher, ep *endpoint, spec sandbox.Spec, mode sandbox.LaunchMode, up string, stderr *output) *launched {
	v := &launched{ep: ep, located: make(chan netip.Addr, 1), ended: make(chan struct{}), stdout: newOutput(ep.role.Name, "stdout", up), stderr: stderr}
	v.stdout.most = maxSaid
	if addr := spec.Network.Addr.Addr(); addr.IsValid() {
		v.located <- addr
	} else {
		spec.Located = func(addr netip.Addr) { v.located <- addr }
	}
	ctx, v.cancel = context.WithCancel(ctx)
	go func() {
		defer close(v.ended)
		v.got, v.err = l.Launch(ctx, spec, ep.command(ep.role.Args, v.stdout, stderr), mode)
		v.gone = time.Now()
	}()
	return v
}

// maxSaid is what is kept of one such sandbox's output: there may be a great many.
const maxSaid = 64 << 10

// up waits until the sandbox's program does its work: until the role's Probe is
// answered, or until it printed its line.
func (v *launched) up(ctx context.Context, t *trial) (at time.Time, err error) {
	var located <-chan netip.Addr
	seen := v.stdout.seen
	if v.ep.role.Probe != nil {
		located, seen = v.located, nil
	}
	select {
	case addr := <-located:
		return t.answered(ctx, v.ep, addr, v.ended, func() error { return v.endedEarly(ctx) }, v.stdout, v.stderr)
	case <-seen:
		return time.Now(), nil
	case <-v.ended:
		return at, v.endedEarly(ctx)
	case <-ctx.Done():
		return at, v.endedEarly(ctx)
	}
}

// endedEarly is the failure of a sandbox that was to live on.
func (v *launched) endedEarly(ctx context.Context) error {
	select {
	case <-v.ended:
		return v.ep.endedEarly(ctx, v.ep.role.Name, v.got.Exit, v.err, v.stdout, v.stderr)
	case <-ctx.Done():
		return v.ep.judge(ctx, v.ep.role.Name, sandbox.Exit{}, fmt.Errorf("%s did not come up", v.ep.role.Name), v.stdout, v.stderr)
	}
}

// kill ends the sandbox and waits until all of it is gone. An error says what is
// not.
func (v *launched) kill() error {
	v.cancel()
	<-v.ended
	if onlyCanceled(v.err) {
		return nil
	}
	return v.err
}

// answered asks a role's server at an address until it answers. It fails as early says when
// ended comes first.
func (t *trial) answered(ctx context.Context, ep *endpoint, addr netip.Addr, ended <-chan struct{}, early func() error, stdout, stderr *output) (time.Time, error) {
	type result struct {
		at  time.Time
		err error
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	results := make(chan result, 1)
	go func() {
		at, err := t.maker.Place.Probe(asking, addr, *ep.role.Probe)
		results <- result{at, err}
	}()
	select {
	case r := <-results:
		if r.err == nil {
			return r.at, nil
		}
		return r.at, ep.noAnswer(ctx, r.err, stdout, stderr)
	case <-ended:
		stop()
		r := <-results
		if ctx.Err() != nil && r.err != nil {
			return r.at, ep.noAnswer(ctx, r.err, stdout, stderr) // it ended because its time was over
		}
		return r.at, early()
	}
}

// noAnswer is the failure of a server that gave no good answer: in time, or ever.
func (ep *endpoint) noAnswer(ctx context.Context, err error, stdout, stderr *output) error {
	f := &failure{kind: "garbage", role: ep.role.Name, tail: stderr.tail()}
	if f.tail == "" {
		f.tail = stdout.tail()
	}
	how := "answered wrongly"
	if ctx.Err() != nil {
		f.kind, how = "hung", "did not answer"
	}
	f.err = fmt.Errorf("%s %s on %w%s", ep.role.Name, how, err, lastLine(f.tail))
	if ctx.Err() != nil {
		f.err = ep.withMemoryLimit(withCause(ctx, f.err))
	}
	return f
}

// launch makes the role's command a sandbox's whole lifecycle, Count times, Whole
// and Phased in turn, in bursts. With a Probe the launch is cut when that was answered.
func (t *trial) launch(ctx context.Context, ep *endpoint, stdout, stderr *output) error {
	l, err := ep.launcher()
	if err != nil {
		return err
	}
	enc := json.NewEncoder(stdout)
	burst := max(1, ep.role.Burst)
	for from := 0; from < ep.role.Count; from += burst {
		for _, mode := range []sandbox.LaunchMode{sandbox.Whole, sandbox.Phased} {
			made, err := t.burst(ctx, l, ep, from, min(burst, ep.role.Count-from), mode, stderr)
			if err != nil {
				return err
			}
			for _, line := range made {
				if err := enc.Encode(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// burst launches n of the role's sandboxes at once, the from-th first, and waits until all are gone.
func (t *trial) burst(ctx context.Context, l sandbox.Launcher, ep *endpoint, from, n int, mode sandbox.LaunchMode, stderr *output) ([]workload.LaunchLine, error) {
	specs := make([]sandbox.Spec, n)
	for i := range specs {
		var err error
		if specs[i], err = t.prepareNth(ctx, ep, from+i, string(mode)); err != nil {
			return nil, err
		}
	}
	made, got, errs := make([]workload.LaunchLine, n), make([]sandbox.Launch, n), make([]error, n)
	var all sync.WaitGroup
	for i := range specs {
		all.Go(func() {
			if ep.role.Probe != nil {
				made[i], got[i], errs[i] = t.launchServer(ctx, l, ep, specs[i], mode, stderr)
			} else {
				made[i], got[i], errs[i] = launchOnce(ctx, l, ep, specs[i], mode, stderr)
			}
		})
	}
	all.Wait()
	for i := range specs {
		if errs[i] != nil {
			return nil, errs[i] // the first tells: the others mostly failed likewise
		}
		if err := t.maker.Place.Retire(specs[i].Name); err != nil {
			return nil, err
		}
		t.launchSteps(ep, &got[i])
	}
	if from == 0 && mode == sandbox.Whole { // what is in force does not change from launch to launch
		t.note(ep, got[0].Facts)
	}
	return made, nil
}

// launchSteps keeps the steps of a launched sandbox's start, its total time, and the size of the image that the node pulled for it.
func (t *trial) launchSteps(ep *endpoint, got *sandbox.Launch) {
	if got.Pulled > 0 {
		t.rec.Samples = append(t.rec.Samples, record.Sample{Name: record.SandboxPulled, Labels: ep.cost, Unit: record.Byte, Kind: record.Value, Value: float64(got.Pulled)})
	}
	if len(got.Boot) == 0 {
		return
	}
	whole := time.Duration(0)
	for _, p := range got.Boot {
		whole += p.Took
		t.bootStep(ep, p)
	}
	t.sample(record.SandboxLaunch, ep.cost, whole)
}

// launchOnce is one launch, from its begin to its end.
func launchOnce(ctx context.Context, l sandbox.Launcher, ep *endpoint, spec sandbox.Spec, mode sandbox.LaunchMode, stderr *output) (line workload.LaunchLine, _ sandbox.Launch, err error) {
	v := startLaunch(ctx, l, ep, spec, mode, "", stderr)
	defer v.cancel()
	<-v.ended
	if err := ep.judge(ctx, ep.role.Name, v.got.Exit, v.err, v.stdout, stderr); err != nil {
		return line, v.got, err
	}
	line = launchLine(mode, v.got)
	line.Instruction, line.Exited, line.Deleted = v.got.Instruction.Seconds(), v.got.Exited.Seconds(), v.got.Deleted.Seconds()
	return line, v.got, nil
}

// lifecycle times a sandbox like the role's, from the call that makes it until nothing is left of it, as
// hyperfine does with `runc run`. The role's own takes longer: it has an agent, and is ended from outside. One launch goes
// before it, because the first after other work takes half as long again. A launch that
// fails has no sample and no message, because the role's own sandbox fails likewise.
func (t *trial) lifecycle(ctx context.Context, ep *endpoint) error {
	l, ok := ep.kind.(sandbox.Launcher)
	if !ok {
		return nil
	}
	for _, name := range []string{"-first", "-life"} {
		want := ep.want
		want.Name += name
		want.Volumes, want.Writable, want.Networked = nil, ep.kind.Traits(want.Options).OwnRoot, false
		spec, err := t.prepareSandbox(ctx, want)
		if err != nil {
			return err
		}
		got, err := l.Launch(ctx, spec, sandbox.Command{Args: []string{"/tare-hello"}, Stdout: io.Discard, Stderr: io.Discard}, sandbox.Whole)
		if name == "-life" && err == nil && got.Exit.Code == 0 {
			t.sample(record.SandboxLife, ep.cost, got.Deleted)
		}
		if err := t.maker.Place.Retire(spec.Name); err != nil {
			return err
		}
	}
	return nil
}

// launchServer is one launch, from its begin to its first good answer, and on to
// where nothing is left of it.
func (t *trial) launchServer(ctx context.Context, l sandbox.Launcher, ep *endpoint, spec sandbox.Spec, mode sandbox.LaunchMode, stderr *output) (line workload.LaunchLine, _ sandbox.Launch, err error) {
	v := startLaunch(ctx, l, ep, spec, mode, "", stderr)
	at, err := v.up(ctx, t)
	if kerr := v.kill(); err == nil && kerr != nil {
		err = &failure{kind: "stop", role: ep.role.Name, err: fmt.Errorf("it answered, but then could not be stopped: %w", kerr)}
	}
	if err != nil {
		return line, v.got, err
	}
	line = launchLine(mode, v.got)
	line.Answered, line.Deleted = at.Sub(v.got.Begun).Seconds(), v.gone.Sub(v.got.Begun).Seconds()
	return line, v.got, nil
}

// launchLine has what the runtime's own steps took.
func launchLine(mode sandbox.LaunchMode, got sandbox.Launch) workload.LaunchLine {
	return workload.LaunchLine{Mode: string(mode), Created: got.Created.Seconds(), Started: got.Started.Seconds()}
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
