package steady

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func ticks(n int) []time.Duration {
	t := make([]time.Duration, n)
	for i := range t {
		t[i] = time.Duration(i+1) * 100 * time.Millisecond
	}
	return t
}

func values(n int, f func(i int) float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

func TestLook(t *testing.T) {
	wiggle := func(i int) float64 { return float64(i*7%5) - 2 } // mean 0, no trend
	for _, c := range []struct {
		name          string
		v             []float64
		steady, short bool
		from          time.Duration
		why           string
	}{
		{name: "nothing", short: true, why: "no points"},
		{name: "two points", v: []float64{1, 2}, short: true, why: "has 2 points in the measured time, 16 are needed"},
		{name: "constant", v: values(40, func(int) float64 { return 5 }), steady: true},
		{name: "all zero", v: values(40, func(int) float64 { return 0 }), steady: true},
		{name: "level", v: values(40, func(i int) float64 { return 100 + wiggle(i) }), steady: true},
		{name: "one stall", v: values(40, func(i int) float64 { return 100 + wiggle(i) - 99*step(-math.Abs(float64(i)-20), 0) }), steady: true},
		{name: "falls", v: values(40, func(i int) float64 { return 100 - float64(i) + wiggle(i)/4 }), why: "still falls by"},
		{name: "rises", v: values(40, func(i int) float64 { return 100 + float64(i) + wiggle(i)/4 }), why: "still rises by"},
		{name: "a late step", v: values(40, func(i int) float64 { return 100 + 30*step(float64(i), 30) + wiggle(i) }),
			why: "rises by 27.9 % at 3.0 s of the measured time"},
		{name: "a step at the beginning", v: values(40, func(i int) float64 { return 100 - 30*(1-step(float64(i), 10)) + wiggle(i) }),
			steady: true, from: time.Second},
		{name: "a small ramp", v: values(40, func(i int) float64 { return 100 + 0.05*float64(i) }), steady: true},
		{name: "not numbers", v: values(40, func(i int) float64 { return math.Inf(i%2 - 1) }), short: true, why: "no points"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Look(ticks(len(c.v)), c.v, 0.03)
			if got.Steady != c.steady || got.TooShort != c.short || got.From != c.from || !strings.Contains(got.Why, c.why) || (got.Why == "") != c.steady {
				t.Errorf("got %+v", got)
			}
			if bad := unsound(got); bad != "" {
				t.Error(bad)
			}
		})
	}
}

// unsound says what cannot be in any verdict.
func unsound(v Verdict) string {
	for _, x := range []float64{v.Level, v.Whole, v.Slope, v.SlopeP, v.ESS} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return "a figure is no number"
		}
	}
	switch {
	case v.Steady && v.TooShort:
		return "steady and too short"
	case v.N > 0 && (v.ESS < 1 || v.ESS > float64(v.N)):
		return "the effective sample size is out of range"
	case v.SlopeP < 0 || v.SlopeP > 1:
		return "the p-value is out of range"
	case !v.Steady && v.From != 0:
		return "a beginning of what is not steady"
	}
	return ""
}

// The unit does not matter, nor how fast the clock runs.
func TestScaleDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		n := 16 + r.IntN(100)
		at, v := level(ar(0.5, normal)(r, n), 0.05, func(x float64) float64 { return 1 + 0.2*step(x, 0.3) })
		a := Look(at, v, 0.03)
		for i := range at {
			at[i] *= 8
			v[i] *= 1024
		}
		b := Look(at, v, 0.03)
		if a.Steady != b.Steady || a.TooShort != b.TooShort || 8*a.From != b.From || a.ESS != b.ESS || math.Abs(b.Level/a.Level/1024-1) > 1e-12 {
			t.Fatalf("%d points: %+v and %+v", n, a, b)
		}
	}
}

// Unequal intervals: the mean is that of the time, not of the points.
func TestMeanWeighsIntervals(t *testing.T) {
	got := Look([]time.Duration{1e9, 4e9}, []float64{10, 2}, 0.03)
	if want := (10*1 + 2*3) / 4.0; got.Whole != want {
		t.Errorf("whole %g, want %g", got.Whole, want)
	}
}

func TestSlope(t *testing.T) {
	at := ticks(50)
	v := values(50, func(i int) float64 { return 100 + at[i].Seconds() })
	got := Look(at, v, 0.1) // this change does not matter: the slope is of all
	level := 100 + 2.55
	if !got.Steady || math.Abs(got.Slope-1/level) > 1e-6 || got.SlopeP > 1e-6 {
		t.Errorf("%+v, want a slope of %g a second", got, 1/level)
	}
}

func FuzzLook(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), 0.03)
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaazzzzzzzzzzzzz"), 0.0)
	f.Fuzz(func(t *testing.T, text []byte, tolerance float64) {
		var at []time.Duration
		var v []float64
		now := time.Duration(0)
		for i, b := range text {
			now += time.Duration(b) * time.Millisecond
			at = append(at, now)
			x := float64(b)
			if i > 0 && b == 0xff {
				x = math.Exp(float64(text[i-1])*6 - 700)
			}
			v = append(v, x)
		}
		if bad := unsound(Look(at, v, tolerance)); bad != "" {
			t.Errorf("%s: %+v", bad, Look(at, v, tolerance))
		}
	})
}
