package merit

import (
	"math"
	"slices"
	"testing"

	"tare/record"
)

func TestBest(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values []float64
		better record.Better
		best   float64
		at     int
	}{
		{[]float64{100, 180, 250, 240}, record.Higher, 250, 2},
		{[]float64{100, 180, 250, 240}, record.Lower, 100, 0},
		{[]float64{nan, 180, nan}, record.Higher, 180, 1},
		{[]float64{250, 250}, record.Higher, 250, 0}, // the first of equals
	} {
		if best, at := Best(c.values, c.better); best != c.best || at != c.at {
			t.Errorf("Best(%v, %s) = %g at %d, want %g at %d", c.values, c.better, best, at, c.best, c.at)
		}
	}
	if best, at := Best([]float64{nan}, record.Higher); !math.IsNaN(best) || at != -1 {
		t.Errorf("without values: %g at %d", best, at)
	}
}

func TestFewest(t *testing.T) {
	values := []float64{100, 180, 226, 250, 240} // 90 % of 250 is 225
	for share, want := range map[float64]int{0.9: 2, 0.905: 3, 0.96: 3, 0.7: 1, 0.4: 0, 1: 3} {
		if got := Fewest(values, share, record.Higher); got != want {
			t.Errorf("fewest %g: %d, want %d", share, got, want)
		}
	}
	// Of latencies the best is the least: 10/11 of it is reached by 11, and not by 12.
	if got := Fewest([]float64{20, 12, 11, 10}, 0.9, record.Lower); got != 2 {
		t.Errorf("fewest by latency: %d, want 2", got)
	}
	if got := Fewest([]float64{math.NaN(), 95, 100}, 0.9, record.Higher); got != 1 {
		t.Errorf("fewest without the baseline: %d, want 1", got)
	}
	if got := Fewest([]float64{math.NaN()}, 0.9, record.Higher); got != -1 {
		t.Errorf("fewest without values: %d, want -1", got)
	}
}

func TestGainAndOver(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"gain", Gain([]float64{100, 180, 250}, 0, record.Higher), 1.5},
		{"gain of the baseline", Gain([]float64{100, 90}, 0, record.Higher), 0},
		{"gain by latency", Gain([]float64{20, 10}, 0, record.Lower), 1},
		{"gain without a baseline", Gain([]float64{20, 10}, -1, record.Higher), math.NaN()},
		{"vm over pod", Over([]float64{100, 250, 300}, 2, record.Higher), 250. / 300},
		{"vm over pod by latency", Over([]float64{30, 20, 10}, 2, record.Lower), 0.5},
		{"without a pod", Over([]float64{30, 20, math.NaN()}, 2, record.Higher), math.NaN()},
	} {
		if math.Abs(c.got-c.want) > 1e-12 || math.IsNaN(c.got) != math.IsNaN(c.want) {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
}

func TestOrder(t *testing.T) {
	for _, c := range []struct{ levels, want []string }{
		{[]string{"16", "none", "2", "1"}, []string{"none", "1", "2", "16"}},
		{[]string{"64KiB", "4KiB", "1MiB"}, []string{"4KiB", "64KiB", "1MiB"}},
		{[]string{"2m", "30s"}, []string{"30s", "2m"}},
		{[]string{"threads", "native"}, []string{"threads", "native"}},
		{[]string{"off", "auto", "2"}, []string{"off", "auto", "2"}},
	} {
		if got := Order(c.levels); !slices.Equal(got, c.want) {
			t.Errorf("Order(%v) = %v, want %v", c.levels, got, c.want)
		}
	}
}

// values are of blocks 1, 2, ...
func values(v ...float64) map[int]float64 {
	out := make(map[int]float64)
	for i, x := range v {
		out[i+1] = x
	}
	return out
}

func best(v []float64) float64 {
	b, _ := Best(v, record.Higher)
	return b
}

// TestInterval compares with Student's interval, which that of a single level is: with few blocks too, and beside
// levels that were not measured.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		values        []float64
		value, lo, hi float64
	}{
		// The logarithms have mean 4.63475 and standard error 0.03203; t(7) = 2.3646.
		{[]float64{90, 100, 105, 110, 120, 95, 108, 99}, 103.003, 95.49, 111.10},
		// Mean 4.65234, standard error 0.21414; t(2) = 4.30265.
		{[]float64{80, 90, 160}, 104.83, 41.72, 263.40},
	} {
		e := Compute([]Level{{Stratum: "t"}, {Values: values(c.values...)}}, 0.95, Figure{Of: best})[0]
		if math.Abs(e.Value/c.value-1) > 1e-3 || math.Abs(e.Lo/c.lo-1) > 1e-3 || math.Abs(e.Hi/c.hi-1) > 1e-3 || e.Blocks != len(c.values) {
			t.Errorf("%v: %g (%g to %g), %d blocks, want %g (%g to %g)", c.values, e.Value, e.Lo, e.Hi, e.Blocks, c.value, c.lo, c.hi)
		}
	}
	e := Compute([]Level{{Values: values(90, 100, 105, 110, 120, 95, 108, 99)}}, 0.95, Figure{Of: best})[0]
	again := Compute([]Level{{Values: values(90, 100, 105, 110, 120, 95, 108, 99)}}, 0.95, Figure{Of: best})[0]
	if e.Lo != again.Lo || e.Hi != again.Hi {
		t.Error("the same values have two intervals")
	}
}

