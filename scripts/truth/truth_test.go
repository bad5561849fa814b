package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
)

func testLab(t *testing.T, workers int) *lab {
	t.Helper()
	l, err := newLab(options{root: "../..", seed: 7, only: regexp.MustCompile(""), workers: workers, scale: 1}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestBrokenRule: an interval of 80 % where 95 % is promised is marked, in rows and tables and
// calls, and the plain interval of one comparison is not.
func TestBrokenRule(t *testing.T) {
	l := testLab(t, 2)
	s := shape{workloads: 4, points: 1, treats: 1}
	marked := func(stop string) map[string]bool {
		units := []unit{{section: "test", shape: s, rule: rule{stop, stop}, machine: machine{name: "even", even: 0.05}, studies: 300}}
		units, totals, err := l.all(context.Background(), units)
		if err != nil {
			t.Fatal(err)
		}
		figures, err := l.printAll(io.Discard, units, totals)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, f := range figures {
			if f.outside() {
				out[f.name] = true
			}
		}
		return out
	}
	broken := marked("{fixed: 4, confidence: 80%}")
	for _, name := range []string{"rows", "tables", "A/A rows called"} {
		if !broken[name] {
			t.Errorf("with intervals of 80 %%, %q is not marked; marked are %v", name, broken)
		}
	}
	if sound := marked("{fixed: 4}"); sound["rows"] || sound["A/A rows called"] {
		t.Errorf("with plain intervals of 95 %% these are marked: %v", sound)
	}
}

// TestWorkers: the number of workers changes no figure, and the seed changes them.
func TestWorkers(t *testing.T) {
	table := func(workers int, seed uint64) string {
		l := testLab(t, workers)
		l.seed = seed
		s := shape{workloads: 2, points: 2, treats: 2}
		units, totals, err := l.all(context.Background(), []unit{{section: "test", shape: s, rule: ownRule(), machine: machines()[4], studies: 11}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := l.printAll(&b, units, totals); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	one := table(1, 7)
	if three := table(3, 7); one != three {
		t.Errorf("one worker:\n%s\nthree:\n%s", one, three)
	}
	if one == table(1, 8) {
		t.Error("another seed gives the same figures")
	}
}

// TestWorld: the scatter that a world makes is the one that it says it has.
func TestWorld(t *testing.T) {
	l := testLab(t, 1)
	s := shape{workloads: 2, points: 1, treats: 2}
	for _, m := range machines() {
		// The one step of a life is an event, not scatter.
		w := newWorld(l.pop, m, s, 3, effects{})
		w.stepAt = math.MaxInt
		r := fork(9)
		place := 0
		var single, mean []float64
		for block := 1; block <= 20_000; block++ {
			var y [3]float64
			for _, cell := range r.Perm(3) {
				place++
				y[cell] = math.Log(w.value(1, cell, block, place))
			}
			single = append(single, y[2]-y[0])
			mean = append(mean, (y[1]+y[2])/2-y[0])
		}
		truth, got := moments(single)
		if want := w.pair(1, 1); math.Abs(math.Sqrt(got)/want-1) > 0.1 {
			t.Errorf("%s: the ratio scatters by %.4f, want %.4f", m.name, math.Sqrt(got), want)
		}
		if d := truth - w.truth[1][1]; math.Abs(d) > 5*math.Sqrt(got/float64(len(single))) {
			t.Errorf("%s: the mean ratio is %.4f away from the truth", m.name, d)
		}
		if m.drift > 0 || m.steps > 0 {
			continue // the trials of a mean are not equally far from the baseline's
		}
		if _, v := moments(mean); math.Abs(math.Sqrt(v/w.meanVariance(1, []int{0, 1}))-1) > 0.1 {
			t.Errorf("%s: the mean of two ratios scatters by %.4f, want %.4f", m.name, math.Sqrt(v), math.Sqrt(w.meanVariance(1, []int{0, 1})))
		}
	}
}

// TestComponents: the shipped components are read, name no host and no path, and are as unlike
// as real trials are.
func TestComponents(t *testing.T) {
	all, err := readComponents(componentsFile)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPopulation(all)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.sources) < 10 || !(p.keep > 0.5) {
		t.Errorf("%d responses, of whose spread %.2f is true", len(p.sources), p.keep)
	}
	for _, c := range all {
		if strings.ContainsAny(c.workload+c.response+c.sandbox, "/\\") {
			t.Errorf("%s %s %s names a path", c.workload, c.response, c.sandbox)
		}
	}
}

// TestShapes: every design is a study with the strata and treatments that it says, under every
// rule.
func TestShapes(t *testing.T) {
	l := testLab(t, 1)
	if len(l.shipped) == 0 {
		t.Error("no shipped study has a rule of its own")
	}
	for _, s := range designs() {
		for _, r := range append([]rule{ownRule(), fixed("5")}, l.shipped...) {
			p, err := newPlayer(s, r)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(p.study.Strata); n != s.strata() {
				t.Errorf("%s has %d strata", s, n)
			}
		}
	}
}
