package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"tare/analyse/cause"
	"tare/record"
	"tare/store"
)

// A cause is made on purpose, in real sandboxes, by the engine that users run; the verdict
// must name it. What others do on the host at the same time is a cause as well: where that
// is seen in the readings themselves, the case is made once more, and then skipped. A run
// that fails, or lacks a cell for another reason than the host's, fails the test.

// madeCause is one cause and what makes it.
type madeCause struct {
	study  string // without its name, seed and stopping rule
	wants  []wanted
	before func(t *testing.T) // brings about what no study can
	blocks int                // 0 is one, which is enough to name a cause
}

// wanted is what the findings must say of cells with these levels.
type wanted struct {
	levels map[string]string // factor to level
	cause  cause.Name
	or     cause.Name // as good
	role   string     // of a helper
	check  func(*testing.T, *cause.Finding)
}

const madeStudy = `study: made
seed: 1
%s
stop: {fixed: %d}
sentinel: off
`

// otherLoad is how many cores others may use on the host while a cause is made: beyond it
// a small host is full of them, and says so.
const otherLoad = 0.4

// realCauses skips a test that makes causes in real sandboxes where it cannot run.
func realCauses(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("-short: it runs real sandboxes for some seconds or minutes")
	}
}

func (m *madeCause) run(t *testing.T) {
	t.Helper()
	realCauses(t)
	if m.before != nil {
		m.before(t)
	}
	for attempt := 1; ; attempt++ {
		got := m.once(t)
		wrong, busy := judged(t, got, m.wants)
		switch {
		case wrong+busy == "":
			return
		case attempt == 1:
			t.Logf("once more: %s%s", wrong, busy)
			calm(t)
		case wrong != "":
			t.Fatal(wrong)
		default:
			t.Skip(busy)
		}
	}
}

// judge says in what a finding is not what is wanted; "" if it is. It is excused where
// others had the host or the trials scattered too much to decide the cost, and the verdict names
// nothing else: a wrong name is wrong on a busy host too.
func (w *wanted) judge(t *testing.T, got *made) (text string, excused bool) {
	t.Helper()
	f := w.find(t, got)
	if (f.Cause == w.cause || w.or != "" && f.Cause == w.or) && (w.role == "" || f.Role == w.role) {
		t.Logf("%s: %s %s, confidence %.2f: %s", f.Cell, f.Cause, f.Role, f.Confidence, f.Text)
		if w.check != nil {
			w.check(t, f)
		}
		return "", false
	}
	others := got.others[f.Cell.Key()]
	if others > otherLoad && slices.Contains([]cause.Name{cause.Host, cause.None, cause.Untold}, f.Cause) {
		return fmt.Sprintf("%s: %s, want %s: others used %.1f of this host's %d cores meanwhile", f.Cell, f.Cause, w.cause, others, runtime.NumCPU()), true
	}
	if f.Undecided && f.Cause == cause.Untold && slices.Contains(f.Among, w.cause) {
		return fmt.Sprintf("%s: the trials scatter, so neither the cost nor its cause is decided: %s", f.Cell, f.Text), true
	}
	text = fmt.Sprintf("%s: %s %s among %v, want %s %s (others used %.1f cores): %s", f.Cell, f.Cause, f.Role, f.Among, w.cause, w.role, others, f.Text)
	for _, r := range f.Readings {
		text += fmt.Sprintf("\n\t%s %s: %s %.4g", r.About, r.Says, r.Name, r.Value)
	}
	return text, false
}

// find is the finding of the cell. One that this host cannot run skips the test, with the
// reason that the run gave; one that is missing otherwise fails it.
func (w *wanted) find(t *testing.T, got *made) *cause.Finding {
	t.Helper()
	has := func(c record.Cell) bool {
		for factor, level := range w.levels {
			if v, _ := c.Get(factor); v != level {
				return false
			}
		}
		return true
	}
	for i := range got.found {
		if has(got.found[i].Cell) {
			return &got.found[i]
		}
	}
	for _, s := range got.skips {
		if has(s.Cell) {
			t.Skipf("%s: %s", s.Cell, s.Reason)
		}
	}
	t.Fatalf("no finding of %v, and the host can run it", w.levels)
	return nil
}

// made is what a study that makes a cause gave.
type made struct {
	found  []cause.Finding
	skips  []record.Skip      // cells that this host cannot run
	others map[string]float64 // cores that others used on the host, by cell: the busiest trial's
	events map[string]float64 // that the load counted in a second, by cell

	results string // its folder
}

// once runs the study.
func (m *madeCause) once(t *testing.T) *made {
	t.Helper()
	dir := t.TempDir()
	file, results := filepath.Join(dir, "made.yaml"), filepath.Join(dir, "r")
	if err := os.WriteFile(file, fmt.Appendf(nil, madeStudy, m.study, max(1, m.blocks)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, bin, "run", file, "--results", results, "--wait")
	if out, err := run.CombinedOutput(); err != nil {
		if run.ProcessState != nil && run.ProcessState.ExitCode() == exitHost {
			t.Skipf("this host can run nothing of it: %s", out)
		}
		t.Fatalf("tare run: %v\n%s", err, out)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, "report", results, "--json")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var doc struct {
		Causes []cause.Finding `json:"causes"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	got := &made{found: doc.Causes, skips: skipped(t, results), others: map[string]float64{}, events: map[string]float64{}, results: results}
	for _, tr := range load(t, results) {
		if tr.Status != record.OK { // the study tries a failed trial again
			t.Logf("%s: %+v", tr.Cell, tr.Failure)
			continue
		}
		if events, ok := tr.Sample("events"); ok {
			got.events[tr.Cell.Key()] = events
		}
		for _, w := range tr.Warnings {
			if w.Code == "left-behind" {
				t.Error(w.Text)
			}
		}
		got.others[tr.Cell.Key()] = max(got.others[tr.Cell.Key()], elsewhere(&tr))
	}
	return got
}

func skipped(t *testing.T, dir string) []record.Skip {
	t.Helper()
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	skips, err := db.Skips()
	if err != nil {
		t.Fatal(err)
	}
	return skips
}

// elsewhere is the CPU that the host used over the measured time and neither an end of
// the trial nor the harness. Interrupts are nobody's: those of the trial's own packets are
// not charged to its cgroups.
func elsewhere(tr *record.Trial) float64 {
	var host, ours float64
	for _, s := range tr.Samples {
		switch s.Name {
		case "system_cpu" + record.RateSuffix:
			if slices.Contains([]string{"user", "nice", "system", "steal"}, s.Labels.Get(record.LabelMode)) {
				host += s.Value
			}
		case record.CgroupCPU + record.RateSuffix:
			ours += s.Value
		case record.CPUTime + record.RateSuffix:
			if s.Labels.Get(record.LabelEndpoint) == "" {
				ours += s.Value
			}
		}
	}
	return host - ours
}
