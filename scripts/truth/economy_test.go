package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/analyse/stat"
	"tare/analyse/tune"
	"tare/store"
)

// liveTest is a small data set with true ratios.
func liveTest(t *testing.T) *readings {
	t.Helper()
	l := testLab(t, 1)
	s := shape{workloads: 4, points: 1, treats: 3}
	return live(newWorld(l.pop, machine{tuned: true}, s, 3, effects{}), s, 16, 3)
}

// TestReplay: all readings agree with themselves and cost all of the time; policies that take fewer cost less, and each
// sees the same readings.
func TestReplay(t *testing.T) {
	d := liveTest(t)
	ps, err := policies()
	if err != nil {
		t.Fatal(err)
	}
	ts, err := compareAll(d, ps, 1)
	if err != nil {
		t.Fatal(err)
	}
	for k, p := range ps {
		saved := 1 - ts[k].seconds/ts[k].whole
		switch p.name {
		case "fixed 16":
			if ts[k].same != ts[k].rows || math.Abs(saved) > 1e-9 || ts[k].confirmed != ts[k].rows-ts[k].open {
				t.Errorf("%s: %+v", p.name, ts[k])
			}
		case "fixed 5":
			if math.Abs(saved-11./16) > 1e-9 {
				t.Errorf("%s saves %.3f", p.name, saved)
			}
		case "adaptive":
			if saved <= 0 || ts[k].contrary > ts[k].rows/4 {
				t.Errorf("%s: %+v", p.name, ts[k])
			}
		}
		if ts[k].rows != 12 {
			t.Errorf("%s has %v rows", p.name, ts[k].rows)
		}
	}
}

// TestReduced: what -reduce writes is read as it was, and other files are refused with what to write.
func TestReduced(t *testing.T) {
	d := liveTest(t)
	d.rows[1].cells[2].value[4] = math.NaN()
	var b bytes.Buffer
	if err := d.reduce(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "readings.csv.zst")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readData(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	if got.blocks != d.blocks || got.cells() != d.cells() || !math.IsNaN(got.rows[1].cells[2].value[4]) {
		t.Errorf("read %d blocks of %d cells", got.blocks, got.cells())
	}
	for i := range d.rows {
		for k, c := range d.rows[i].cells {
			for n, v := range c.value {
				if w := got.rows[i].cells[k].value[n]; !math.IsNaN(v) && math.Abs(w/v-1) > 1e-5 {
					t.Fatalf("row %d, cell %d, block %d: %g, want %g", i, k, n, w, v)
				}
			}
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readData(context.Background(), bad); err == nil || !strings.Contains(err.Error(), "-reduce") {
		t.Errorf("another file: %v", err)
	}
}

// TestShipped: the part "measured" replays the shipped readings, and prints nothing if there are none.
func TestShipped(t *testing.T) {
	l := testLab(t, 1)
	l.root = t.TempDir()
	ps, err := policies()
	if err != nil {
		t.Fatal(err)
	}
	printed := func() string {
		var out bytes.Buffer
		if err := l.shippedEconomy(t.Context(), ps, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := printed(); got != "" {
		t.Errorf("without readings: %s", got)
	}
	file := filepath.Join(l.root, shippedReadings)
	var b bytes.Buffer
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), liveTest(t).reduce(&b), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := printed(); !strings.Contains(got, shippedReadings+": 16 cells in 12 comparisons, 16 blocks") || !strings.Contains(got, "adaptive") {
		t.Errorf("with readings: %s", got)
	}
}

// TestReduceRefuses: the model's results are not reduced, nor is nothing.
func TestReduceRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	s, err := store.Create(dir, store.Meta{StudySource: []byte("study: s\n"), Modelled: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "x")
	for data, want := range map[string]string{"": "write -data FOLDER", dir: "is modelled, not measured"} {
		if err := reduceTo(t.Context(), data, to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", data, err, want)
		}
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a file was written")
	}
}

// TestGather: rows are made of the cells of one workload, with the baseline first; without a baseline there is none.
func TestGather(t *testing.T) {
	of := func(workload, box string, base bool) *measured {
		return &measured{workload: workload, response: "rate", sandbox: box, baseline: base, slow: -1,
			at: map[int]float64{1: 0, 2: math.Log(2), 3: math.Log(3)}, seconds: map[int]float64{1: 1, 2: 1, 3: 2}}
	}
	d := gather("x", []*measured{of("lone", "runc", false), of("net size=1", "runc", false), of("net size=1", "process", true), of("net size=2", "process", true)})
	if len(d.rows) != 1 || d.rows[0].workload != "net rate" || d.rows[0].lower || d.rows[0].cells[0].name != "process" || d.blocks != 3 {
		t.Fatalf("gathered %+v", d)
	}
	if got := d.rows[0].cells[1].value; len(got) != 3 || math.Abs(got[2]-3) > 1e-9 || math.Abs(d.mean()-8./3) > 1e-9 {
		t.Errorf("values %v, %v s a block", got, d.mean())
	}
}

// TestVerdictIs: a verdict is true by its side, and by the margin.
func TestVerdictIs(t *testing.T) {
	for _, c := range []struct {
		said         said
		truth        float64
		lower        bool
		right, wrong bool
	}{
		{said{stat.Slower, true}, 0.1, true, true, false},
		{said{stat.Slower, true}, -0.1, true, false, true},
		{said{stat.Slower, true}, -0.1, false, true, false},
		{said{stat.Faster, false}, 0, true, false, true},
		{said{stat.Equivalent, false}, 0.02, true, true, false},
		{said{stat.Equivalent, false}, 0.1, true, false, true},
		{said{stat.Undecided, false}, 0.1, true, false, false},
	} {
		if right, wrong := c.said.is(c.truth, 0.03, c.lower); right != c.right || wrong != c.wrong {
			t.Errorf("%+v: right %v, wrong %v", c, right, wrong)
		}
	}
}

// TestSearches: without noise every search finds the level, and tuning takes fewest readings.
func TestSearches(t *testing.T) {
	goal := tune.Goal{Reach: 0.9, Margin: 0.03, Confidence: 0.95}
	f := forms()[0]
	s := &surface{ground: levelGrounds()[0]}
	for range 16 {
		s.value = append(s.value, s.share)
	}
	least := levels * 16
	for _, way := range searches() {
		level, n, _ := way.find(s, goal)
		if got := f.at(float64(level)) / f.at(levels-1); got < 0.9 || level > 0 && f.at(float64(level-1))/f.at(levels-1) >= 0.9 {
			t.Errorf("%s finds level %d, %.3f of the best", way.name, level, got)
		}
		if way.name == "tune" && n >= least {
			t.Errorf("%s takes %d readings, another %d", way.name, n, least)
		}
		least = min(least, n)
	}
}
