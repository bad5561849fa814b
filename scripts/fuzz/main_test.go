package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAll runs the targets of a small module. The search, guided by branches, must find the
// input that makes one of them fail.
func TestAll(t *testing.T) {
	dir := module(t, map[string]string{
		"go.mod": "module x\n\ngo 1.24\n",
		"good/good_test.go": "package good\nimport \"testing\"\n" +
			"func FuzzGood(f *testing.F) { f.Add(\"a\"); f.Fuzz(func(t *testing.T, s string) {}) }\n",
		"bad/bad_test.go": "package bad\nimport \"testing\"\n" +
			"func FuzzBad(f *testing.F) { f.Add([]byte(\"wxyz\")); f.Fuzz(func(t *testing.T, b []byte) {\n" +
			"if len(b) > 2 && b[0] == 'b' { if b[1] == 'a' { if b[2] == 'd' { t.Error(\"found\") } } } }) }\n",
		"hangs/hangs_test.go": "package hangs\nimport (\"testing\"; \"time\")\n" +
			"func FuzzWaits(f *testing.F) { f.Add(\"a\"); f.Fuzz(func(t *testing.T, s string) { time.Sleep(time.Second) }) }\n",
		"broken/broken_test.go": "package broken\nimport \"testing\"\n" +
			"func FuzzBroken(f *testing.F) { none() }\n",
		"plain/plain_test.go": "package plain\nimport \"testing\"\nfunc TestA(t *testing.T) {}\n",
	})
	f, err := newFuzzer(time.Second, "", filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	f.dir = dir
	// The failing target may take all the time that it needs, on a busy host too.
	// Either this program or the testing package reports first that FuzzWaits hangs.
	out, good := run(t, f, "./good", "./hangs", "./broken", "./plain")
	for _, want := range []string{"ok    x/good FuzzGood ", "FAIL  x/hangs FuzzWaits: ", "FAIL  x/broken: it cannot be built", "undefined: none", "failed: x/broken\nfailed: x/hangs FuzzWaits\n2 targets, ", " 2 failed, "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if good || strings.Contains(out, "plain") {
		t.Errorf("good: %v\n%s", good, out)
	}
	f.each = time.Minute // it ends at the failure
	if out, good := run(t, f, "./bad"); good || !strings.Contains(out, "FAIL  x/bad FuzzBad: ") || !strings.Contains(out, "found") || !strings.Contains(out, "Failing input written") {
		t.Errorf("good: %v\n%s", good, out)
	}
	if seeds, _ := filepath.Glob(filepath.Join(dir, "bad/testdata/fuzz/FuzzBad/*")); len(seeds) != 1 {
		t.Errorf("the failing input is not kept: %v", seeds)
	}
	f.each = time.Second
	if out, good := run(t, f, "./good"); !good || !strings.Contains(out, "1 targets, ") {
		t.Errorf("good: %v\n%s", good, out)
	}
}

// TestRace tells the end of the time from an input that fails. The texts are the testing
// package's.
func TestRace(t *testing.T) {
	const end = "fuzz: elapsed: 1s, execs: 4169 (8155/sec), new interesting: 27 (total: 36)\n--- FAIL: FuzzParse (0.51s)\n    context deadline exceeded\nFAIL\n"
	const found = "--- FAIL: FuzzParse (0.51s)\n    --- FAIL: FuzzParse (0.00s)\n        x_test.go:9: context deadline exceeded\n\n    Failing input written to testdata/fuzz/FuzzParse/771e938e4458e983\n"
	for said, want := range map[string]bool{end: true, found: false, end + found: false, "--- FAIL: FuzzParse (0.5s)\n    open x: no such file\n": false} {
		if got := race([]byte(said)); got != want {
			t.Errorf("race is %v, want %v, of\n%s", got, want, said)
		}
	}
}

// TestNothing checks that a run without targets is not a success.
func TestNothing(t *testing.T) {
	dir := module(t, map[string]string{"go.mod": "module x\n\ngo 1.24\n", "x.go": "package x\n"})
	f, err := newFuzzer(time.Second, "", filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	f.dir = dir
	if out, good := run(t, f); good {
		t.Error(out)
	}
}

func run(t *testing.T, f *fuzzer, patterns ...string) (string, bool) {
	t.Helper()
	var out strings.Builder
	good, err := f.all(t.Context(), &out, patterns)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), good
}

func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSlow: a slow target fails where it has had the time, unless the list has it.
func TestSlow(t *testing.T) {
	for _, c := range []struct {
		each    time.Duration
		r       result
		tooSlow bool
	}{
		{enough, result{name: "x FuzzA", executions: slow - 1, cpu: time.Second}, true},
		{enough, result{name: "x FuzzA", executions: slow, cpu: time.Second}, false},
		{enough, result{name: "x FuzzA", executions: slow, cpu: 2 * time.Second}, true},
		{enough - 1, result{name: "x FuzzA", executions: 1, cpu: time.Second}, false},
		{enough, result{name: "x FuzzA", failed: "it hangs", cpu: time.Second}, false},
		{enough, result{name: "tare/store FuzzOpen", executions: 240, cpu: time.Second}, false},
	} {
		if got := (&fuzzer{each: c.each}).tooSlow(c.r); got != c.tooSlow {
			t.Errorf("%v, %+v: too slow is %v", c.each, c.r, got)
		}
		if said := c.r.String(); c.r.failed == "" && strings.HasPrefix(said, "slow ") != (c.r.rate() < slow) {
			t.Error(said)
		}
	}
	f := &fuzzer{dir: "../..", only: regexp.MustCompile(".")}
	packages, err := f.list(t.Context(), []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range packages {
		for _, target := range p.targets {
			all = append(all, p.path+" "+target)
		}
	}
	for name := range mayBeSlow() {
		if !slices.Contains(all, name) {
			t.Errorf("mayBeSlow has %s, which is not there", name)
		}
	}
}

// TestExecutions reads what a target prints.
func TestExecutions(t *testing.T) {
	for text, want := range map[string]int{
		"": 0,
		"fuzz: elapsed: 0s, gathering baseline coverage: 0/10 completed\nPASS\n":                                                                      0,
		"fuzz: elapsed: 3s, gathering baseline coverage: 89/174 completed\nfuzz: elapsed: 5s, gathering baseline coverage: 144/174 completed\nPASS\n": 144,
		"fuzz: elapsed: 3s, execs: 12 (4/sec), new interesting: 2 (total: 5)\nfuzz: elapsed: 4s, execs: 90 (0/sec), new interesting: 2":               90,
	} {
		if got := executions([]byte(text)); got != want {
			t.Errorf("%d executions of %q, want %d", got, text, want)
		}
	}
}
