package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

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
		s := Summarise(slices.Repeat([]Pair{{1, 3}}, n))
		e := rule.Estimate(s, Prior{DF: 10, Var: 0.01, Cap: 100})
		v, why := rule.Judge(e, record.Lower)
		if e.HasInterval() || v != Undecided {
			t.Errorf("n = %d: %+v %s", n, e, v)
		}
		if n > 0 && rule.Enough(s, Prior{}) || !strings.Contains(why, "need n >= 3") {
			t.Errorf("n = %d: %q", n, why)
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
	var vs []Variance
	for range 20000 {
		sigma2 := d0 * s0 / chi2(d0)
		vs = append(vs, Variance{S2: sigma2 * chi2(d) / d, DF: d})
	}
	p := Predict(vs, "")
	// Of 20,000 the prior takes nearly all that they say, and never more.
	if p.DF > d0 || p.DF < 0.88*d0 {
		t.Errorf("d0 = %.10g, want up to %d", p.DF, d0)
	}
	near(t, "s0²", p.Var, s0, 0.001)

	// No spread but chance's: the prior is sure.
	for i := range vs {
		vs[i].S2 = s0 * chi2(d) / d
	}
	p = Predict(vs, "")
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
	p := Predict(slices.Repeat([]Variance{{S2: 0.04, DF: 2}}, 10), "")
	near(t, "trigamma(d0/2)", trigamma(p.DF/2), 0.5*math.Sqrt(2.0/9)*math.Pi*math.Pi/6, 1e-9)
}

func TestModerateNeedsNeighbours(t *testing.T) {
	for _, s2 := range [][]float64{nil, {1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}} {
		for i, p := range Moderate(ofTwo(s2)) {
			if p != (Prior{}) {
				t.Errorf("%v, %d: %+v", s2, i, p)
			}
		}
	}
	v, d := Prior{}.Posterior(0.5, 2)
	if v != 0.5 || d != 2 {
		t.Errorf("the zero prior changed the variance: %g %g", v, d)
	}
	for _, p := range Moderate(ofTwo([]float64{0, 1, 2, 3, 4, 1, 2, 5, 9, 1})) {
		if !(p.Var > 0) || math.IsNaN(p.DF) {
			t.Errorf("one zero variance: %+v", p)
		}
	}
}

// ofTwo are variances with two degrees of freedom.
func ofTwo(s2 []float64) []Variance {
	var out []Variance
	for _, v := range s2 {
		out = append(out, Variance{S2: v, DF: 2})
	}
	return out
}

// TestModerateByGroup: a noisy workload does not widen the quiet ones, and a comparison
// that is alone in its group hears of all others how wide that may be.
func TestModerateByGroup(t *testing.T) {
	var vs []Variance
	for i := range 40 {
		v := Variance{S2: 1e-4 * math.Exp(0.2*float64(i%5-2)), DF: 3, Group: "quiet" + string(rune('0'+i/10))}
		if i >= 30 {
			v.S2, v.Group = 1e2*v.S2, "noisy"
		}
		vs = append(vs, v)
	}
	vs = append(vs, Variance{S2: 1e-4, DF: 3, Group: "alone"})
	p := Moderate(vs)
	for i := range 40 {
		want := 1e-4
		if i >= 30 {
			want = 1e-2
		}
		if r := p[i].Var / want; r < 0.4 || r > 2.5 {
			t.Errorf("%d: %g is expected of a variance of %g", i, p[i].Var, vs[i].S2)
		}
		if p[i].DF < 6 {
			t.Errorf("%d: %g degrees of freedom of a group that agrees", i, p[i].DF)
		}
	}
	if alone := p[40]; alone.DF <= 0 || alone.DF > 2 {
		t.Errorf("alone: %+v", alone)
	}
	if q := Predict(vs, "noisy"); q.Var < 4e-3 || Predict(vs, "another").Var > q.Var {
		t.Errorf("one more that is noisy: %+v", q)
	}
}

