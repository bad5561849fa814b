package spawn

import (
	"context"
	"errors"
	"fmt"
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
		err := ProbeWithin(t.Context(), 10*time.Millisecond, stuck{says: says}, t.TempDir()+"/state", nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "leave stuck out of the study") {
			t.Errorf("%v", err)
		} else if strings.Contains(err.Error(), "by hand") != byHand {
			t.Errorf("%v, by hand: %v", err, byHand)
		}
	}
}
