package fake

import (
	"bytes"
	"encoding/json"
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
		k, slow := New(), map[string]string{"slowdown": "1000"}
		begun := time.Now()
		got, err := k.Launch(t.Context(), sandbox.Spec{Want: sandbox.Want{Name: "a", Options: slow}}, sandbox.Command{Args: []string{"/tare-hello"}}, sandbox.Phased)
		want := sandbox.Launch{Begun: begun, Created: time.Second, Started: time.Second, Instruction: 2 * time.Second, Exited: 2 * time.Second, Deleted: 3 * time.Second}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
