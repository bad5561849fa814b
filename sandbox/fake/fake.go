// Package fake is a sandbox that runs nothing: the engine's tests and
// rehearsals of studies get their answers from a script in memory, in
// microseconds, and deterministic under testing/synctest.
//
// The data path: 1. a Behaviour says how each step of a sandbox's life goes:
// how long it takes, how it fails; 2. Start, Exec, Launch and Stop follow it;
// 3. what a command prints comes from Behaviour.Run, which in the level `fake`
// of a study answers for noop, startup and density.
//
// All waiting is by timers of package time and ends with the context, except
// where a Behaviour asks for what ignores it.
package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"tare/param"
	"tare/record"
	"tare/sandbox"
)

// Run answers for a command: what it prints, and how it ends. A returned error
// is the sandbox's failure. The command takes Behaviour.Takes at least.
type Run func(context.Context, sandbox.Spec, sandbox.Command) (stdout, stderr string, exit sandbox.Exit, err error)

// Behaviour is the script of one sandbox. The zero value starts and stops at
// once and runs every command to success without output.
type Behaviour struct {
	StartTakes time.Duration
	StartErr   error // Start fails with it, after StartTakes
	StartHangs bool  // until its context ends

	Takes time.Duration // of each command
	Run   Run           // nil: success, no output
	Dies  time.Duration // after this long in a command the sandbox dies; 0 never
	Hangs bool          // a command ends only by its context, with SIGTERM's exit
	Deaf  bool          // with Hangs: the agent does not answer either; Exec fails after the context

	StopTakes time.Duration
	StopErr   error
}

// The failures that a study on real sandboxes meets, ready to use in Run.

// Garbage answers with bytes that no parser should accept.
func Garbage(context.Context, sandbox.Spec, sandbox.Command) (stdout, stderr string, exit sandbox.Exit, err error) {
	return "\x00\xff{]\x1b[2J" + strings.Repeat("garbage ", 100), "", sandbox.Exit{}, nil
}

// OOM answers as a command that the kernel killed for memory.
func OOM(context.Context, sandbox.Spec, sandbox.Command) (stdout, stderr string, exit sandbox.Exit, err error) {
	return "", "", sandbox.Exit{Code: 137, Signal: "SIGKILL", OOM: true}, nil
}

// DiskFull answers as a command whose writes fail.
func DiskFull(context.Context, sandbox.Spec, sandbox.Command) (stdout, stderr string, exit sandbox.Exit, err error) {
	return "", "write /data/file: no space left on device\n", sandbox.Exit{Code: 1}, nil
}

// Print returns a Run that prints one text.
func Print(text string) Run {
	return func(context.Context, sandbox.Spec, sandbox.Command) (string, string, sandbox.Exit, error) {
		return text, "", sandbox.Exit{}, nil
	}
}

// ErrDied is in the error of a command whose sandbox died.
var ErrDied = errors.New("the sandbox ended")

// Kind makes fake sandboxes.
type Kind struct {
	Level     string                                // its name; "" is fake
	CheckErr  error                                 // what Check says
	Behaviour func(sandbox.Spec) Behaviour          // asked for each sandbox; nil: the study level's
	Observe   func(event string, spec sandbox.Spec) // called at start, exec, launch, stop; may be nil

	mu   sync.Mutex
	live map[string]*instance
}

// New returns the level `fake` of studies: it answers for noop, startup and density.
func New() *Kind { return &Kind{} }

// Name implements sandbox.Kind.
func (k *Kind) Name() string {
	if k.Level == "" {
		return "fake"
	}
	return k.Level
}

// About implements sandbox.Kind.
func (k *Kind) About() string {
	return "runs nothing: invented answers for the workloads noop, startup and density, to rehearse a study"
}

// Params implements sandbox.Kind.
func (k *Kind) Params() []param.Param {
	return []param.Param{{
		Name: "slowdown", Type: param.Float, Default: "1", Min: 0.01, Max: 1000,
		Help: "every invented figure is multiplied, and every command takes longer, by this ratio",
	}}
}

// Traits implements sandbox.Kind.
func (*Kind) Traits(map[string]string) sandbox.Traits {
	return sandbox.Traits{Traits: record.Traits{Family: record.FamilyFake, Emulated: record.No, Native: sandbox.Native}}
}

// Check implements sandbox.Kind.
func (k *Kind) Check(context.Context) error { return k.CheckErr }

// Live lists the sandboxes that were started and not stopped.
func (k *Kind) Live() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]string, 0, len(k.live))
	for name := range k.live {
		out = append(out, name)
	}
	return out
}

func (k *Kind) observe(event string, spec sandbox.Spec) {
	if k.Observe != nil {
		k.Observe(event, spec)
	}
}

func (k *Kind) behave(spec sandbox.Spec) Behaviour {
	if k.Behaviour != nil {
		return k.Behaviour(spec)
	}
	return level(spec)
}

// Start implements sandbox.Kind.
func (k *Kind) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	k.observe("start", spec)
	i := &instance{kind: k, spec: spec, does: k.behave(spec), gone: make(chan struct{})}
	k.mu.Lock()
	if k.live == nil {
		k.live = map[string]*instance{}
	}
	_, taken := k.live[spec.Name]
	if !taken {
		k.live[spec.Name] = i
	}
	k.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("%s: there is a sandbox %s already", k.Name(), spec.Name)
	}
	err := sleep(ctx, i.does.StartTakes)
	if err == nil && i.does.StartHangs {
		<-ctx.Done()
		err = ctx.Err()
	}
	if err == nil {
		err = i.does.StartErr
	}
	if err != nil {
		k.forget(i)
		return nil, fmt.Errorf("%s %s: %w", k.Name(), spec.Name, err)
	}
	return i, nil
}

func (k *Kind) forget(i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live[i.spec.Name] == i {
		delete(k.live, i.spec.Name)
	}
}

// Launch implements sandbox.Launcher: a start, a command and a stop in a row.
func (k *Kind) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (l sandbox.Launch, err error) {
	k.observe("launch", spec)
	begun := time.Now()
	l.Begun = begun
	inst, err := k.Start(ctx, spec)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, inst.Stop(context.WithoutCancel(ctx))) }()
	created := time.Since(begun)
	first := &firstWriter{to: c.Stdout}
	c.Stdout = first
	if l.Exit, err = inst.Exec(ctx, c); err != nil {
		return l, err
	}
	l.Exited = time.Since(begun)
	if !first.at.IsZero() {
		l.Instruction = first.at.Sub(begun)
	}
	if err = inst.Stop(ctx); err != nil {
		return l, err
	}
	l.Deleted = time.Since(begun)
	if mode == sandbox.Phased {
		l.Created, l.Started = created, created
	}
	return l, nil
}

// sleep waits by the clock, and returns early with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// firstWriter notes when it was first written to.
type firstWriter struct {
	to io.Writer
	at time.Time
}

// Write passes on.
func (w *firstWriter) Write(p []byte) (int, error) {
	if w.at.IsZero() && len(p) > 0 {
		w.at = time.Now()
	}
	if w.to == nil {
		return len(p), nil
	}
	return w.to.Write(p)
}

var _ sandbox.Launcher = (*Kind)(nil)
