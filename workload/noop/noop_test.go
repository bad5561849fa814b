package noop

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload/workloadtest"
)

// The captures are this package's own Main, natively and inside gVisor (runsc).
func cases() []workloadtest.Case {
	return []workloadtest.Case{
		{Name: "process", Outputs: map[string]string{"main": "testdata/process.json"}},
		{Name: "runsc", Outputs: map[string]string{"main": "testdata/runsc.json"}},
		{Name: "no sleeps", Params: param.Values{"sleeps": "0"}, Outputs: map[string]string{"main": "testdata/no-sleeps.json"}},
		{Name: "sleeps of nothing", Params: param.Values{"sleep": "0s"}, Refused: true},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

// TestMainAndParse runs Main with the arguments of Roles and parses what it prints.
func TestMainAndParse(t *testing.T) {
	v, err := param.Fill(New().Params(), param.Values{"sleeps": "20", "sleep": "2ms"})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := New().Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	start := time.Now()
	if code := Main(roles[0].Args[3:], &out, &stderr); code != 0 {
		t.Fatalf("Main = %d: %s", code, &stderr)
	}
	wall := time.Since(start).Seconds()
	r, err := New().Parse("main", v, &out)
	if err != nil {
		t.Fatal(err)
	}
	trial := record.Trial{Samples: r.Samples}
	elapsed, _ := trial.Sample("elapsed")
	over, _ := trial.Sample("sleep_overshoot")
	if elapsed < 0.04 || elapsed > wall {
		t.Errorf("elapsed = %g s, want from 0.04 (20 sleeps of 2 ms) to %g (seen from outside)", elapsed, wall)
	}
	if over <= 0 || over > elapsed-0.04 {
		t.Errorf("sleep_overshoot = %g s with %g s elapsed", over, elapsed)
	}
}

// TestCaptures: the medians, sorted out of the files by another program.
func TestCaptures(t *testing.T) {
	median := func(name string) float64 {
		b, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		v, _ := param.Fill(New().Params(), nil)
		r, err := New().Parse("main", v, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		trial := record.Trial{Samples: r.Samples}
		x, _ := trial.Sample("sleep_overshoot")
		return x
	}
	native, gvisor := median("process"), median("runsc")
	if native != 80473e-9 || gvisor != 247666e-9 {
		t.Errorf("sleep_overshoot is %g s natively, %g s in gVisor", native, gvisor)
	}
}

func TestBad(t *testing.T) {
	var out, stderr bytes.Buffer
	for _, args := range [][]string{{"--sleeps=-1"}, {"--sleeps=1000000"}, {"--sleep=1h"}, {"word"}, {"--no"}} {
		if code := Main(args, &out, &stderr); code != 2 || out.Len() > 0 || stderr.Len() == 0 {
			t.Errorf("Main(%v) = %d, %q, %q; want 2 and a word about it", args, code, &out, &stderr)
		}
	}
	v, _ := param.Fill(New().Params(), param.Values{"sleeps": "1"})
	for text, want := range map[string]string{
		`{"overshoot_ns":[1,2],"elapsed_ns":5}`: "2 sleeps",
		`{"overshoot_ns":[-1],"elapsed_ns":5}`:  "out of range",
		`{"overshoot_ns":[1],"elapsed_ns":0}`:   "out of range",
		`panic: no`:                             "not JSON",
	} {
		if _, err := New().Parse("main", v, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}
