package spawn

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tare/sandbox"
)

// stuck is a sandbox that hangs until it is told to end, and then says so.
type stuck struct {
	sandbox.Launcher
	says string
}

func (s stuck) Name() string { return "stuck" }

func (s stuck) Launch(ctx context.Context, _ sandbox.Spec, _ sandbox.Command, _ sandbox.LaunchMode) (sandbox.Launch, error) {
	<-ctx.Done()
	return sandbox.Launch{}, fmt.Errorf("%s: %w", s.says, ctx.Err())
}

// TestProbeOfWhatHangs: a command is to be tried by hand where one is named, and what is
// known is told in any case.
func TestProbeOfWhatHangs(t *testing.T) {
	const console = "the guest had not started; its console ends with: Booting the kernel"
	for says, byHand := range map[string]bool{console: false, "`runc run --bundle x` did not finish within 1s": true} {
		err := probeAt(t.Context(), func() float64 { return 0 }, 10*time.Millisecond, stuck{says: says}, t.TempDir()+"/state", nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "leave stuck out of the study") {
			t.Errorf("%v", err)
		} else if strings.Contains(err.Error(), "by hand") != byHand {
			t.Errorf("%v, by hand: %v", err, byHand)
		}
	}
}

// TestBusyHost: a start that did not end in time is made again where the processors are busy with other
// work, and then it is the host that is told, and not the sandbox.
func TestBusyHost(t *testing.T) {
	busy, idle := float64(runtime.NumCPU())+0.5, 0.1
	hangs := func(ctx context.Context) error { <-ctx.Done(); return &tooLate{err: ctx.Err()} }
	for name, c := range map[string]struct {
		load   float64
		within time.Duration
		ends   int // the try that ends; 0: none
		tries  int
		says   string // "": it works
	}{
		"busy, then it works": {busy, 5 * time.Millisecond, 2, 2, ""},
		"busy":                {busy, 5 * time.Millisecond, 0, 2, "whether x works is not known: the host is too busy to tell"},
		"idle":                {idle, 5 * time.Millisecond, 0, 1, "its test program did not end"},
		"it works":            {busy, time.Minute, 1, 1, ""},
	} {
		tries := 0
		err := patient(t.Context(), c.within, "x", func() float64 { return c.load }, func(ctx context.Context) error {
			if tries++; tries == c.ends {
				return nil
			}
			return hangs(ctx)
		})
		if tries != c.tries || (err == nil) != (c.says == "") || err != nil && (!strings.HasPrefix(err.Error(), c.says) || !errors.Is(err, context.DeadlineExceeded)) {
			t.Errorf("%s: %d tries, %v", name, tries, err)
		}
	}
	broken, tries := errors.New("no such runtime"), 0
	if err := patient(t.Context(), time.Minute, "x", func() float64 { return busy }, func(context.Context) error { tries++; return broken }); !errors.Is(err, broken) || tries != 1 {
		t.Errorf("what fails at once: %d tries, %v", tries, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := patient(ctx, time.Minute, "x", func() float64 { return busy }, hangs); !errors.Is(err, context.Canceled) {
		t.Errorf("the user ended it: %v", err)
	}
}
