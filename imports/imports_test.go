package imports

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/record"
	"tare/study"
)

// set is two levels of the sandbox, three trials each, at the given seconds.
func set(at map[string][3]int) *Set {
	s := &Set{Name: "x", Origin: Origin{Tool: "test", Path: "p"}, Responses: map[string][]record.Response{"w": {{Name: "lat", Unit: record.Second, Better: record.Lower}}}}
	for _, box := range []string{"runc", "kata"} {
		for i, sec := range at[box] {
			s.Trials = append(s.Trials, Trial{Levels: map[string]string{study.FactorWorkload: "w", study.FactorSandbox: box}, Start: time.Unix(int64(1e9+sec), 0),
				Samples: []record.Sample{{Name: "lat", Unit: record.Second, Kind: record.Value, Value: float64(i + 1)}}})
		}
	}
	return s
}

// TestOrder: only what was measured in turns has blocks.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		at   map[string][3]int
		want string
	}{
		"in turns":      {map[string][3]int{"runc": {0, 20, 50}, "kata": {10, 30, 40}}, ""},
		"one by one":    {map[string][3]int{"runc": {0, 10, 20}, "kata": {30, 40, 50}}, "one after the other"},
		"at one moment": {map[string][3]int{"runc": {0, 0, 0}, "kata": {0, 0, 0}}, "one after the other"},
	} {
		got, err := set(c.at).Write(t.Context(), filepath.Join(t.TempDir(), "r"), "test", time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, w := range got.Warnings {
			if w.Code == CodeOrder {
				said = w.Text
			}
		}
		if c.want == "" && said != "" || !strings.Contains(said, c.want) {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}

// TestRefused: what a study cannot hold is said, and nothing is left behind.
func TestRefused(t *testing.T) {
	in := map[string][3]int{"runc": {0, 20, 50}, "kata": {10, 30, 40}}
	for want, change := range map[string]func(*Set){
		"it contains no trials":  func(s *Set) { s.Trials = nil },
		"is not a number":        func(s *Set) { s.Trials[0].Samples[0].Value = math.NaN() },
		"cannot name a workload": func(s *Set) { s.Trials[0].Levels[study.FactorWorkload] = "../x" },
		"cannot name a factor":   func(s *Set) { s.Factors = []string{"kind"} },
		"is not a level of":      func(s *Set) { s.Trials[0].Levels[study.FactorSandbox] = "a\nb" },
		"the baseline":           func(s *Set) { s.Baseline = "crun" },
		"no factor \"threads\"":  func(s *Set) { s.Compare = "threads" },
	} {
		s, dir := set(in), t.TempDir()
		change(s)
		if _, err := s.Write(t.Context(), filepath.Join(dir, "r"), "test", time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left %v", want, left)
		}
	}
}

// TestLevelOrder: levels that are numbers rise, as in tables; words stay as they came, after them.
func TestLevelOrder(t *testing.T) {
	s := set(map[string][3]int{"runc": {0, 20, 50}, "kata": {10, 30, 40}})
	s.Factors = []string{"threads"}
	for i, level := range []string{"16", "auto", "2", "0", "any", "4"} {
		s.Trials[i].Levels["threads"] = level
	}
	dir := filepath.Join(t.TempDir(), "r")
	if _, err := s.Write(t.Context(), dir, "test", time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "study.yaml"))
	if want := "threads: [0, 2, 4, 16, auto, any]"; err != nil || !strings.Contains(strings.ReplaceAll(string(got), `"`, ""), want) {
		t.Errorf("%v: want %s in\n%s", err, want, got)
	}
}

// TestOf: a study of tare's own is none of an import.
func TestOf(t *testing.T) {
	files, _ := filepath.Glob("../studies/*.yaml")
	if len(files) == 0 {
		t.Fatal("no studies")
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := Of(b); ok {
			t.Errorf("%s is taken for an import", f)
		}
	}
}

func TestUnit(t *testing.T) {
	for text, want := range map[string]struct {
		unit  record.Unit
		scale float64
	}{
		"ms": {record.Second, 1e-3}, "µs": {record.Second, 1e-6}, "MiB/s": {record.BytesPerSecond, 1 << 20}, "MB/sec": {record.BytesPerSecond, 1e6}, "Gbps": {record.BytesPerSecond, 1e9 / 8},
		"Mbit/s": {record.BytesPerSecond, 1e6 / 8}, "KiB": {record.Byte, 1024}, "kB": {record.Byte, 1000}, "B": {record.Byte, 1}, "ops/s": {record.PerSecond, 1}, "%": {record.Fraction, 0.01}, "": {record.Count, 1},
	} {
		if u, s, ok := Unit(text); !ok || u != want.unit || s != want.scale {
			t.Errorf("%s: %s %g %v", text, u, s, ok)
		}
	}
	for _, text := range []string{"parsec", "M", "Mi", "x/s", "ps", "/"} {
		if u, s, ok := Unit(text); ok {
			t.Errorf("%s is %s %g", text, u, s)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add([]byte("files:\n  \"tare:imported\": \"{\\\"workloads\\\":{\\\"w\\\":{}}}\"\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if cat, ok := Of(b); ok {
			_, _ = study.Parse("f", b, cat.Study(), nil)
		}
		_ = Clean(string(b))
		_, _, _ = Unit(string(b))
		_ = Shallow(b, 8)
	})
}

// TestStoreError: a failure of the store is told from one of the input, names the folder, and says what to do about a full disk.
func TestStoreError(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	dir := filepath.Join(t.TempDir(), "r")
	_, err := set(map[string][3]int{"runc": {0, 20, 50}, "kata": {10, 30, 40}}).Write(ctx, dir, "test", time.Unix(0, 0))
	var stored *StoreError
	if !errors.As(err, &stored) || stored.Dir != dir {
		t.Errorf("%v is not a StoreError", err)
	}
	for text, full := range map[string]bool{"store trial 000001-1: commit: database or disk is full (13)": true, "disk I/O error": false} {
		if got := (&StoreError{dir, errors.New(text)}).Error(); !strings.Contains(got, dir) || strings.Contains(got, "make room") != full {
			t.Error(got)
		}
	}
}
