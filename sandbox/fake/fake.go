// Package fake is a sandbox that runs nothing: rehearsals of studies get their
// answers from memory, in milliseconds, and deterministic under testing/synctest.
//
// The data path: 1. Start, Exec and Stop wait a millisecond each, times the
// parameter slowdown; 2. what a command prints is invented by answer, for the
// workloads noop, startup and density.
//
// All waiting is by timers of package time and ends with the context.
package fake

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"tare/param"
	"tare/record"
	"tare/sandbox"
)

// Fake makes fake sandboxes.
type Fake struct {
	mu   sync.Mutex
	live map[string]*instance
}

// New returns the kind `fake`.
func New() *Fake { return &Fake{live: map[string]*instance{}} }

// Name implements sandbox.Kind.
func (*Fake) Name() string { return "fake" }

// About implements sandbox.Kind.
func (*Fake) About() string {
	return "runs nothing, and invents answers for the workloads noop, startup and density, to rehearse a study"
}

// Params implements sandbox.Kind.
func (*Fake) Params() []param.Param {
	return []param.Param{{
		Name: "slowdown", Type: param.Float, Default: "1", Min: 0.01, Max: 1000,
		Help: "factor by which every invented figure is larger, and every command slower",
	}}
}

// Traits implements sandbox.Kind.
func (*Fake) Traits(map[string]string) sandbox.Traits {
	return sandbox.Traits{Traits: record.Traits{Family: record.FamilyFake, Emulated: record.No, Native: sandbox.Native}}
}

// Check implements sandbox.Kind.
func (*Fake) Check(context.Context) error { return nil }

// Start implements sandbox.Kind.
func (k *Fake) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	i := &instance{kind: k, spec: spec, slowdown: 1, gone: make(chan struct{})}
	if v, err := strconv.ParseFloat(spec.Options["slowdown"], 64); err == nil && v > 0 {
		i.slowdown = v
	}
	k.mu.Lock()
	_, taken := k.live[spec.Name]
	if !taken {
		k.live[spec.Name] = i
	}
	k.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("fake: the sandbox %s exists already", spec.Name)
	}
	if err := i.step(ctx); err != nil {
		k.forget(i)
		return nil, fmt.Errorf("fake %s: %w", spec.Name, err)
	}
	return i, nil
}

func (k *Fake) forget(i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live[i.spec.Name] == i {
		delete(k.live, i.spec.Name)
	}
}

// Launch implements sandbox.Launcher: a start, a command and a stop in a row.
func (k *Fake) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (l sandbox.Launch, err error) {
	begun := time.Now()
	l.Begun = begun
	inst, err := k.Start(ctx, spec)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, inst.Stop(context.WithoutCancel(ctx))) }()
	created := time.Since(begun)
	first := &sandbox.FirstWrite{To: c.Stdout}
	c.Stdout = first
	if l.Exit, err = inst.Exec(ctx, c); err != nil {
		return l, err
	}
	l.Exited = time.Since(begun)
	l.Instruction = first.Since(begun)
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
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ sandbox.Launcher = (*Fake)(nil)
