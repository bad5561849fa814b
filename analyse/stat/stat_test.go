package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tare/record"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %.10g, want %.10g", what, got, want)
	}
}

func TestCompareByHand(t *testing.T) {
	// ln ratios are ln 2 + {-0.1, 0, 0.1}: mean ln 2, s = 0.1, t(0.975, 2) = 4.302653.
	e := Compare([]Pair{{1, 2 * math.Exp(-0.1)}, {10, 20}, {100, 200 * math.Exp(0.1)}}, 0.95)
	half := 4.30265273 * 0.1 / math.Sqrt(3)
	near(t, "ratio", e.Ratio, 2, 1e-12)
	near(t, "lo", e.Lo, 2*math.Exp(-half), 1e-8)
	near(t, "hi", e.Hi, 2*math.Exp(half), 1e-8)
	near(t, "base", e.Base, 10, 1e-12)
	near(t, "value", e.Value, 20, 1e-12)
	near(t, "half-width", e.HalfWidth(), math.Exp(half)-1, 1e-8)
	if e.N != 3 || e.Missing != 0 {
		t.Errorf("n = %d, missing = %d", e.N, e.Missing)
	}
	// t = ln 2 / (0.1/sqrt 3) = 12.0057, two-sided with 2 degrees: 1-t/sqrt(2+t²).
	tt := math.Ln2 / (0.1 / math.Sqrt(3))
	near(t, "p", e.P(), 1-tt/math.Sqrt(2+tt*tt), 1e-10)
}

func TestNoIntervalFromTooFew(t *testing.T) {
	rule := NewRule(0.95, 0.05, 0.03, []int{3, 6}, 0)
	for n := range MinN {
		e := rule.Estimate(Summarise(slices.Repeat([]Pair{{1, 3}}, n)), Prior{DF: 10, Var: 0.01, Cap: 100})
		v, why, stop := rule.Judge(e, record.Lower)
		if e.HasInterval() || v != Undecided {
			t.Errorf("n = %d: %+v %s", n, e, v)
		}
		if stop || !strings.Contains(why, "need n >= 3") {
			t.Errorf("n = %d: %q stop %v", n, why, stop)
		}
	}
}

func TestUndefinedRatios(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		pairs []Pair
		why   string
		n     int
	}{
		{nil, "no block has a value of both", 0},
		{[]Pair{{nan, 1}, {1, inf}}, "no block has a value of both", 0},
		{[]Pair{{0, 0}, {0, 0}, {0, 0}}, "both are zero", 3},
		{[]Pair{{0, 1}, {0, 2}, {0, 0}}, "the baseline is zero", 3},
		{[]Pair{{1, 0}, {2, 0}}, "the value is zero", 2},
		{[]Pair{{1, 1}, {2, 0}, {3, 3}}, "a value is zero in 1 of 3 blocks", 3},
		{[]Pair{{1, -1}, {2, 1}}, "a value is negative in 1 of 2 blocks", 2},
	} {
		e := Compare(c.pairs, 0.95)
		if !strings.Contains(e.Undefined, c.why) || e.Ratio != 0 || e.HasInterval() || e.N != c.n {
			t.Errorf("%v: %+v, want %q", c.pairs, e, c.why)
		}
	}
	e := Compare([]Pair{{1, 2}, {nan, 2}, {1, 2}, {2, 4}}, 0.95)
	if e.N != 3 || e.Missing != 1 || e.Ratio != 2 {
		t.Errorf("a missing reading: %+v", e)
	}
}

func TestExtremesStayPrintable(t *testing.T) {
	tiny, huge := math.SmallestNonzeroFloat64, math.MaxFloat64
	for _, pairs := range [][]Pair{
		{{tiny, huge}, {tiny, huge}, {tiny, huge}},
		{{huge, tiny}, {tiny, huge}, {1, 1}},
	} {
		e := Compare(pairs, 0.999)
		if _, err := json.Marshal(e); err != nil {
			t.Errorf("%v: %v", e, err)
		}
		if e.Lo <= 0 || e.Lo > e.Ratio || e.Ratio > e.Hi {
			t.Errorf("interval is not around the ratio: %+v", e)
		}
	}
}