func TestVerdicts(t *testing.T) {
	rule := NewRule(0.95, 0.015, 0.03, []int{3, 4, 6}, 0)
	for _, c := range []struct {
		lo, hi float64
		n      int
		better record.Better
		want   Verdict
	}{
		{1.10, 1.30, 5, record.Lower, Slower},
		{1.10, 1.30, 5, record.Higher, Faster},
		{0.70, 0.90, 5, record.Lower, Faster},
		{0.70, 0.90, 5, record.Higher, Slower},
		{1.10, 1.30, 5, record.Neither, Higher},
		{0.70, 0.90, 5, record.Neither, Lower},
		{0.98, 1.02, 3, record.Lower, Equivalent},
		{1.01, 1.02, 3, record.Lower, Equivalent},
		{1.01, 1.20, 3, record.Lower, Slower}, // within 10 % either way
		{1.50, 1.90, 3, record.Lower, Slower}, // within a quarter of the effect
		{1.10, 1.40, 4, record.Lower, Undecided},
		{0.10, 0.60, 3, record.Lower, Undecided},
		{0.965, 1.01, 9, record.Lower, Undecided},
		{0.50, 2.00, 9, record.Lower, Undecided},
	} {
		e := Estimate{Ratio: math.Sqrt(c.lo * c.hi), Lo: c.lo, Hi: c.hi, N: c.n}
		if v, why := rule.Judge(e, c.better); v != c.want || why == "" {
			t.Errorf("%g-%g of %d, %s: %s %q, want %s", c.lo, c.hi, c.n, c.better, v, why, c.want)
		}
	}
}

