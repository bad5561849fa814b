package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"tare/internal/window"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// Phases of a trial, in order. The last three happen whatever went before.
const (
	PhasePrepare = "prepare" // directories, network
	PhaseStart   = "start"   // sandboxes
	PhaseLayOut  = "lay-out" // commands before the measuring, caches; of trials with such roles
	PhaseReady   = "ready"   // background roles come up
	PhaseSettle  = "settle"  // of trials with a sandbox that is still too young
	PhaseWarmup  = "warmup"
	PhaseRun     = record.PhaseRun
	PhaseFinish  = "finish"  // background roles end, output is parsed
	PhaseStop    = "stop"    // sandboxes
	PhaseCleanup = "cleanup" // network, directories
)

// set is the sandboxes of a trial. They start once; what runs in them may be measured
// several times, in turns (turns.go).
type set struct {
	parts
	maker     *Maker
	name      string // unique at the site; begins the names of its sandboxes
	node      string // that it is on
	endpoints []*endpoint
	turn      int // under way, from 1
}

// trial is the state of one trial under way.
type trial struct {
	set
	rec      *record.Trial
	evidence record.Evidence
	sampler  *sampler
	outputs  []*output
	window   window.Span
	loaded   window.Span   // see reading
	gate     *sandbox.Gate // of foreground roles that start together; nil: none
	readings []reading     // of the turns so far, where there are several

	manifests [][]byte // of its sandboxes, one for each role

	mu sync.Mutex // roles warn at the same time
}

// Trial runs one cell once, in sandboxes of its own. It always returns a trial; what went
// wrong is in its Failure. Nothing of the trial is left on the host, or a warning says what.
func (m *Maker) Trial(ctx context.Context, next plan.Next) (*record.Trial, record.Evidence) {
	t := m.begin(next)
	t.attempt(ctx, func(ctx context.Context) error {
		if err := t.open(ctx); err != nil {
			return err
		}
		return t.weigh(ctx)
	})
	return t.finish(ctx, next)
}

// begin is a trial of which nothing is made yet.
func (m *Maker) begin(next plan.Next) *trial {
	return &trial{
		set: set{maker: m, node: next.Node, name: m.ID + "-" + strconv.Itoa(next.Seq), turn: 1},
		rec: &record.Trial{
			Seq: next.Seq, Block: next.Block, Attempt: next.Attempt, Cell: next.Cell,
			Status: record.OK, Start: time.Now(), Facts: map[string]string{},
		},
	}
}

