package syscalls

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"tare/param"
	"tare/workload/workloadtest"
)

// cases were captured on a two-core virtual machine, Linux 6.18.
func cases() []workloadtest.Case {
	one := func(call, threads string) workloadtest.Case {
		return workloadtest.Case{Name: call, Params: param.Values{"call": call, "threads": threads, "warmup": "100ms", "duration": "300ms"},
			Outputs: map[string]string{"main": "testdata/" + call + ".json"}}
	}
	return []workloadtest.Case{one("getpid", "1"), one("pipe", "1"), one("read_zero", "2")}
}

func TestContract(t *testing.T) { workloadtest.Run(t, Workload{}, cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, Workload{}, cases()...) }

// TestEveryCall runs each kind through Main and Parse. Without isolation no
// single operation of these takes over a millisecond, nor under 10 ns, which
// would mean that the kernel was not entered.
func TestEveryCall(t *testing.T) {
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := Main([]string{"--call", c.name, "--warmup", "5ms", "--duration", "50ms"}, &out, &errs); code != 0 {
				t.Fatalf("exit code %d: %s", code, &errs)
			}
			v, err := param.Fill(Workload{}.Params(), param.Values{"call": c.name})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Workload{}.Parse("main", v, &out)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Samples[0]; got.Name != "time_per_call" || got.Value < 10e-9 || got.Value > 1e-3 {
				t.Errorf("%s = %g s", got.Name, got.Value)
			}
		})
	}
}

func TestThreadsAddUp(t *testing.T) {
	r, err := measure(t.Context(), "getpid", 3, 0, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Threads != 3 || r.Operations < r.Batches {
		t.Errorf("%d threads, %d operations in %d batches", r.Threads, r.Operations, r.Batches)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := measure(ctx, "pipe", 1, 0, time.Hour); err == nil {
		t.Error("an interrupted run gives a report")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v to end", d)
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{{"--call", "fork"}, {"--threads", "0"}, {"--duration", "0s"}, {"--nope"}} {
		if code := Main(args, io.Discard, io.Discard); code != 2 {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
	}
	if _, err := measure(t.Context(), "fork", 1, 0, time.Second); !errors.Is(err, errUsage) {
		t.Errorf("an unknown call gives %v", err)
	}
}