// TestBlocks: what all levels of a block have in common is no error of a ratio of them.
func TestBlocks(t *testing.T) {
	slow, fast := values(50, 100, 200, 130), values(100, 200, 400, 260)
	gain := Figure{Least: 1, Of: func(v []float64) float64 { return Gain(v, 0, record.Higher) + 1 }}
	e := Compute([]Level{{"s", slow}, {"s", fast}}, 0.95, gain, Figure{Of: best})
	if math.Abs(e[0].Value-2) > 1e-9 || e[0].Hi-e[0].Lo > 1e-9 {
		t.Errorf("of one stratum: %g (%g to %g), want 2 without doubt", e[0].Value, e[0].Lo, e[0].Hi)
	}
	if e[1].Hi/e[1].Lo < 2 {
		t.Errorf("the best itself: %g (%g to %g)", e[1].Value, e[1].Lo, e[1].Hi)
	}
	if e := Compute([]Level{{"s", slow}, {"t", fast}}, 0.95, gain)[0]; e.Hi/e.Lo < 2 {
		t.Errorf("of two strata: %g (%g to %g)", e.Value, e.Lo, e.Hi)
	}
}

func TestNoInterval(t *testing.T) {
	one := Figure{Of: best}
	for _, c := range []struct {
		levels []Level
		value  float64 // 0: none
		why    string
	}{
		{[]Level{{"s", values(100)}, {"s", values(200)}}, 200, "an interval needs 3 blocks, and a level has 1"},
		{[]Level{{"s", values(100, 100, 100)}, {"s", values(400, 100)}}, 200, "an interval needs 3 blocks, and a level has 2"},
		{[]Level{{"s", values(100, 100, 0)}}, 0, "a value is not positive"},
		{[]Level{{"s", values(math.NaN())}}, 0, "there are no values"},
		{nil, 0, "there are no values"},
	} {
		e := Compute(c.levels, 0.95, one)[0]
		if e.HasInterval() || e.Why != c.why || math.Abs(e.Value-c.value) > 1e-9 || math.IsNaN(e.Value) != (c.value == 0) {
			t.Errorf("%v: %g, %q", c.levels, e.Value, e.Why)
		}
	}
}

// TestGaps: a block in which one level has no value counts for the others.
func TestGaps(t *testing.T) {
	gap := values(200, math.NaN(), 200, 200)
	e := Compute([]Level{{"s", values(100, 100, 100, 100)}, {"s", gap}, {"s", nil}}, 0.95, Figure{Of: best})[0]
	if math.Abs(e.Value-200) > 1e-9 || !e.HasInterval() || e.Blocks != 3 {
		t.Errorf("%g (%g to %g) of %d blocks", e.Value, e.Lo, e.Hi, e.Blocks)
	}
}

func TestMean(t *testing.T) {
	f := Figure{Of: best}
	a := Compute([]Level{{"a", values(98, 100, 102, 100)}}, 0.95, f)[0]
	b := Compute([]Level{{"b", values(290, 310, 300, 300)}}, 0.95, f)[0]
	m := Mean([]Estimate{a, b}, 0.95)
	if math.Abs(m.Value-(a.Value+b.Value)/2) > 1e-9 || m.Blocks != 4 || !m.HasInterval() {
		t.Errorf("mean %g (%g to %g)", m.Value, m.Lo, m.Hi)
	}
	if m.Hi-m.Lo > (a.Hi-a.Lo+b.Hi-b.Lo)/2 {
		t.Error("errors of different strata are added as if they were the same")
	}
	if m := Mean([]Estimate{a, none("no such cell")}, 0.95); !math.IsNaN(m.Value) || m.Why != "no such cell" {
		t.Errorf("with a gap: %g, %q", m.Value, m.Why)
	}
	if m := Mean([]Estimate{a, Compute([]Level{{"c", values(5)}}, 0.95, f)[0]}, 0.95); m.HasInterval() || math.IsNaN(m.Value) {
		t.Errorf("with one block: %g (%g to %g)", m.Value, m.Lo, m.Hi)
	}
}

// TestTies: a level that reaches exactly the share of the best reaches it, whatever logarithms lose, and totals are as exact.
func TestTies(t *testing.T) {
	for k := 1.0; k < 60; k++ {
		levels := []Level{{Values: map[int]float64{1: 5 * k}}, {Values: map[int]float64{1: 9 * k}}, {Values: map[int]float64{1: 10 * k}}}
		e := Compute(levels, 0.95, Figure{Of: func(v []float64) float64 { return float64(Fewest(v, 0.9, record.Higher)) }}, Figure{Of: func(v []float64) float64 { return Gain(v, 1, record.Higher) }})
		if e[0].Value != 1 || math.Abs(e[1].Value-1./9) > 1e-11 {
			t.Errorf("%g: level %g, gain %g", k, e[0].Value, e[1].Value)
		}
	}
	var gains []Estimate
	for _, g := range []float64{5, 10, 12, 19} {
		gains = append(gains, Compute([]Level{{Values: map[int]float64{1: 100}}, {Values: map[int]float64{1: 100 + g}}}, 0.95, Figure{Of: func(v []float64) float64 { return Gain(v, 0, record.Higher) }})...)
	}
	if m := Mean(gains, 0.95); m.Value != 0.115 {
		t.Errorf("mean %v", m.Value)
	}
}
