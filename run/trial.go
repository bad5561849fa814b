package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tare/plan"
	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// Phases of a trial, in order. The last three happen whatever went before.
const (
	PhasePrepare = "prepare" // directories, network
	PhaseStart   = "start"   // sandboxes
	PhaseReady   = "ready"   // background roles come up
	PhaseWarmup  = "warmup"
	PhaseRun     = "run"
	PhaseFinish  = "finish"  // background roles end, output is parsed
	PhaseStop    = "stop"    // sandboxes
	PhaseCleanup = "cleanup" // network, directories
)

// trial is the state of one trial under way.
type trial struct {
	engine   *Engine
	res      study.Resolved
	load     workload.Workload
	roles    []workload.Role
	rec      *record.Trial
	evidence record.Evidence
	prefix   string
	ends     []*end
	sampler  *sampler
	outputs  []*output
	window   window
}

// end is one role's sandbox.
type end struct {
	role workload.Role
	kind sandbox.Kind
	spec sandbox.Spec
	inst sandbox.Instance
	cost record.Labels // of its start and stop times
}

// window is the stretch that is measured, as offsets from the trial's start.
type window struct{ from, to time.Duration }

// failure is an error that knows what kind of bad luck it is.
type failure struct {
	kind string
	role string
	tail string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Trial runs one cell once. It always returns a trial; what went wrong is in
// its Failure. Nothing of the trial is left on the host, or a warning says what.
func (e *Engine) Trial(ctx context.Context, next plan.Next) (*record.Trial, record.Evidence) {
	t := &trial{engine: e, rec: &record.Trial{
		Seq: next.Seq, Block: next.Block, Attempt: next.Attempt, Cell: next.Cell,
		Status: record.OK, Start: time.Now(), Facts: map[string]string{},
	}}
	t.prefix = e.ID + "-" + strconv.Itoa(next.Seq)

	err := t.resolve()
	if err == nil {
		limited, cancel := context.WithTimeoutCause(ctx, t.timeout(), errTimeout)
		err = t.measure(limited)
		cancel()
	}
	t.fail(err)
	t.end(ctx)
	t.rec.Duration = t.elapsed()
	t.keepOutputs()
	return t.rec, t.evidence
}

var errTimeout = errors.New("the trial took longer than its timeout")

func (t *trial) elapsed() time.Duration { return time.Since(t.rec.Start) }

func (t *trial) resolve() error {
	var err error
	if t.res, err = t.engine.Study.Resolve(t.engine.Catalogue, t.rec.Cell); err != nil {
		return err
	}
	t.load = t.engine.Workloads[t.res.Workload.Kind]
	if t.load == nil {
		return fmt.Errorf("there is no workload %q", t.res.Workload.Kind)
	}
	t.roles, err = t.load.Roles(t.res.Params)
	return err
}

// timeout is the study's, or long enough that only a hang reaches it.
func (t *trial) timeout() time.Duration {
	if t.engine.Study.Timeout > 0 {
		return t.engine.Study.Timeout
	}
	return 4*workload.Total(t.roles) + time.Minute
}

// measure is the part of a trial that may fail. Its order is pinned by a test.
func (t *trial) measure(ctx context.Context) error {
	if err := t.phase(PhasePrepare, func() error { return t.prepare() }); err != nil {
		return err
	}
	if err := t.phase(PhaseStart, func() error { return t.start(ctx) }); err != nil {
		return err
	}
	t.openSampler(ctx)
	background := &group{}
	if err := t.phase(PhaseReady, func() error { return t.ready(ctx, background) }); err != nil {
		return errors.Join(err, background.end())
	}
	err := t.foreground(ctx, background)
	finish := func() error { return errors.Join(background.end(), t.parse(err == nil)) }
	return errors.Join(err, t.phase(PhaseFinish, finish))
}

// phase runs f and records when and how long; the first failure is marked with
// the phase that it happened in.
func (t *trial) phase(name string, f func() error) error {
	from := t.elapsed()
	err := f()
	t.rec.Phases = append(t.rec.Phases, record.Phase{Name: name, Offset: from, Duration: t.elapsed() - from})
	if err != nil && t.rec.Failure == nil {
		t.rec.Failure = &record.Failure{Phase: name}
	}
	return err
}

// prepare makes the places that the sandboxes need.
func (t *trial) prepare() error {
	for i := range t.roles {
		role := t.roles[i]
		en := &end{role: role}
		kind, isolated := t.kindOf(role)
		if en.kind = t.engine.Kinds[kind]; en.kind == nil {
			return fmt.Errorf("there is no sandbox %q", kind)
		}
		en.cost = record.MakeLabels("end", role.Name, "sandbox", kind)
		en.spec = sandbox.Spec{
			Name: t.prefix + "-" + role.Name,
			Dir:  filepath.Join(t.engine.Dirs.State, t.prefix, role.Name),
			Root: t.engine.Dirs.Root,
		}
		if isolated {
			en.spec.CPULimit, en.spec.MemoryLimit, en.spec.CPUs = t.res.CPULimit, t.res.MemoryLimit, t.res.CPUs
			en.spec.Options = t.res.Options
		}
		t.ends = append(t.ends, en)
		if err := os.MkdirAll(en.spec.Dir, 0o700); err != nil {
			return fmt.Errorf("cannot make the sandbox's directory: %w", err)
		}
		if role.Data {
			en.spec.Data = filepath.Join(t.engine.Dirs.Data, t.prefix, role.Name)
			if err := os.MkdirAll(en.spec.Data, 0o700); err != nil {
				return fmt.Errorf("cannot make the data directory: %w", err)
			}
		}
		if len(t.roles) > 1 && role.Mode == workload.Exec {
			var err error
			if en.spec.Network, err = t.engine.Network.Attach(en.spec.Name); err != nil {
				return fmt.Errorf("cannot connect the sandbox to the bridge: %w", err)
			}
		}
	}
	return nil
}

// kindOf says where a role runs and whether that is the isolated end: with two
// ends the factor isolate chooses, the other end runs natively.
func (t *trial) kindOf(role workload.Role) (kind string, isolated bool) {
	if len(t.roles) == 1 || t.res.Isolate == "both" || t.res.Isolate == role.Name {
		return t.res.Sandbox, true
	}
	return "process", false
}

// start starts the sandbox of every role that runs in a started one.
func (t *trial) start(ctx context.Context) error {
	for _, en := range t.ends {
		if en.role.Mode != workload.Exec {
			continue
		}
		began := time.Now()
		inst, err := en.kind.Start(ctx, en.spec)
		if err != nil {
			return &failure{kind: "start", role: en.role.Name, err: fmt.Errorf("%s did not start: %w", en.kind.Name(), withCause(ctx, err))}
		}
		en.inst = inst
		t.sample("sandbox_start", en.cost, time.Since(began))
		for k, v := range inst.Facts() {
			t.rec.Facts[en.role.Name+"."+k] = v
		}
	}
	return nil
}

func (t *trial) sample(name string, labels record.Labels, d time.Duration) {
	t.rec.Samples = append(t.rec.Samples, record.Sample{
		Name: name, Labels: labels, Unit: record.Second, Kind: record.Value, Value: d.Seconds(),
	})
}

// fail writes down what went wrong.
func (t *trial) fail(err error) {
	if err == nil {
		return
	}
	t.rec.Status = record.Failed
	if t.rec.Failure == nil {
		t.rec.Failure = &record.Failure{Phase: PhasePrepare}
	}
	f := t.rec.Failure
	f.Kind, f.Reason = "other", firstLine(err)
	var known *failure
	if errors.As(err, &known) {
		f.Kind, f.Role, f.Tail = known.kind, known.role, known.tail
		f.Reason = firstLine(known.err)
	}
	if errors.Is(err, errTimeout) {
		f.Kind = "hung"
		f.Reason = fmt.Sprintf("no end after %s (the timeout): %s", t.timeout().Round(time.Second), f.Reason)
	}
}

// slowStop is how long a sandbox may take to stop without a word about it.
const slowStop = 5 * time.Second

// end takes everything away again. It has its own time, so that an interrupted
// trial is cleaned up too. What cannot be removed is a warning: `tare clean`
// finds it.
func (t *trial) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	t.closeSampler()
	warn := func(what string, err error) {
		if err != nil {
			t.rec.Warnings = append(t.rec.Warnings, record.Warning{
				Code: "left-behind", Text: fmt.Sprintf("%s: %v; `tare clean` removes it", what, err),
			})
		}
	}
	_ = t.phase(PhaseStop, func() error {
		for _, en := range t.ends {
			if en.inst == nil {
				continue
			}
			began := time.Now()
			warn("sandbox "+en.spec.Name, en.inst.Stop(ctx))
			took := time.Since(began)
			t.sample("sandbox_stop", en.cost, took)
			if took > slowStop {
				t.rec.Warnings = append(t.rec.Warnings, record.Warning{
					Code: "slow-stop", Text: fmt.Sprintf("%s took %.0f s to stop; its runtime may hang", en.kind.Name(), took.Seconds()),
				})
			}
		}
		return nil
	})
	_ = t.phase(PhaseCleanup, func() error {
		for _, en := range t.ends {
			if en.spec.Network.Path != "" {
				warn("network of "+en.spec.Name, t.engine.Network.Detach(en.spec.Name))
			}
		}
		for _, dir := range []string{t.engine.Dirs.State, t.engine.Dirs.Data} {
			if dir != "" {
				warn("directory", os.RemoveAll(filepath.Join(dir, t.prefix)))
			}
		}
		return nil
	})
}

// withCause adds why ctx ended, so that a timeout is told as one.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
