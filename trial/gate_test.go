package trial

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// gated is a command that starts at its gate, late by so much.
func gated(late time.Duration) func(context.Context, sandbox.Command) (sandbox.Exit, error) {
	return func(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
		if c.Gate == nil {
			return sandbox.Exit{Code: 9}, nil
		}
		defer c.Gate.Fail()
		at, err := c.Gate.Arrive(ctx)
		if err != nil {
			return sandbox.Exit{}, err
		}
		_ = sleep(ctx, time.Until(at)+20*time.Millisecond)
		return sandbox.Exit{Start: at.Add(late)}, nil
	}
}

func both() []workload.Role {
	return []workload.Role{
		{Name: "left", Mode: workload.Exec, Args: []string{"left"}},
		{Name: "right", Mode: workload.Exec, Args: []string{"right"}, Warmup: 10 * time.Millisecond},
	}
}

func TestForegroundRolesStartTogether(t *testing.T) {
	trial, _, _, _ := serve(t, script{"left": gated(0), "right": gated(3 * time.Millisecond)}, nil, both()...)
	if trial.Status != record.OK {
		t.Fatalf("failed: %+v", trial.Failure)
	}
	if skew, ok := trial.Sample(record.StartSkew); !ok || skew != 0.003 {
		t.Errorf("skew %v, %v", skew, ok)
	}
	var before time.Duration
	for _, p := range trial.Phases {
		if p.Name == PhaseWarmup && p.Offset < before+50*time.Millisecond {
			t.Errorf("the warm-up begins at %v, the phase before it ended at %v: the gate is part of it", p.Offset, before)
		}
		before = max(before, p.Offset+p.Duration)
	}
	for _, p := range trial.Phases {
		// The measured time begins 10 ms after the common start, whenever that was.
		if p.Name == PhaseRun && p.Duration <= 0 {
			t.Errorf("%+v", p)
		}
	}
}

// TestOneStartHasNoSkew: a sandbox that cannot tell when it began is not one that was on time.
func TestOneStartHasNoSkew(t *testing.T) {
	noAnswer := func(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
		exit, err := gated(0)(ctx, c)
		exit.Start = time.Time{}
		return exit, err
	}
	told := func(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
		exit, err := gated(0)(ctx, c)
		exit.StartWithin = time.Millisecond
		return exit, err
	}
	trial, _, _, _ := serve(t, script{"left": told, "right": noAnswer}, nil, both()...)
	if skew, ok := trial.Sample(record.StartSkew); ok || trial.Status != record.OK {
		t.Errorf("skew %v, %+v", skew, trial.Failure)
	}
	var got []string
	for _, s := range trial.Samples {
		if s.Name == record.StartUncertainty {
			got = append(got, fmt.Sprint(s.Labels, " ", s.Value))
		}
	}
	if len(got) != 1 || got[0] != "end=left 0.001" {
		t.Errorf("%q", got)
	}
}

func TestOneForegroundRoleHasNoGate(t *testing.T) {
	var gate *sandbox.Gate
	trial, _, _, _ := serve(t, script{"left": func(_ context.Context, c sandbox.Command) (sandbox.Exit, error) {
		gate = c.Gate
		return sandbox.Exit{}, nil
	}}, nil, both()[0])
	if _, ok := trial.Sample(record.StartSkew); ok || gate != nil || trial.Status != record.OK {
		t.Errorf("gate %v, %+v", gate, trial)
	}
}

// TestRoleThatCannotStartIsTheReason: not the one that waited in vain for it.
func TestRoleThatCannotStartIsTheReason(t *testing.T) {
	trial, _, _, _ := serve(t, script{
		"left": gated(0),
		"right": func(_ context.Context, c sandbox.Command) (sandbox.Exit, error) {
			_, _ = io.WriteString(c.Stderr, "right: no such file\n")
			c.Gate.Fail()
			time.Sleep(50 * time.Millisecond) // the other is heard of first
			return sandbox.Exit{Code: 127}, nil
		},
	}, nil, both()...)
	failed(t, trial, PhaseRun, "died", "right ended with exit code 127", "no such file")
	if strings.Contains(trial.Failure.Reason, "another command") {
		t.Error(trial.Failure.Reason)
	}
}
