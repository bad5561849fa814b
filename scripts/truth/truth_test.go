package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"regexp"
	"slices"
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

// TestShippedDesign: the short form has the largest shipped study, under its own rule. Other studies
// may have that rule too.
func TestShippedDesign(t *testing.T) {
	l := testLab(t, 1)
	if !slices.ContainsFunc(l.cases(), func(u unit) bool {
		return u.shape.nested > 3 && strings.Contains(u.rule.name, "kata-network")
	}) {
		t.Error("no case is the study kata-network")
	}
}

// TestMark: a figure is marked when chance does not explain that it is outside its band, and a
// share of few that has no scatter of its own is given that of the edge.
func TestMark(t *testing.T) {
	for _, c := range []struct {
		value, err, number float64
		band               band
		want               string
	}{
		{0.95, 0.002, 1e4, coverage(), ""},
		{0.935, 0.002, 1e4, coverage(), "?"},
		{0.930, 0.002, 1e4, coverage(), "!"},
		{0.980, 0.002, 1e4, coverage(), "!"},
		{1, 0, 20, coverage(), "?"},
		{1, 0, 1000, coverage(), "!"},
		{0.2, 0.01, 1e4, atMost(0.05), "!"},
		{0, 0, 1e4, atMost(0.05), ""},
		{0.5, 0.01, 1e4, atLeast(0.9), "!"},
		{0.5, 0.01, 1e4, none(), ""},
	} {
		f := figure{value: c.value, err: c.err, number: c.number, studies: 100, band: c.band}
		if got := f.mark(); got != c.want {
			t.Errorf("%g ±%g of %g in %s is marked %q, want %q", c.value, c.err, c.number, c.band, got, c.want)
		}
		if f.studies = 3; f.mark() == "!" {
			t.Errorf("%g of three studies is marked !", c.value)
		}
	}
}

// TestExtract: the components of values that were made with known ones are these, and a file of
// them is read as it was written.
func TestExtract(t *testing.T) {
	const blocks, tied = 4000, 0.36
	r := fork(1)
	a := &measured{workload: "w", response: "time", sandbox: "process", baseline: true, slow: 1, at: map[int]float64{}, seq: map[int]int{}}
	b := &measured{workload: "w", response: "time", sandbox: "runc", slow: 1, at: map[int]float64{}, seq: map[int]int{}}
	for i := 1; i <= blocks; i++ {
		both := 0.6 * r.NormFloat64()
		a.at[i], a.seq[i] = 0.10*(both+0.8*r.NormFloat64()), 2*i-1
		b.at[i], b.seq[i] = 3+0.20*(both+0.8*r.NormFloat64()), 2*i
	}
	got := componentsOf([]*measured{a, b}, 1)
	if len(got) != 2 || !got[0].baseline || got[1].baseline {
		t.Fatalf("%+v", got)
	}
	near := func(what string, x, want, by float64) {
		if !(math.Abs(x-want) <= by) {
			t.Errorf("%s is %.4f, want %.4f", what, x, want)
		}
	}
	near("scatter of the baseline", got[0].scatter, 0.10, 0.005)
	near("scatter", got[1].scatter, 0.20, 0.01)
	near("together", got[1].together, tied, 0.05)
	near("ratio", got[1].ratio, math.Sqrt(0.01+0.04-2*tied*0.02), 0.01)
	near("kurtosis", got[1].kurtosis, 0, 0.4)
	near("next", got[1].next, 0, 0.1)
	near("next ratio", got[1].nextOf, 0, 0.1)
	text := strings.Join(componentColumns(), ",") + "\n"
	for i := range got {
		text += strings.Join(got[i].record(), ",") + "\n"
	}
	again, err := readComponents([]byte(text))
	if err != nil || len(again) != 2 {
		t.Fatal(again, err)
	}
	if !math.IsNaN(again[0].ratio) || again[1].sandbox != "runc" || again[1].blocks != blocks {
		t.Errorf("read again: %+v", again)
	}
	near("scatter read again", again[1].scatter, got[1].scatter, 1e-4)
}

// TestTurnedWorld: the mean of two turns scatters as a trial without turns does, and that of many by less,
// but never by less than starts do.
func TestTurnedWorld(t *testing.T) {
	l := testLab(t, 1)
	s := shape{workloads: 2, points: 1, treats: 2}
	w := newWorld(l.pop, machine{even: 0.1}, s, 3, effects{})
	place := 0
	scatter := func(turns int) float64 {
		var of []float64
		for block := 1; block <= 20_000; block++ {
			var y [2]float64
			for cell := range y {
				place++
				for _, v := range w.values(0, cell, block, place, turns) {
					y[cell] += math.Log(v) / float64(turns)
				}
			}
			of = append(of, y[1]-y[0])
		}
		_, v := moments(of)
		return math.Sqrt(v) / w.pair(0, 0)
	}
	for turns, want := range map[int]float64{2: 1, 1: math.Sqrt(1 + w.inner[0]), 50: math.Sqrt(1 - w.inner[0]*48/50)} {
		if got := scatter(turns); math.Abs(got/want-1) > 0.05 {
			t.Errorf("%d turns scatter by %.3f of two, want %.3f", turns, got, want)
		}
	}
}
