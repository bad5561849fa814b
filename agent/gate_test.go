package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tare/sandbox"
)

// TestMain lets the test's own binary be an agent, and what an agent starts at a gate.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "agent" {
		if err := Serve(context.Background(), os.Stdin, os.Stdout, nil, OwnProcess); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "gate" {
		os.Exit(Gate(os.Args[3:], os.Stderr))
	}
	os.Exit(m.Run())
}

type ended struct {
	exit sandbox.Exit
	err  error
}

// through runs a command on each client through one gate.
func through(ctx context.Context, gate *sandbox.Gate, clients []*Client, cmds ...sandbox.Command) []ended {
	out := make([]ended, len(cmds))
	done := make(chan struct{})
	for i, cmd := range cmds {
		cmd.Gate = gate
		go func() {
			out[i].exit, out[i].err = clients[i].Run(ctx, cmd)
			done <- struct{}{}
		}()
	}
	for range cmds {
		<-done
	}
	return out
}

func TestGatedCommandsStartTogether(t *testing.T) {
	a, _, _ := pair(t)
	b, _, _ := pair(t)
	gate := sandbox.NewGate(2)
	var plain, out bytes.Buffer
	cmd := sandbox.Command{Args: []string{"sh", "-c", "echo $0 $X; ls /proc/self/fd | wc -l; exit 3"}, Env: []string{"X=y"}, Stdout: &plain}
	if _, err := a.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = &out
	before := time.Now()
	got := through(t.Context(), gate, []*Client{a, b}, cmd, sandbox.Command{Args: []string{"true"}})
	after := time.Now()
	for i, e := range got {
		if e.err != nil || e.exit.Start.Before(before) || e.exit.Start.After(after) || e.exit.StartWithin <= 0 {
			t.Fatalf("%d: %+v, %v", i, e.exit, e.err)
		}
		if at := gate.Moment(); at.IsZero() || e.exit.Start.Before(at.Add(-20*time.Millisecond)) {
			t.Errorf("%d began at %v, before the moment %v", i, e.exit.Start, at)
		}
	}
	// The program is as without a gate: its name, environment, descriptors.
	if got[0].exit.Code != 3 || got[1].exit.Code != 0 || out.String() != plain.String() || !strings.HasPrefix(out.String(), "sh y\n") {
		t.Errorf("%+v, %q, without a gate %q", got, &out, &plain)
	}
	t.Logf("skew %v", got[0].exit.Start.Sub(got[1].exit.Start))
}

// TestStartIsToldByAFreshEstimate: by the one with which the moment was sent a command
// would begin on time however wrong that was.
func TestStartIsToldByAFreshEstimate(t *testing.T) {
	c, _, _ := pair(t)
	moment := time.Now()
	r := &running{c: c, cmd: sandbox.Command{Gate: sandbox.NewGate(1)}, gone: true, clock: sandbox.Clock{Offset: time.Hour, Uncertainty: time.Hour}, fresh: make(chan sandbox.Clock, 1)}
	r.look(t.Context(), moment)
	exit := r.exit(exitBody{Start: c.clock.nano(moment)})
	if off := exit.Start.Sub(moment).Abs(); off > exit.StartWithin+20*time.Microsecond || exit.StartWithin > time.Minute {
		t.Errorf("off by %v, known to %v", off, exit.StartWithin)
	}
}

func TestCommandThatCannotStartKeepsNobodyAtTheGate(t *testing.T) {
	text := t.TempDir() + "/text"
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]sandbox.Command{
		"missing":           {Args: []string{"/no/such"}},
		"not a program":     {Args: []string{text}},
		"killed beforehand": {},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, _ := pair(t)
			b, stream, _ := pair(t)
			clients := []*Client{a, b}
			var errs bytes.Buffer
			bad.Stderr = &errs
			if len(bad.Args) == 0 {
				_ = stream.Close()
				bad.Args = []string{"true"}
			}
			got := through(t.Context(), sandbox.NewGate(2), clients, sandbox.Command{Args: []string{"sh", "-c", "echo started"}}, bad)
			if !errors.Is(got[0].err, sandbox.ErrGate) {
				t.Errorf("the other one: %+v, %v", got[0].exit, got[0].err)
			}
			if got[1].err == nil && (got[1].exit.Code != 127 || errs.Len() == 0) {
				t.Errorf("the bad one: %+v, %q", got[1].exit, errs.String())
			}
		})
	}
}

// TestGateWhoseProgramCannotBeRun: the agent finds it, the kernel refuses it.
func TestGateWhoseProgramCannotBeRun(t *testing.T) {
	c, _, _ := pair(t)
	file := t.TempDir() + "/script"
	if err := os.WriteFile(file, []byte("#!/no/such/shell\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	got := through(t.Context(), sandbox.NewGate(1), []*Client{c}, sandbox.Command{Args: []string{file}, Stderr: &errs})
	if got[0].err != nil || got[0].exit.Code != 127 || !strings.Contains(errs.String(), "no such file") {
		t.Errorf("%+v, %v, %q", got[0].exit, got[0].err, errs.String())
	}
}

func TestContextEndsTheWaitAtAGate(t *testing.T) {
	c, _, _ := pair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	got := through(ctx, sandbox.NewGate(2), []*Client{c}, sandbox.Command{Args: []string{"true"}})
	if got[0].err != nil || got[0].exit.Signal != "SIGTERM" {
		t.Errorf("%+v, %v", got[0].exit, got[0].err)
	}
}