// TestEnough: a comparison stops by how narrow its interval is, and by how large the
// first block showed the effect to be, whatever the mean is.
func TestEnough(t *testing.T) {
	rule := NewRule(0.95, 0.015, 0.03, []int{3, 4, 6}, 0)
	sure := Prior{DF: math.Inf(1), Var: 1e-3, Cap: math.Inf(1)} // half-widths of 3.2 % to 0.6 %
	for _, c := range []struct {
		n           int
		mean, first float64
		want        bool
	}{
		{3, 0, 0, false}, {3, 1, 1, false}, // not before four blocks
		{4, 1, 0, false}, {4, 0, 0.3, false}, {4, 0, 0.4, true}, {4, 0, -0.4, true},
		{6, 0, 0, false}, {6, 1, 0, false}, {6, 0, 1, true}, {6, 1, -1, true}, {6, 1, 0.1, false}, {6, 1, 0.12, true},
		{30, 0, 0, true}, {30, 1, 0, true},
	} {
		s := Summary{N: c.n, Mean: c.mean, Base: 1, Value: math.Exp(c.mean), First: Pair{1, math.Exp(c.first)}}
		if got := rule.Enough(s, sure); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if zero := Summarise([]Pair{{0, 0}}); !rule.Enough(zero, Prior{}) {
		t.Error("more blocks of zeros")
	}
}

// TestPart leaves the first block out where it decided how many there are.
func TestPart(t *testing.T) {
	pairs := []Pair{{1, 4}, {2, 2.2}, {3, 3.1}, {4, 4.1}, {5, 5.6}, {6, 6.3}, {7, 7.7}}
	same := func(r Rule, of, want []Pair) {
		t.Helper()
		got := r.Part(Summarise(of), Prior{})
		e := Summarise(want).Estimate(Prior{}, got.Confidence)
		near(t, "ratio", got.Ratio, e.Ratio, 1e-9)
		near(t, "low end", got.Lo, e.Lo, 1e-9)
		near(t, "base", got.Base, e.Base, 1e-9)
		near(t, "value", got.Value, e.Value, 1e-9)
		if got.N != e.N {
			t.Errorf("%d blocks, want %d", got.N, e.N)
		}
	}
	looks := NewRule(0.95, 0.02, 0.03, []int{3, 4, 6, 8}, 0)
	same(looks, pairs, pairs[1:])
	same(looks, pairs[:4], pairs[1:4])
	same(looks, pairs[:3], pairs[:3])
	same(NewRule(0.95, 0, 0.03, nil, 7), pairs, pairs)

	// Its level is that of the comparison's own interval, whose scatter decides.
	for _, of := range [][]Pair{{{1, 1}, {1, 1.001}, {1, 1.002}, {1, 1}}, {{1, 1}, {1, 2}, {1, 3}, {1, 4}}} {
		s := Summarise(of)
		near(t, "level", looks.Part(s, Prior{}).Confidence, looks.Estimate(s, Prior{}).Confidence, 0)
	}
}

// TestCombineLevels: a mean of intervals with different levels has the level of those that
// make up its error.
func TestCombineLevels(t *testing.T) {
	noisy := Estimate{Ratio: 1, Lo: 0.9, Hi: 1.1, N: 5, SE: 0.1, DF: 4, Confidence: 0.95}
	quiet := Estimate{Ratio: 1, Lo: 0.999, Hi: 1.001, N: 5, SE: 0.001, DF: 4, Confidence: 0.99}
	near(t, "noisy and quiet", Combine([]Estimate{noisy, quiet}).Confidence, 0.95, 1e-5)
	noisy.Confidence = 0.97
	quiet.SE = 0.1
	near(t, "alike", Combine([]Estimate{noisy, quiet}).Confidence, 0.98, 1e-12)
	noisy.SE, quiet.SE = 0, 0
	near(t, "no scatter", Combine([]Estimate{noisy, quiet}).Confidence, 0.99, 1e-12)
}

// TestPosterior: the others move a variance by a quarter of what they are worth beyond four
// degrees of freedom.
func TestPosterior(t *testing.T) {
	for _, c := range []struct{ prior, v, df float64 }{
		{3, 9, 4}, {4, 9, 4}, {20, 5, 64. / (4 + 16./20)}, {math.Inf(1), 1, 80},
	} {
		v, df := Prior{DF: c.prior, Var: 1, Cap: 80}.Posterior(9, 4)
		near(t, "variance", v, c.v, 1e-12)
		near(t, "degrees of freedom", df, c.df, 1e-12)
	}
	v, df := Prior{DF: 12, Var: 1, Cap: 80}.Whole(9, 4)
	near(t, "whole variance", v, 3, 1e-12)
	near(t, "whole degrees of freedom", df, 16, 1e-12)
}

// TestQuarters: with few blocks, the intervals of the comparisons that scatter most hold the
// truth as often as those of the comparisons that scatter least. The spread is that of real
// trials.
func TestQuarters(t *testing.T) {
	const rows = 60
	r := rand.New(rand.NewPCG(8, 9))
	for _, n := range []int{3, 5} {
		var hits [2]float64
		const studies = 100
		for range studies {
			sd := make([]float64, rows)
			for i := range sd {
				sd[i] = math.Exp(1.7 / 2 * r.NormFloat64())
			}
			slices.Sort(sd)
			var vs []Variance
			var means []float64
			for i := range sd {
				d := make([]float64, n)
				for j := range d {
					d[j] = sd[i] * r.NormFloat64()
				}
				mean, v := meanVar(d)
				means, vs = append(means, mean), append(vs, Variance{S2: v, DF: float64(n - 1)})
			}
			for i, prior := range Moderate(vs) {
				v, df := prior.Posterior(vs[i].S2, vs[i].DF)
				if math.Abs(means[i]) > Student(df).Quantile(0.975)*math.Sqrt(v/float64(n)) {
					continue
				}
				switch quarter := 4 * i / rows; quarter {
				case 0, 3:
					hits[quarter/3]++
				}
			}
		}
		for k, name := range []string{"quietest", "noisiest"} {
			share := hits[k] / (studies * rows / 4)
			if chance := 3 * math.Sqrt(0.95*0.05/(studies*rows/4)); share < 0.94-chance || share > 0.97+chance {
				t.Errorf("%d blocks: %.1f %% of the %s quarter are covered", n, 100*share, name)
			}
		}
	}
}

// TestBlocks: as many blocks as the table of Student's t says, and no fewer do.
func TestBlocks(t *testing.T) {
	fixed := NewRule(0.95, 0, 0.03, nil, 5)
	for _, c := range []struct {
		sd, width float64
		want      int
	}{
		{0, 0.01, 3}, {0.001, 0.01, 3}, {0.1, 0.05, 19}, {0.1, 0.01, 391}, {0.03, 0.03, 7}, {1000, 0.01, 0},
	} {
		got := fixed.Blocks(c.sd, c.width)
		if got != c.want || got > MinN && (fixed.HalfWidth(c.sd, got) > c.width || fixed.HalfWidth(c.sd, got-1) <= c.width) {
			t.Errorf("%+v: %d blocks, %g wide, %g with one less", c, got, fixed.HalfWidth(c.sd, got), fixed.HalfWidth(c.sd, got-1))
		}
	}
	if NewRule(0.95, 0, 0.03, []int{3, 4}, 0).Blocks(0.1, 0.05) <= fixed.Blocks(0.1, 0.05) {
		t.Error("a study that chooses when to stop needs no more blocks")
	}
}

// TestShrunk: of many effects around 0.1 that are called, the mean is exaggerated, and the
// corrected one is less so; a clear effect keeps its size.
func TestShrunk(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var n, plain, shrunk float64
	for range 20000 {
		var pairs []Pair
		for range 5 {
			pairs = append(pairs, Pair{1, math.Exp(0.1 + 0.1*r.NormFloat64())})
		}
		if e := Compare(pairs, 0.95); e.Lo > 1 {
			n, plain, shrunk = n+1, plain+math.Log(e.Ratio), shrunk+math.Log(e.Shrunk)
			if e.Shrunk > e.Ratio || e.Shrunk < 1 {
				t.Fatalf("%+v", e)
			}
		} else if e.HasInterval() && e.Hi > 1 && e.Shrunk != 0 {
			t.Fatalf("not called, and corrected: %+v", e)
		}
	}
	t.Logf("true effect 0.1; of those called %.3f, corrected %.3f", plain/n, shrunk/n)
	if a, b := plain/n-0.1, math.Abs(shrunk/n-0.1); a < 0.02 || b > a/2 {
		t.Errorf("called effects are off by %.3f, corrected by %.3f", a, b)
	}
	clear := Summary{N: 5, Mean: 1, Var: 1e-4, Base: 1, Value: math.E}.Estimate(Prior{DF: 50, Var: 1e-4, Cap: 60}, 0.95)
	near(t, "clear", clear.Shrunk, clear.Ratio, 1e-6)
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

// TestRuleP: the p-value of a rule falls under 5 % where the interval leaves out 1,
// and nowhere else; it rises with the p-value of a plain test, and is four times as large at most.
func TestRuleP(t *testing.T) {
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
			if one := e.P(); p < one-1e-12 || p > 4*one || p > last+1e-12 {
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

// TestMedianRank: the ranks of the sign test are those of Conover's table A3, n = 6 to 24.
func TestMedianRank(t *testing.T) {
	for n, want := range map[int]int{1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 12: 3, 20: 6, 24: 7} {
		if got := MedianRank(n, 0.95); got != want {
			t.Errorf("n %d: rank %d, want %d", n, got, want)
		}
	}
}

// TestFitLine: slope and intercept are gonum's, and their errors those that follow by hand.
func TestFitLine(t *testing.T) {
	x, y := []float64{1, 2, 3, 4, 5}, []float64{2.1, 3.9, 6.2, 7.8, 10.1}
	l := FitLine(x, y)
	intercept, slope := stat.LinearRegression(x, y, nil, false)
	// The residuals' sum of squares is 0.107, of which three degrees of freedom are left; Sxx is 10, the mean of x 3.
	s := math.Sqrt(0.107 / 3)
	for what, pair := range map[string][2]float64{"slope": {l.Slope, slope}, "intercept": {l.Intercept, intercept},
		"slope's error": {l.SlopeError, s / math.Sqrt(10)}, "intercept's error": {l.InterceptError, s * math.Sqrt(1.0/5+9.0/10)}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if l := FitLine([]float64{1, 1, 1}, []float64{1, 2, 3}); !math.IsNaN(l.Slope) {
		t.Errorf("a line through equal x: %+v", l)
	}
}
