package plot

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

func build(t *testing.T, src Source, opt Options) []Figure {
	t.Helper()
	figs, _, err := Build(src, opt)
	if err != nil {
		t.Fatal(err)
	}
	return figs
}

func TestFiguresOfTheRest(t *testing.T) {
	src := sizes().source()
	figs := build(t, src, Options{By: []string{"size", "sandbox"}})
	var got []string
	for _, f := range figs {
		got = append(got, f.Name)
		if len(f.Marks) != 9 || f.Kind != Line || f.Value != Level {
			t.Errorf("%s has %d marks, %s, %s", f.Name, len(f.Marks), f.Kind, f.Value)
		}
	}
	want := []string{"rr-rate-connections-1", "rr-latency-connections-1", "rr-rate-connections-16", "rr-latency-connections-16"}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"1B", "4KiB", "64KiB"}, figs[0].X.Levels); d != "" {
		t.Error("sizes are not in order:", d)
	}
	if d := cmp.Diff([]string{"process", "runc", "runsc"}, figs[0].Colour.Levels); d != "" {
		t.Error("the baseline is not first:", d)
	}
}

// Marks hold what the trials say, by arithmetic of the test's own.
func TestMarksAreTheTrials(t *testing.T) {
	src := sizes().source()
	for _, f := range build(t, src, Options{By: []string{"size", "sandbox", "connections"}, Responses: []string{"rate"}}) {
		if len(f.Marks) != 18 {
			t.Fatalf("%d marks", len(f.Marks))
		}
		for _, m := range f.Marks {
			var v []float64
			for b := 1; b <= 4; b++ {
				v = append(v, truth(m.Cell, b))
			}
			x, lo, hi := mean(v)
			if !near(m.Value, x, 1e-12) || !near(m.Lo, lo, 1e-9) || !near(m.Hi, hi, 1e-9) || m.N != 4 || !slices.Equal(m.Points, v) {
				t.Errorf("%s: %v (%v to %v) n %d %v, want %v (%v to %v) %v", m.Cell, m.Value, m.Lo, m.Hi, m.N, m.Points, x, lo, hi, v)
			}
			for _, l := range []struct{ level, factor string }{{f.X.Levels[m.X], "size"}, {f.Colour.Levels[m.Colour], "sandbox"}, {f.Hatch.Levels[m.Hatch], "connections"}} {
				if own, _ := m.Cell.Get(l.factor); own != l.level {
					t.Errorf("%s stands at %s", m.Cell, l.level)
				}
			}
		}
	}
	for _, f := range build(t, src, Options{By: []string{"size", "sandbox", "connections"}, Value: Cost}) {
		if len(f.Marks) != 12 {
			t.Fatalf("%d marks of costs", len(f.Marks))
		}
		for _, m := range f.Marks {
			if m.Value > 0.9 {
				t.Errorf("%s: rates are higher and latencies lower than the baseline's, and %s costs %v", m.Cell, m.Response.Name, m.Value)
			}
			if x, _, _ := mean(m.Points); !near(m.Value, x, 1e-12) || len(m.Points) != 4 || m.Verdict == "" {
				t.Errorf("%s: %v is not the mean of %v (%s)", m.Cell, m.Value, m.Points, m.Verdict)
			}
		}
	}
}

func TestGapsAreNamed(t *testing.T) {
	l := sizes()
	has := func(c record.Cell, f, v string) bool { x, _ := c.Get(f); return x == v }
	l.skip = func(c record.Cell) string {
		if has(c, "sandbox", "runsc") && has(c, "size", "1B") {
			return "no runsc"
		}
		return ""
	}
	l.fail = func(c record.Cell) bool { return has(c, "sandbox", "runc") && has(c, "size", "4KiB") }
	figs := build(t, l.source(), Options{By: []string{"size", "sandbox", "connections"}, Responses: []string{"rate"}})
	got := map[string]int{}
	for _, m := range figs[0].Marks {
		got[m.Gap]++
		if m.Gap == "skipped" && !strings.Contains(m.Why, "no runsc") {
			t.Error(m.Why)
		}
	}
	if got["skipped"] != 2 || got[""] != 14 || got["failed"]+got["given up"] != 2 {
		t.Error(got)
	}
	if !strings.Contains(figs[0].Caption, "4 cells without a value: ") || !strings.Contains(figs[0].Caption, "2 skipped") || !strings.Contains(figs[0].Alt, "no runsc") {
		t.Error(figs[0].Caption, figs[0].Alt)
	}
}

func TestFewBlocks(t *testing.T) {
	l := sizes()
	l.blocks = 2
	f := build(t, l.source(), Options{By: []string{"size", "sandbox"}})[0]
	for _, m := range f.Marks {
		if m.HasInterval() || !m.single() || len(m.Points) != 2 {
			t.Errorf("%+v", m)
		}
	}
	if !strings.Contains(f.Caption, "9 cells with fewer than 3 blocks") || strings.Contains(f.Caption, "whiskers") {
		t.Error(f.Caption)
	}
	if f.Kind != Line {
		t.Errorf("the graph is a %s graph", f.Kind)
	}
	// Dashes need lines, which single blocks do not have. As dots, they have a shape for each level of the third factor.
	for blocks, want := range map[int]Graph{1: Dot, 4: Line} {
		l.blocks = blocks
		if f := build(t, l.source(), Options{By: []string{"size", "sandbox", "connections"}})[0]; f.Kind != want {
			t.Errorf("%d blocks: a %s graph, want %s", blocks, f.Kind, want)
		}
	}
}

