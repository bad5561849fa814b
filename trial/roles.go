package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/internal/window"
	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// group is the background roles under way.
type group struct {
	cancels []context.CancelFunc // in order of start
	results []chan error
	once    sync.Once
	err     error
	early   chan error // a background role that ended before it was told to
}

// end stops the background roles, last started first, and returns what went
// wrong with them. Only the first call does something.
func (g *group) end() error {
	g.once.Do(func() {
		var errs []error
		for i, cancel := range slices.Backward(g.cancels) {
			cancel()
			errs = append(errs, <-g.results[i])
		}
		g.err = errors.Join(errs...)
	})
	return g.err
}

// causeTime is how long the end of a background role may follow on the failure of
// one that spoke to it.
const causeTime = 200 * time.Millisecond

// cause returns why a foreground role failed: a client that lost its connection
// says less than the server that died meanwhile.
func (g *group) cause(err error) error {
	if len(g.cancels) == 0 || errors.Is(err, errTimeout) {
		return err
	}
	late := time.NewTimer(causeTime)
	defer late.Stop()
	select {
	case root := <-g.early:
		return root
	case <-late.C:
		return err
	}
}

// ready starts the background roles one after another and waits for each.
func (t *trial) ready(ctx context.Context, g *group) error {
	g.early = make(chan error, len(t.endpoints))
	for _, ep := range t.endpoints {
		if !ep.role.Background {
			continue
		}
		if err := t.background(ctx, g, ep); err != nil {
			return err
		}
	}
	return nil
}

// background starts one role and waits until it is ready.
func (t *trial) background(ctx context.Context, g *group, ep *endpoint) error {
	own, cancel := context.WithCancel(ctx)
	stdout, stderr := t.newOutputs(ep.role.Name, ep.role.Ready)
	result := make(chan error, 1)
	ended := make(chan struct{})
	g.cancels, g.results = append(g.cancels, cancel), append(g.results, result)
	go func() {
		err := t.exec(own, ep, stdout, stderr, true)
		if own.Err() == nil {
			g.early <- err
		}
		close(ended)
		result <- err
	}()
	early := func() error {
		select {
		case err := <-g.early:
			return err
		default: // it was told to end, by ctx
			return ep.judge(ctx, ep.role.Name, sandbox.Exit{}, nil, stdout, stderr)
		}
	}
	select {
	case <-stdout.seen:
	case <-ended:
		return early()
	case <-ctx.Done():
		return &failure{kind: "hung", role: ep.role.Name, tail: stderr.tail(),
			err: ep.withMemoryLimit(withCause(ctx, fmt.Errorf("%s did not become ready: it printed no line %q", ep.role.Name, ep.role.Ready)))}
	}
	if ep.role.Probe == nil {
		return nil
	}
	within := cmp.Or(t.maker.serverTime, serverTime)
	asking, stop := context.WithTimeoutCause(ctx, within, fmt.Errorf("a server must be ready within %s", param.FormatDuration(within)))
	defer stop()
	addr := ep.spec.Network.Addr.Addr()
	if !addr.IsValid() { // a pod has its address once it has started
		addr = ep.inst.Addr()
	}
	_, err := t.answered(asking, ep, addr, ended, early, stdout, stderr)
	return err
}

// serverTime is how long a server may take to its first good answer. The slowest of
// the catalogue takes a few seconds in the slowest sandbox; one that never listens is
// not waited for until the trial's time is over.
const serverTime = 30 * time.Second

// result is how a foreground role ended.
type result struct {
	ep  *endpoint
	err error
}

// startForeground starts the foreground roles, n of them, of which loads are the load's. The measured
// time is the load's, or the victim's if it is alone: it begins after warm, and ends early when until is
// closed, which is nil unless a role says so.
func (t *trial) startForeground(ctx context.Context, results chan<- result) (n, loads int, warm time.Duration, until <-chan struct{}) {
	for _, ep := range t.endpoints {
		if ep.role.Background {
			continue
		}
		n++
		stdout, stderr := t.newOutputs(ep.role.Name, ep.role.Until)
		var wait time.Duration // for the victim, of a load that has no gate
		if !record.IsVictim(ep.role.Name) {
			loads++
			if ep.role.Mode != workload.Exec {
				wait = t.victimWarmup()
			}
		}
		if len(t.roles) == 0 || !record.IsVictim(ep.role.Name) {
			warm = max(warm, wait+ep.role.Warmup)
			if ep.role.Until != "" && until == nil { // of copies, the first
				until = stdout.seen
			}
		}
		go func() {
			if wait > 0 {
				_ = sleep(ctx, wait) // if ctx ends, what follows says so
			}
			results <- result{ep, t.do(ctx, ep, stdout, stderr)}
		}()
	}
	return n, loads, warm, until
}

