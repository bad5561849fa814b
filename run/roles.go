package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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
		for i := len(g.cancels) - 1; i >= 0; i-- {
			g.cancels[i]()
			errs = append(errs, <-g.results[i])
		}
		g.err = errors.Join(errs...)
	})
	return g.err
}

// ready starts the background roles one after another and waits for each.
func (t *trial) ready(ctx context.Context, g *group) error {
	g.early = make(chan error, len(t.ends))
	for _, en := range t.ends {
		if !en.role.Background {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		stdout, stderr := t.newOutputs(en.role.Name, en.role.Ready)
		result := make(chan error, 1)
		g.cancels, g.results = append(g.cancels, cancel), append(g.results, result)
		go func() {
			err := t.exec(own, en, stdout, stderr, true)
			if own.Err() == nil {
				if err == nil {
					err = &failure{kind: "died", role: en.role.Name, tail: stderr.tail(),
						err: fmt.Errorf("%s ended before it was told to", en.role.Name)}
				}
				g.early <- err
			}
			result <- err
		}()
		select {
		case <-stdout.seen:
		case err := <-g.early:
			return err
		case <-ctx.Done():
			return &failure{kind: "hung", role: en.role.Name, tail: stderr.tail(),
				err: withCause(ctx, fmt.Errorf("%s did not become ready: no line %q", en.role.Name, en.role.Ready))}
		}
	}
	return nil
}

// foreground runs the other roles to their end, all at once, and records the
// warm-up and the measured window. A background role that ends early ends them.
func (t *trial) foreground(ctx context.Context, g *group) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var warm time.Duration
	results := make(chan error)
	n := 0
	from := t.elapsed()
	for _, en := range t.ends {
		if en.role.Background {
			continue
		}
		n++
		warm = max(warm, en.role.Warmup)
		stdout, stderr := t.newOutputs(en.role.Name, "")
		go func() { results <- t.do(ctx, en, stdout, stderr) }()
	}
	warmed := time.NewTimer(warm)
	defer warmed.Stop()
	w := window{}
	var first error
	for n > 0 {
		var err error
		select {
		case <-warmed.C:
			w.from = t.sampler.mark()
		case err = <-results:
			n--
		case err = <-g.early:
		}
		if err != nil && first == nil {
			first = err
			cancel(errOther)
		}
	}
	w.to = t.sampler.mark()
	t.recordRun(from, w)
	if first != nil && t.rec.Failure == nil {
		t.markFailed(PhaseRun)
	}
	return first
}

var errOther = errors.New("another role of the trial failed")

// do runs one foreground role in its mode.
func (t *trial) do(ctx context.Context, en *end, stdout, stderr *output) error {
	switch en.role.Mode {
	case workload.Launch:
		return t.launch(ctx, en, stdout, stderr)
	case workload.Idle:
		return t.idle(ctx, en, stdout, stderr)
	default:
		return t.exec(ctx, en, stdout, stderr, false)
	}
}

// exec runs a role's command in its started sandbox and judges its exit. A
// background role is told to end, so SIGTERM is no failure of it.
func (t *trial) exec(ctx context.Context, en *end, stdout, stderr *output, background bool) error {
	exit, err := en.inst.Exec(ctx, sandbox.Command{
		Args: t.addressed(en.role.Args), Env: en.role.Env, Stdout: stdout, Stderr: stderr,
	})
	if background && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) && err == nil &&
		(exit.Code == 0 || exit.Signal == "SIGTERM") {
		return nil
	}
	return judge(ctx, en.role.Name, exit, err, stdout, stderr)
}

// judge turns the end of a command into nil or into a failure that says what
// kind of bad luck it was.
func judge(ctx context.Context, role string, exit sandbox.Exit, err error, stdout, stderr *output) error {
	f := &failure{kind: "died", role: role, tail: stderr.tail()}
	if f.tail == "" {
		f.tail = stdout.tail()
	}
	switch {
	case exit.OOM:
		f.kind = "memory"
		f.err = fmt.Errorf("%s was killed: out of memory; raise the memory limit or ask for less", role)
	case ctx.Err() != nil:
		f.kind = "hung"
		f.err = fmt.Errorf("%s was still running", role)
		if err != nil { // the sandbox knows which of its steps did not end
			f.err = err
		}
		f.err = withCause(ctx, f.err)
	case err != nil:
		f.err = fmt.Errorf("the sandbox failed: %w", err)
	case exit.Signal != "":
		f.err = fmt.Errorf("%s was killed by %s%s", role, exit.Signal, lastLine(f.tail))
	case exit.Code != 0:
		if strings.Contains(f.tail, "No space left on device") || strings.Contains(f.tail, "no space left on device") {
			f.kind = "disk"
		}
		f.err = fmt.Errorf("%s ended with exit code %d%s", role, exit.Code, lastLine(f.tail))
	default:
		return nil
	}
	return f
}

// lastLine is where a program usually says why.
func lastLine(tail string) string {
	lines := strings.Split(strings.TrimSpace(tail), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return ": " + last
	}
	return ""
}

// addressed puts the addresses of the other roles' sandboxes into a command.
func (t *trial) addressed(args []string) []string {
	var pairs []string
	for _, en := range t.ends {
		if en.inst != nil && en.inst.Addr().IsValid() {
			pairs = append(pairs, "{"+en.role.Name+"}", en.inst.Addr().String())
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
// warm-up has no window.
func (t *trial) recordRun(from time.Duration, w window) {
	if w.from == 0 {
		w.from = w.to
	}
	t.rec.Phases = append(t.rec.Phases,
		record.Phase{Name: PhaseWarmup, Offset: from, Duration: w.from - from},
		record.Phase{Name: PhaseRun, Offset: w.from, Duration: w.to - w.from})
	t.window = w
}

func (t *trial) markFailed(phase string) { t.rec.Failure = &record.Failure{Phase: phase} }