func TestChosenFactors(t *testing.T) {
	figs := build(t, sizes().source(), Options{})
	var got []string
	for _, f := range figs {
		got = append(got, f.Name+": "+f.X.Factor+"/"+f.Colour.Factor+"/"+f.Hatch.Factor)
	}
	want := []string{"all-cost: " + factorWhat + "/sandbox/", "rr-rate: size/sandbox/connections", "rr-latency: size/sandbox/connections"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := len(figs[0].Marks); n != 2*6*2 {
		t.Errorf("the overview has %d marks", n)
	}
	l := sizes()
	l.factors = l.factors[:1]
	figs = build(t, l.source(), Options{})
	if last := figs[len(figs)-1]; last.X.Factor != "sandbox" || last.Kind != Bar || last.Colour.used() {
		t.Errorf("%+v", last.X)
	}
}

func TestWrongRequests(t *testing.T) {
	src := sizes().source()
	var unknown *UnknownError
	var usage *UsageError
	for _, opt := range []Options{
		{By: []string{"sise"}}, {By: []string{"size"}, Only: []record.Level{{Factor: "size", Value: "2B"}}}, {Responses: []string{"ratte"}},
		{Only: []record.Level{{Factor: "x", Value: "1"}}},
	} {
		if _, _, err := Build(src, opt); !errors.As(err, &unknown) || len(unknown.Names) == 0 {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	for _, opt := range []Options{
		{By: []string{"size", "size"}}, {By: []string{"size", "sandbox", "connections", "workload"}}, {By: []string{"response", "sandbox"}, Value: Level},
	} {
		if _, _, err := Build(src, opt); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	figs, notes, err := Build(src, Options{Only: []record.Level{{Factor: "sandbox", Value: "process"}}, Value: Cost})
	if err != nil || len(figs) != 0 || len(notes) == 0 {
		t.Error(figs, notes, err)
	}
	figs, _, err = Build(src, Options{By: []string{"response", "sandbox"}})
	if err != nil || figs[0].Value != Cost {
		t.Error("responses of several units on one axis are not costs:", err)
	}
}

func TestOnly(t *testing.T) {
	figs := build(t, sizes().source(), Options{By: []string{"size", "sandbox"}, Only: []record.Level{{Factor: "size", Value: "1B"}, {Factor: "size", Value: "4KiB"}, {Factor: "connections", Value: "16"}}})
	for _, f := range figs {
		if f.Fixed.Key() != "connections=16" || len(f.X.Levels) != 2 || f.Kind != Bar {
			t.Error(f.Fixed, f.X.Levels, f.Kind)
		}
	}
}

func TestLevelsInOrder(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"64KiB", "1B", "4KiB", "1MiB"}, []string{"1B", "4KiB", "64KiB", "1MiB"}},
		{[]string{"16", "4", "1"}, []string{"1", "4", "16"}},
		{[]string{"none", "2", "0.5"}, []string{"none", "0.5", "2"}},
		{[]string{"8", "1", "none"}, []string{"1", "8", "none"}},
		{[]string{"5m", "30s", "1h"}, []string{"30s", "5m", "1h"}},
		{[]string{"1m", "512k"}, []string{"512k", "1m"}},
		{[]string{"runsc", "crun"}, []string{"runsc", "crun"}},
		{[]string{"2-3", "0-1"}, []string{"2-3", "0-1"}},
		{[]string{"4", "", "2"}, []string{"", "2", "4"}},
	} {
		if d := cmp.Diff(c.want, newAxis("f", c.in, c.in).Levels); d != "" {
			t.Errorf("%v: %s", c.in, d)
		}
	}
	if v := numbers([]string{"1", "none", "4"}); count(v) != 2 || !math.IsNaN(v[1]) {
		t.Error(v)
	}
}

// Factors that only some cells have are levels of their own, not gaps.
func TestNestedFactor(t *testing.T) {
	src := sizes().source()
	for i := range src.Result.Compared {
		c := &src.Result.Compared[i]
		if c.Baseline {
			c.Cell = c.Cell.Without("connections")
		}
	}
	figs := build(t, src, Options{By: []string{"connections", "sandbox"}, Responses: []string{"rate"}, Only: []record.Level{{Factor: "size", Value: "1B"}}})
	if len(figs) != 1 || figs[0].X.Levels[0] != "" || figs[0].X.label(0) != "no connections" {
		t.Errorf("%d figures, %q", len(figs), figs[0].X.Levels)
	}
}

func TestNamesOfFiles(t *testing.T) {
	long := strings.Repeat("x", 500)
	figs := []Figure{
		{Workload: "a", Response: record.Response{Name: "b"}},
		{Workload: "A", Response: record.Response{Name: "B"}},
		{Workload: "../../etc", Response: record.Response{Name: "b"}},
		{Workload: "___.._etc", Response: record.Response{Name: "b"}},
		{Workload: "a", Response: record.Response{Name: "b"}, Fixed: record.Cell{{Factor: "f", Value: long + "1"}}},
		{Workload: "a", Response: record.Response{Name: "b"}, Fixed: record.Cell{{Factor: "f", Value: long + "2"}}},
		{Workload: "a", Response: record.Response{Name: "b"}, Fixed: record.Cell{{Factor: "f", Value: "\x00/<&"}}},
		{Workload: "-rf", Response: record.Response{Name: ".."}},
		{Value: Cost},
	}
	name(figs, func(string) bool { return true })
	seen := map[string]bool{}
	for _, f := range figs {
		k := strings.ToLower(f.Name)
		if seen[k] || len(f.Name) > 120 || strings.ContainsAny(f.Name, "/\\<&\x00 ") || strings.HasPrefix(f.Name, ".") || strings.HasPrefix(f.Name, "-") || k == "index" {
			t.Errorf("%q", f.Name)
		}
		seen[k] = true
	}
	if figs[0].Name != "a-b" {
		t.Error(figs[0].Name)
	}
}
