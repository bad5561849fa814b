package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/sandbox"
	"tare/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m.Run)) }

func TestContract(t *testing.T) {
	sandboxtest.Run(t, New(), sandboxtest.Options{})
}

func script(b Behaviour) *Kind {
	return &Kind{Behaviour: func(sandbox.Spec) Behaviour { return b }}
}

// TestScripts goes through every failure, in invented time.
func TestScripts(t *testing.T) {
	for _, c := range []struct {
		name  string
		does  Behaviour
		start string // in Start's error
		exit  sandbox.Exit
		err   error
		took  time.Duration
	}{
		{name: "success", does: Behaviour{StartTakes: time.Second, Takes: 2 * time.Second, StopTakes: 3 * time.Second}, took: 6 * time.Second},
		{name: "no start", does: Behaviour{StartTakes: time.Second, StartErr: errors.New("no room")}, start: "no room", took: time.Second},
		{name: "start hangs", does: Behaviour{StartHangs: true}, start: "deadline", took: time.Minute},
		{name: "dies", does: Behaviour{Takes: time.Hour, Dies: 5 * time.Second}, err: ErrDied, took: 5 * time.Second},
		{name: "hangs", does: Behaviour{Hangs: true}, exit: sandbox.Exit{Code: 143, Signal: "SIGTERM"}, took: time.Minute},
		{name: "deaf", does: Behaviour{Hangs: true, Deaf: true}, err: context.DeadlineExceeded, took: time.Minute},
		{name: "memory", does: Behaviour{Run: OOM}, exit: sandbox.Exit{Code: 137, Signal: "SIGKILL", OOM: true}},
		{name: "disk", does: Behaviour{Run: DiskFull}, exit: sandbox.Exit{Code: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := script(c.does)
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				inst, err := k.Start(ctx, sandbox.Spec{Want: sandbox.Want{Name: "a"}})
				if err != nil {
					if c.start == "" || !strings.Contains(err.Error(), c.start) {
						t.Fatalf("Start: %v", err)
					}
				} else {
					exit, err := inst.Exec(ctx, sandbox.Command{Args: []string{"x"}})
					if !errors.Is(err, c.err) || exit != c.exit {
						t.Errorf("Exec: %+v, %v; want %+v, %v", exit, err, c.exit, c.err)
					}
					if err := inst.Stop(context.WithoutCancel(ctx)); err != nil {
						t.Errorf("Stop: %v", err)
					}
				}
				if took := time.Since(begun); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if live := k.Live(); len(live) > 0 {
					t.Errorf("left: %v", live)
				}
			})
		})
	}
}

func TestGarbageIsNoJSON(t *testing.T) {
	out, _, _, _ := Garbage(t.Context(), sandbox.Spec{}, sandbox.Command{})
	if json.Valid([]byte(out)) {
		t.Errorf("%q is valid JSON", out)
	}
}

func exec(t *testing.T, name, slowdown string, args ...string) string {
	t.Helper()
	inst, err := New().Start(t.Context(), sandbox.Spec{Want: sandbox.Want{Name: name, Options: map[string]string{"slowdown": slowdown}}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if exit, err := inst.Exec(t.Context(), sandbox.Command{Args: args, Stdout: &out}); err != nil || exit.Code != 0 {
		t.Fatal(exit, err)
	}
	return out.String()
}

func TestLevelAnswersForNoop(t *testing.T) {
	args := []string{"/tare", "internal", "noop", "--sleeps=50", "--sleep=2ms"}
	one, again, four := exec(t, "t12-1-main", "1", args...), exec(t, "t345-1-main", "1", args...), exec(t, "t12-1-main", "4", args...)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("not the same in another run:\n%s", diff)
	}
	if other := exec(t, "t12-2-main", "1", args...); other == one {
		t.Error("two trials have the same figures")
	}
	overshoot := func(text string) (sum int64) {
		var r struct {
			Sleep     int64   `json:"sleep_ns"`
			Overshoot []int64 `json:"overshoot_ns"`
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Overshoot) != 50 || r.Sleep != 2e6 {
			t.Errorf("%d sleeps of %d ns", len(r.Overshoot), r.Sleep)
		}
		for _, o := range r.Overshoot {
			sum += o
		}
		return sum
	}
	if ratio := float64(overshoot(four)) / float64(overshoot(one)); ratio < 3.9 || ratio > 4.1 {
		t.Errorf("a slowdown of 4 is one of %.2f", ratio)
	}
}

func TestLevelSaysWhatItCannot(t *testing.T) {
	inst, err := New().Start(t.Context(), sandbox.Spec{Want: sandbox.Want{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	exit, err := inst.Exec(t.Context(), sandbox.Command{Args: []string{"fio"}, Stderr: &errs})
	if err != nil || exit.Code != 127 || !strings.Contains(errs.String(), "fio") {
		t.Errorf("%+v, %v, %q", exit, err, errs.String())
	}
}

func TestLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := script(Behaviour{StartTakes: time.Second, Takes: time.Second, StopTakes: time.Second, Run: Print("x\n")})
		begun := time.Now()
		got, err := k.Launch(t.Context(), sandbox.Spec{Want: sandbox.Want{Name: "a"}}, sandbox.Command{}, sandbox.Phased)
		want := sandbox.Launch{Begun: begun, Created: time.Second, Started: time.Second, Instruction: 2 * time.Second, Exited: 2 * time.Second, Deleted: 3 * time.Second}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