func TestRelations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var pairs, scaled, swapped []Pair
	for range 7 {
		p := Pair{math.Exp(r.NormFloat64()), math.Exp(0.3 + r.NormFloat64())}
		pairs = append(pairs, p)
		scaled = append(scaled, Pair{p.Base * 1e9, p.Other * 1e9})
		swapped = append(swapped, Pair{p.Other, p.Base})
	}
	e := Compare(pairs, 0.95)
	s := Compare(scaled, 0.95)
	near(t, "scaled ratio", s.Ratio, e.Ratio, 1e-12)
	near(t, "scaled lo", s.Lo, e.Lo, 1e-12)
	w := Compare(swapped, 0.95)
	near(t, "swapped ratio", w.Ratio, 1/e.Ratio, 1e-12)
	near(t, "swapped lo", w.Lo, 1/e.Hi, 1e-12)
	near(t, "swapped hi", w.Hi, 1/e.Lo, 1e-12)
	slices.Reverse(pairs)
	if got := Compare(pairs, 0.95); got != e {
		t.Errorf("order matters: %+v, %+v", got, e)
	}
}

func TestTrigammaInverse(t *testing.T) {
	near(t, "trigamma(1)", trigamma(1), math.Pi*math.Pi/6, 1e-12)
	for _, y := range []float64{1e-9, 1e-3, 0.1, 0.5, 1, 3.7, 50, 1e4, 1e8} {
		got := trigammaInverse(trigamma(y))
		near(t, "relative error", got/y, 1, 1e-6)
	}
}

// TestModerateRecovers draws variances from a known prior and finds it again.
func TestModerateRecovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	chi2 := func(k int) (x float64) {
		for range k {
			z := r.NormFloat64()
			x += z * z
		}
		return x
	}
	const d0, s0, d = 8, 0.04, 5
	var s2, df []float64
	for range 20000 {
		sigma2 := d0 * s0 / chi2(d0)
		s2, df = append(s2, sigma2*chi2(d)/d), append(df, d)
	}
	p := Moderate(s2, df)
	// Of 20,000 the prior takes nearly all that they say, and never more.
	if p.DF > d0 || p.DF < 0.88*d0 {
		t.Errorf("d0 = %.10g, want up to %d", p.DF, d0)
	}
	near(t, "s0²", p.Var, s0, 0.001)

	// No spread but chance's: the prior is sure.
	for i := range s2 {
		s2[i] = s0 * chi2(d) / d
	}
	p = Moderate(s2, df)
	if p.DF < 100 {
		t.Errorf("d0 = %g for equal variances", p.DF)
	}
	near(t, "s0²", p.Var, s0, 0.001)
	if _, d := p.Posterior(1, 5); d > p.Cap {
		t.Errorf("%g degrees of freedom from %g in all", d, p.Cap)
	}
}

// TestModerateDoubts: ten variances that are all alike, of two degrees of freedom
// each, do not make the common one known: their spread could be half a standard
// error, sqrt(2/9) of trigamma(1), without showing.
func TestModerateDoubts(t *testing.T) {
	p := Moderate(slices.Repeat([]float64{0.04}, 10), slices.Repeat([]float64{2}, 10))
	near(t, "trigamma(d0/2)", trigamma(p.DF/2), 0.5*math.Sqrt(2.0/9)*math.Pi*math.Pi/6, 1e-9)
}

func TestModerateNeedsNeighbours(t *testing.T) {
	for _, s2 := range [][]float64{nil, {1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}} {
		df := slices.Repeat([]float64{2}, len(s2))
		if p := Moderate(s2, df); p != (Prior{}) {
			t.Errorf("%v: %+v", s2, p)
		}
	}
	v, d := Prior{}.Posterior(0.5, 2)
	if v != 0.5 || d != 2 {
		t.Errorf("the zero prior changed the variance: %g %g", v, d)
	}
	p := Moderate([]float64{0, 1, 2, 3, 4, 1, 2, 5, 9, 1}, slices.Repeat([]float64{2}, 10))
	if !(p.Var > 0) || math.IsNaN(p.DF) {
		t.Errorf("one zero variance: %+v", p)
	}
}

// TestNominalAlpha compares with the table for equally spaced looks in Jennison
// and Turnbull (2000), table 2.1 (Pocock, alpha 0.05).
func TestNominalAlpha(t *testing.T) {
	for k, want := range map[int]float64{1: 1.960, 2: 2.178, 3: 2.289, 4: 2.361, 5: 2.413, 10: 2.555} {
		var looks []int
		for i := range k {
			looks = append(looks, (i+1)*7)
		}
		a := NominalAlpha(looks, 0.05)
		near(t, "alpha", a, math.Erfc(want/math.Sqrt2), 1e-4)
		near(t, "crossing", crossing(looks, want), 0.05, 1e-4)
	}
	design := NominalAlpha([]int{3, 4, 6, 8, 12, 16}, 0.05)
	near(t, "design's looks", design, 0.01404, 0.00002)
	// The same by drawing sums.
	r := rand.New(rand.NewPCG(5, 6))
	const draws = 200000
	c, out := math.Sqrt2*math.Erfinv(1-design), 0
	for range draws {
		sum, crossed := 0.0, false
		for n := 1; n <= 16; n++ {
			sum += r.NormFloat64()
			crossed = crossed || slices.Contains([]int{3, 4, 6, 8, 12, 16}, n) && math.Abs(sum) > c*math.Sqrt(float64(n))
		}
		if crossed {
			out++
		}
	}
	near(t, "drawn error rate", float64(out)/draws, 0.05, 0.002)
	if got := NominalAlpha([]int{16, 3, 4, 6, 6, 12, 8}, 0.05); got != design {
		t.Errorf("order of looks matters: %g, %g", got, design)
	}
	var each []int
	for i := range 200 {
		each = append(each, i+1)
	}
	if a := NominalAlpha(each, 0.05); a < 0.0005 || a > 0.01 {
		t.Errorf("200 looks: %g", a)
	}
}

