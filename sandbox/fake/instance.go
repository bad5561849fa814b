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
	kind *Kind
	spec sandbox.Spec
	does Behaviour

	once sync.Once
	gone chan struct{} // closed when it died or was stopped
}

// Exec implements sandbox.Instance.
func (i *instance) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	if c.Gate == nil {
		return i.exec(ctx, c)
	}
	defer c.Gate.Fail()
	at, err := c.Gate.Arrive(ctx)
	if err != nil {
		return sandbox.Exit{}, fmt.Errorf("%s %s: %w", i.kind.Name(), i.spec.Name, err)
	}
	_ = sleep(ctx, time.Until(at)) // exec sees the end of ctx too
	exit, err := i.exec(ctx, c)
	exit.Start = at
	return exit, err
}

func (i *instance) exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	i.kind.observe("exec", i.spec)
	died := func() (sandbox.Exit, error) {
		return sandbox.Exit{}, fmt.Errorf("%s %s: while running %q: %w", i.kind.Name(), i.spec.Name, c.Args, ErrDied)
	}
	select {
	case <-i.gone:
		return died()
	default:
	}
	if i.does.Dies > 0 {
		if err := sleep(ctx, i.does.Dies); err == nil {
			i.once.Do(func() { close(i.gone) })
			return died()
		}
	}
	wait := i.does.Takes
	t := time.NewTimer(wait)
	defer t.Stop()
	end := t.C
	if i.does.Hangs {
		end = nil
	}
	select {
	case <-end:
	case <-i.gone:
		return died()
	case <-ctx.Done():
		if i.does.Deaf {
			return sandbox.Exit{}, fmt.Errorf("%s %s: the sandbox did not end %q: %w", i.kind.Name(), i.spec.Name, c.Args, ctx.Err())
		}
		return sandbox.Exit{Code: 143, Signal: "SIGTERM"}, nil
	}
	if i.does.Run == nil {
		return sandbox.Exit{}, nil
	}
	stdout, stderr, exit, err := i.does.Run(ctx, i.spec, c)
	for _, o := range []struct {
		to   io.Writer
		text string
	}{{c.Stdout, stdout}, {c.Stderr, stderr}} {
		if o.to != nil && o.text != "" {
			_, _ = io.WriteString(o.to, o.text) // as the agent: a listener's error ends nothing
		}
	}
	if err != nil {
		return exit, fmt.Errorf("%s %s: %w", i.kind.Name(), i.spec.Name, err)
	}
	return exit, nil
}

// Addr implements sandbox.Instance.
func (i *instance) Addr() netip.Addr { return i.spec.Network.Addr.Addr() }

// Scope implements sandbox.Instance: there is nothing on the host.
func (i *instance) Scope() sandbox.Scope { return sandbox.Scope{} }

// Facts implements sandbox.Instance.
func (i *instance) Facts() map[string]string { return map[string]string{"sandbox": i.kind.Name()} }

// Stop implements sandbox.Instance.
func (i *instance) Stop(ctx context.Context) error {
	select {
	case <-i.gone:
	default:
		if err := sleep(ctx, i.does.StopTakes); err != nil {
			return fmt.Errorf("stopping %s %s: %w", i.kind.Name(), i.spec.Name, err)
		}
	}
	var err error
	i.once.Do(func() { close(i.gone) })
	i.kind.mu.Lock()
	first := i.kind.live[i.spec.Name] == i
	i.kind.mu.Unlock()
	if first {
		i.kind.observe("stop", i.spec)
		err = i.does.StopErr
	}
	i.kind.forget(i)
	return err
}
