package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"tare/sandbox"
)

// gate lets commands in two sandboxes start at one moment.
func (s *suite) gate(t *testing.T) {
	first, _ := s.any(t)
	both := []sandbox.Instance{first, s.start(t, s.spec(t))}
	before := time.Now()
	got := Through(t.Context(), both, []string{"/tare-hello"}, []string{"/tare-hello"})
	after := time.Now()
	for i, r := range got {
		// The sandbox's clock is known to a round trip.
		if r.Err != nil || r.Exit.Code != 0 || r.Stdout != "x\n" || r.Exit.Start.Before(before) || r.Exit.Start.After(after) {
			t.Fatalf("%d: %+v, between %v and %v", i, r, before, after)
		}
	}
	t.Logf("started %v apart", got[0].Exit.Start.Sub(got[1].Exit.Start).Abs())

	// One that cannot start keeps the other neither waiting nor lets it go.
	got = Through(t.Context(), both, []string{"/tare-hello"}, []string{"/no/such/program"})
	if !errors.Is(got[0].Err, sandbox.ErrGate) || got[0].Stdout != "" {
		t.Errorf("beside one that cannot start: %+v", got[0])
	}
	if got[1].Err != nil || got[1].Exit.Code != 127 || got[1].Stderr == "" {
		t.Errorf("the one that cannot start: %+v", got[1])
	}
	if r := command(t.Context(), first, nil, "/tare-hello").good(t); r.stdout != "x\n" {
		t.Errorf("afterwards: %q", r.stdout)
	}
}

// Passed is what became of a command at a gate.
type Passed struct {
	Exit           sandbox.Exit
	Err            error
	Stdout, Stderr string
}

// Through runs a command in each sandbox, all through one gate.
func Through(ctx context.Context, in []sandbox.Instance, commands ...[]string) []Passed {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	gate := sandbox.NewGate(len(in))
	out := make([]Passed, len(in))
	done := make(chan struct{})
	for i := range in {
		go func() {
			var stdout, stderr bytes.Buffer
			p := &out[i]
			p.Exit, p.Err = in[i].Exec(ctx, sandbox.Command{Args: commands[i], Stdout: &stdout, Stderr: &stderr, Gate: gate})
			p.Stdout, p.Stderr = stdout.String(), stderr.String()
			done <- struct{}{}
		}()
	}
	for range in {
		<-done
	}
	return out
}
