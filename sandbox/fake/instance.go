package fake

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"tare/sandbox"
)

// instance is one fake sandbox.
type instance struct {
	kind     *Fake
	spec     sandbox.Spec
	slowdown float64

	once sync.Once
	gone chan struct{} // closed when it was stopped
}

// step waits for what a start, a command or a stop takes.
func (i *instance) step(ctx context.Context) error {
	return sleep(ctx, time.Duration(float64(time.Millisecond)*i.slowdown))
}

// stopped reports whether Stop was called.
func (i *instance) stopped() bool {
	select {
	case <-i.gone:
		return true
	default:
		return false
	}
}

// Exec implements sandbox.Instance.
func (i *instance) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	if c.Gate == nil {
		return i.exec(ctx, c)
	}
	defer c.Gate.Fail()
	at, err := c.Gate.Arrive(ctx)
	if err != nil {
		return sandbox.Exit{}, fmt.Errorf("fake %s: %w", i.spec.Name, err)
	}
	_ = sleep(ctx, time.Until(at)) // exec sees the end of ctx too
	exit, err := i.exec(ctx, c)
	exit.Start = at
	return exit, err
}

func (i *instance) exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	err := i.step(ctx)
	if i.stopped() {
		return sandbox.Exit{}, fmt.Errorf("fake %s: the sandbox was stopped before %q ended", i.spec.Name, c.Args)
	}
	if err != nil {
		return sandbox.Exit{Code: 143, Signal: "SIGTERM"}, nil
	}
	stdout, stderr, exit, err := answer(ctx, i.spec, c, i.slowdown)
	for _, o := range []struct {
		to   io.Writer
		text string
	}{{c.Stdout, stdout}, {c.Stderr, stderr}} {
		if o.to != nil && o.text != "" {
			_, _ = io.WriteString(o.to, o.text) // as the agent: a listener's error ends nothing
		}
	}
	if err != nil {
		return exit, fmt.Errorf("fake %s: %w", i.spec.Name, err)
	}
	return exit, nil
}

// Addr implements sandbox.Instance.
func (i *instance) Addr() netip.Addr { return i.spec.Network.Addr.Addr() }

// Scope implements sandbox.Instance: there is nothing on the host.
func (i *instance) Scope() sandbox.LocalScope { return sandbox.LocalScope{} }

// Facts implements sandbox.Instance.
func (i *instance) Facts() map[string]string { return map[string]string{"sandbox": i.kind.Name()} }

// Stop implements sandbox.Instance.
func (i *instance) Stop(ctx context.Context) error {
	if !i.stopped() {
		if err := i.step(ctx); err != nil {
			return fmt.Errorf("stopping fake %s: %w", i.spec.Name, err)
		}
	}
	i.once.Do(func() { close(i.gone) })
	i.kind.forget(i)
	return nil
}