// attempt does a part of the trial within the trial's time, and notes the first failure.
func (t *trial) attempt(ctx context.Context, part func(context.Context) error) {
	if t.load == nil {
		if err := t.resolve(); err != nil {
			t.fail(err)
			return
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, t.timeout(), errTimeout)
	defer cancel()
	t.fail(part(limited))
}

// finish takes the sandboxes away and completes the record.
func (t *trial) finish(ctx context.Context, next plan.Next) (*record.Trial, record.Evidence) {
	t.end(ctx)
	if next.Sentinel {
		t.keepWait()
	}
	if next.Counting {
		t.keepCounts()
	}
	t.rec.Duration = t.elapsed()
	t.keepOutputs("")
	if len(t.manifests) > 0 {
		t.evidence.Raw = append(t.evidence.Raw, record.Raw{Name: record.RawManifests, Data: bytes.Join(t.manifests, []byte("---\n"))})
	}
	return t.rec, t.evidence
}

var errTimeout = errors.New("the trial took longer than its timeout")

func (t *trial) elapsed() time.Duration { return time.Since(t.rec.Start) }

func (t *trial) resolve() error {
	var err error
	t.parts, err = t.maker.partsOf(t.rec.Cell)
	return err
}

// timeout is the study's, or long enough that only a hang reaches it.
func (t *trial) timeout() time.Duration {
	if t.maker.Study.Timeout > 0 {
		return t.maker.Study.Timeout
	}
	roles := t.maker.launching(&t.parts)
	d := 4*(workload.Total(roles)+t.victimWarmup()) + time.Minute
	for i := range roles {
		d = max(d, roles[i].Within+time.Minute)
	}
	for i := range roles {
		if len(roles[i].Before) > 0 {
			d += layOutTime + roles[i].BeforeWithin
		}
	}
	for i := range roles {
		if roles[i].Fill > 0 {
			d += fillTime
		}
	}
	if k := t.maker.Kinds[t.res.Sandbox]; k != nil { // further copies start one after another
		d += 4 * time.Duration(max(1, t.res.Copies)-1) * k.Traits(t.res.Options).Takes
	}
	return d
}

// fillTime is how long filling a node may take beyond the rest.
const fillTime = 5 * time.Minute

// layOutTime is how long laying files out may take beyond the rest.
const layOutTime = 2 * time.Minute

// open makes the sandboxes and lays out what the workload needs. The order of a trial's parts
// is pinned by a test.
func (t *trial) open(ctx context.Context) error {
	if err := t.phase(PhasePrepare, func() error {
		if err := t.applySettings(); err != nil {
			return err
		}
		return t.prepare(ctx)
	}); err != nil {
		return err
	}
	if err := t.phase(PhaseStart, func() error { return t.start(ctx) }); err != nil {
		return err
	}
	if !t.laysOut() {
		return nil
	}
	return t.phase(PhaseLayOut, func() error { return t.layOut(ctx) })
}

// weigh runs the workload in the sandboxes, from its warm-up to its end.
func (t *trial) weigh(ctx context.Context) error {
	if err := t.applySettings(); err != nil {
		return err
	}
	t.openSampler(ctx)
	background := &group{}
	if err := t.phase(PhaseReady, func() error { return t.ready(ctx, background) }); err != nil {
		return errors.Join(err, background.end())
	}
	err := t.settle(ctx)
	if err == nil {
		err = t.foreground(ctx, background)
	}
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
	if known, ok := errors.AsType[*failure](err); ok {
		f.Kind, f.Role, f.Tail = known.kind, known.role, known.tail
		f.Reason = firstLine(known.err)
	}
	var refused *sandbox.RefusedError
	switch {
	case errors.Is(err, sandbox.ErrNodeLost): // which is why it has no end, if it has none
		f.Kind = record.NodeLost
	case errors.Is(err, sandbox.ErrNoImage):
		f.Kind = record.NoImage
	case errors.As(err, &refused):
		f.Kind, f.Reason, f.Tail = record.Refused, refused.Why, refused.Raw
	case errors.Is(err, errTimeout):
		f.Kind = "hung"
		f.Reason = fmt.Sprintf("no end after %s (the timeout): %s", param.FormatDuration(t.timeout().Round(time.Second)), f.Reason)
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
	warn := func(err error) {
		t.rec.Warnings = append(t.rec.Warnings, record.Warning{
			Code: "left-behind", Text: fmt.Sprintf("%v; `tare clean` removes it", err),
		})
	}
	_ = t.phase(PhaseStop, func() error {
		for _, ep := range t.endpoints {
			if ep.inst == nil {
				continue
			}
			t.clock(ctx, ep, clockStop)
			began := time.Now()
			if err := ep.inst.Stop(ctx); err != nil {
				warn(fmt.Errorf("sandbox %s: %w", ep.want.Name, err))
			}
			took := time.Since(began)
			t.note(ep, ep.inst.Facts()) // some are known at the end only
			t.sample("sandbox_stop", ep.cost, took)
			if took > slowStop {
				t.rec.Warnings = append(t.rec.Warnings, record.Warning{
					Code: "slow-stop", Text: fmt.Sprintf("%s took %.0f s to stop; its runtime may hang", ep.kind.Name(), took.Seconds()),
				})
			}
		}
		return nil
	})
	_ = t.phase(PhaseCleanup, func() error {
		for _, err := range t.maker.Place.Release(ctx, t.name) {
			warn(err)
		}
		return nil
	})
}

// withCause adds why ctx ended, so that a timeout is reported as one.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
