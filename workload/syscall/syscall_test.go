package syscalls

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload/inside"
	"tare/workload/workloadtest"
)

// cases were captured on a two-core virtual machine, Linux 6.18; those without
// "series" before there was a series of the time per call.
func cases() []workloadtest.Case {
	one := func(call, threads string) workloadtest.Case {
		return workloadtest.Case{Name: call, Params: param.Values{"call": call, "threads": threads, "warmup": "100ms", "duration": "300ms"},
			Outputs: map[string]string{"main": "testdata/" + call + ".json"}}
	}
	with := func(call, threads string) workloadtest.Case {
		c := one(call, threads)
		c.Name, c.Outputs = call+", series", map[string]string{"main": "testdata/" + call + "-series.json"}
		return c
	}
	return []workloadtest.Case{one("getpid", "1"), one("pipe", "1"), one("read_zero", "2"),
		with("getpid", "1"), with("pipe", "1"), with("read_zero", "2")}
}

func TestContract(t *testing.T) { workloadtest.Run(t, Workload{}, cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, Workload{}, cases()...) }

// TestEveryCall runs each kind through Main and Parse. Without isolation none takes
// under 10 ns, which would mean that it was not made, nor, on however busy a
// machine, as long as a second.
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
			if got := r.Samples[0]; got.Name != "time_per_call" || got.Value < 10e-9 || got.Value > 1 {
				t.Errorf("%s = %g s", got.Name, got.Value)
			}
		})
	}
}

// TestSeriesOfTheTime compares the series with the response: its median over the
// measured time is that of the batches, whatever the machine does.
func TestSeriesOfTheTime(t *testing.T) {
	const warmup, duration = 100 * time.Millisecond, 400 * time.Millisecond
	r, err := measure(t.Context(), "getpid", 2, warmup, duration)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := r.Times.Series("time_per_call", record.Second, (warmup + duration).Seconds())
	if !ok || s.T[len(s.T)-1] > warmup+duration || len(s.T) > 25 {
		t.Fatalf("series of %d points: %v", len(s.T), s.T)
	}
	if lo, hi := slices.Min(s.V), slices.Max(s.V); r.Median < lo/2 || r.Median > 2*hi {
		t.Errorf("the series goes from %g to %g, the median of all is %g", lo, hi, r.Median)
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
	if d := time.Since(start); d > time.Minute { // of an hour
		t.Errorf("it took %v to end", d)
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{{"--call", "fork"}, {"--threads", "0"}, {"--duration", "0s"}, {"--nope"}} {
		if code := Main(args, io.Discard, io.Discard); code != 2 {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
	}
	if _, err := measure(t.Context(), "fork", 1, 0, time.Second); !errors.Is(err, inside.ErrUsage) {
		t.Errorf("an unknown call gives %v", err)
	}
}