// foreground runs the other roles to their end, all at once, and records the
// warm-up and the measured window. A background role that ends early ends them.
func (t *trial) foreground(ctx context.Context, g *group) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make(chan result)
	from := t.elapsed()
	opened := t.makeGate()
	n, loads, warm, until := t.startForeground(ctx, results)
	warmed := time.NewTimer(warm)
	defer warmed.Stop()
	if opened != nil {
		warmed.Stop() // it counts from the common start
	}
	w := window.Span{}
	var first error
	early := false // first is a background role's
	for n > 0 {
		var err error
		select {
		case <-opened:
			opened = nil
			if at := t.gate.Moment(); !at.IsZero() {
				from = at.Sub(t.rec.Start) // what was waited for before is not a warm-up
				warmed.Reset(time.Until(at) + warm)
			}
		case <-warmed.C:
			if w.To == 0 {
				w.From = t.sampler.mark()
			}
		case <-until:
			until, w.To = nil, t.sampler.mark()
		case r := <-results:
			n--
			err = r.err
			if !record.IsVictim(r.ep.role.Name) {
				loads--
				if loads == 0 && n > 0 && w.To == 0 {
					w.To = t.sampler.mark()
				}
			}
		case err = <-g.early:
			early = early || first == nil
		}
		switch {
		case err == nil:
		case errors.Is(err, sandbox.ErrGate):
			// The one that failed before the gate ends by itself, and says why.
			first = cmp.Or(first, err)
		case first == nil || errors.Is(first, sandbox.ErrGate):
			first = err
			cancel(errOther)
		}
	}
	if w.To == 0 {
		w.To = t.sampler.mark()
	}
	t.recordRun(from, w)
	t.keepSkew()
	if first == nil {
		first = cmp.Or(t.keepOverlap(), t.keepVictimOverlap(w))
	}
	if first != nil && !early {
		first = g.cause(first)
	}
	if first != nil && t.rec.Failure == nil {
		t.markFailed(PhaseRun)
	}
	return first
}

var errOther = errors.New("another role of the trial failed")

// do runs one foreground role in its mode.
func (t *trial) do(ctx context.Context, ep *endpoint, stdout, stderr *output) error {
	switch ep.role.Mode {
	case workload.Launch:
		return t.launch(ctx, ep, stdout, stderr)
	case workload.Idle:
		return t.idle(ctx, ep, stdout, stderr)
	case workload.Checkpoint:
		return t.checkpoint(ctx, ep, stdout, stderr)
	default:
		return t.exec(ctx, ep, stdout, stderr, false)
	}
}

// exec runs a role's command in its started sandbox and judges its exit. A
// background role is told to end, and how it then does is not a failure of it.
func (t *trial) exec(ctx context.Context, ep *endpoint, stdout, stderr *output, background bool) error {
	cmd := ep.command(t.addressed(ep.role.Args), stdout, stderr)
	if !background {
		cmd.Gate = t.gate
	}
	exit, err := ep.inst.Exec(ctx, cmd)
	if !exit.Start.IsZero() {
		ep.begun, ep.within, ep.ended = exit.Start, exit.StartWithin, time.Now()
		stdout.began = exit.Start.Sub(t.rec.Start)
	}
	if background && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) && err == nil && !exit.OOM {
		t.warnBadEnd(ep, exit)
		return nil
	}
	if background && ctx.Err() == nil {
		return ep.endedEarly(ctx, ep.role.Name, exit, err, stdout, stderr)
	}
	return ep.judge(ctx, ep.role.Name, exit, err, stdout, stderr)
}

// warnBadEnd warns of a background role that did not end as it was told to: what
// was measured is none the worse for it, but its own last words may be missing.
func (t *trial) warnBadEnd(ep *endpoint, exit sandbox.Exit) {
	const byTerm = 128 + 15 // as a shell, and some programs, say SIGTERM
	if exit.Code == 0 || exit.Code == byTerm || exit.Signal == "SIGTERM" {
		return
	}
	how := fmt.Sprintf("ended with exit code %d when it was", exit.Code)
	switch {
	case exit.Signal == "SIGKILL":
		how = "did not end within 2 s of SIGTERM and was killed, when it was"
	case exit.Signal != "":
		how = "was killed by " + exit.Signal + " when it was"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec.Warnings = append(t.rec.Warnings, record.Warning{Code: "bad-end", Text: fmt.Sprintf("%s %s told to end", ep.role.Name, how)})
}

// addressed puts the addresses of the other roles' sandboxes into a command.
func (t *trial) addressed(args []string) []string {
	var pairs []string
	for _, ep := range t.endpoints {
		if ep.inst != nil && ep.inst.Addr().IsValid() {
			pairs = append(pairs, "{"+ep.role.Name+"}", ep.inst.Addr().String())
		}
		if ep.spec.Network.Further.IsValid() {
			pairs = append(pairs, "{"+ep.role.Name+"/more}", ep.spec.Network.Further.String())
		}
	}
	r := strings.NewReplacer(pairs...)
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = r.Replace(a)
	}
	return out
}

// recordRun records the phases warm-up and run. A role that ended within its
// warm-up has no window; one that ended before it began has no warm-up either.
func (t *trial) recordRun(from time.Duration, w window.Span) {
	if w.From == 0 {
		w.From = w.To
	}
	from = min(from, w.From)
	t.rec.Phases = append(t.rec.Phases,
		record.Phase{Name: PhaseWarmup, Offset: from, Duration: w.From - from},
		record.Phase{Name: PhaseRun, Offset: w.From, Duration: w.To - w.From})
	t.window, t.loaded = w, window.Span{From: from, To: w.To}
}

func (t *trial) markFailed(phase string) { t.rec.Failure = &record.Failure{Phase: phase} }