func TestVerdicts(t *testing.T) {
	rule := NewRule(0.95, 0.05, 0.03, []int{3, 4, 6}, 0)
	for _, c := range []struct {
		lo, hi float64
		better record.Better
		want   Verdict
		stop   bool
	}{
		{1.10, 1.30, record.Lower, Slower, true},
		{1.10, 1.30, record.Higher, Faster, true},
		{0.70, 0.90, record.Lower, Faster, true},
		{0.70, 0.90, record.Higher, Slower, true},
		{1.10, 1.30, record.Neither, Higher, true},
		{0.70, 0.90, record.Neither, Lower, true},
		{0.98, 1.02, record.Lower, Equivalent, true},
		{1.01, 1.02, record.Lower, Equivalent, true},
		{1.01, 1.10, record.Lower, Slower, true},
		{0.965, 1.01, record.Lower, Undecided, true},
		{0.50, 2.00, record.Lower, Undecided, false},
	} {
		e := Estimate{Ratio: math.Sqrt(c.lo * c.hi), Lo: c.lo, Hi: c.hi, N: 4}
		v, why, stop := rule.Judge(e, c.better)
		if v != c.want || stop != c.stop || why == "" {
			t.Errorf("%g-%g %s: %s %v %q, want %s %v", c.lo, c.hi, c.better, v, stop, why, c.want, c.stop)
		}
	}
}

func TestBenjaminiHochberg(t *testing.T) {
	got := BenjaminiHochberg([]float64{0.04, 0.01, math.NaN(), 0.03, 0.5})
	want := []float64{0.16 / 3, 0.04, math.NaN(), 0.16 / 3, 0.5}
	for i := range want {
		if math.IsNaN(want[i]) != math.IsNaN(got[i]) || math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("q[%d] = %g, want %g", i, got[i], want[i])
		}
	}
}

func FuzzSummarise(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
	f.Add(0.0, -1.0, math.NaN(), math.Inf(1), 1e-320, 1e308)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g float64) {
		est := Compare([]Pair{{a, b}, {c, d}, {e, g}, {a, g}}, 0.95)
		if _, err := json.Marshal(est); err != nil {
			t.Fatal(err)
		}
		if est.HasInterval() && (est.Lo > est.Ratio || est.Ratio > est.Hi) {
			t.Fatalf("%+v", est)
		}
	})
}

// TestPOfLooks: a p-value over all looks falls under 5 % where the interval
// leaves out 1, and nowhere else; rises with the p-value of one look; and lies
// between that and the sum over the looks.
func TestPOfLooks(t *testing.T) {
	for _, r := range []Rule{
		NewRule(0.95, 0.05, 0.03, []int{3, 4, 6, 8, 12, 16}, 0),
		NewRule(0.95, 0.05, 0.03, []int{2, 10}, 0),
		NewRule(0.95, 0.05, 0.03, []int{5}, 0),
		NewRule(0.95, 0.05, 0.03, nil, 5),
	} {
		last := 1.0
		for x := 0.001; x < 60; x *= 1.02 {
			e := r.Estimate(Summary{N: 16, Mean: x, Var: 16, Base: 1, Value: math.Exp(x)}, Prior{DF: math.Inf(1), Var: 16, Cap: math.Inf(1)})
			p := r.P(e)
			if one := e.P(); p < one || p > one*float64(max(1, len(r.Looks))) || p > last {
				t.Fatalf("looks %v: p %g at %g, after %g; by itself %g", r.Looks, p, x, last, one)
			}
			if math.Abs(p-0.05) > 1e-5 && (p < 0.05) != (e.Lo > 1) {
				t.Fatalf("looks %v: p is %g and the interval begins at %g", r.Looks, p, e.Lo)
			}
			last = p
		}
		if !math.IsNaN(r.P(Estimate{N: 2, Ratio: 2})) {
			t.Error("a p-value without an interval")
		}
	}
}
