// Package stat holds the statistics of a comparison: the ratio of a treatment's values to the
// baseline's of the same blocks, its interval, and the verdict. It knows nothing of studies
// or trials.
//
// The data path: 1. Summarise turns the pairs of one comparison (one pair a
// block) into the mean and variance of their log-ratios; 2. Moderate estimates the spread of
// variances from all comparisons of a study; 3. Rule.Estimate turns a summary and its Prior
// into a ratio with its interval; 4. Rule.Enough decides whether measuring may stop;
// 5. Rule.Judge gives the verdict and the reason.
//
// It uses log-ratios within a block, because on a machine that drifts both values of a pair
// drift together, and because costs multiply: 2 and 1/2 are equally far from 1.
package stat

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tare/record"
)

// MinN is the number of pairs below which there is no interval. Two pairs have one degree of
// freedom: their 95 % interval is 12.7 standard errors to either side, which should not be
// mistaken for a measurement.
const MinN = 3

// Pair is the values of one block for one comparison, in base units. NaN or an infinity means
// that a value is missing.
type Pair struct{ Base, Other float64 }

// Pairs returns the pairs of the blocks in which both have a value, in the order of blocks.
func Pairs(base, own map[int]float64) []Pair {
	var out []Pair
	for _, block := range slices.Sorted(maps.Keys(own)) {
		if b, ok := base[block]; ok {
			out = append(out, Pair{Base: b, Other: own[block]})
		}
	}
	return out
}

// Summary summarises one comparison's pairs. If there is no ratio, Undefined says why, and
// Mean and Var are zero.
type Summary struct {
	N         int        // complete pairs
	Missing   int        // pairs with a value that is NaN or infinite
	Mean      float64    // of ln(Other/Base)
	Var       float64    // sample variance of it, 0 for N < 2
	Base      float64    // the baseline's level: geometric mean, the median if Undefined
	Value     float64    // the treatment's level, likewise
	First     Pair       // the first complete pair
	Opening   [MinN]Pair // the first complete pairs, if N is at least as many
	Undefined string
}

// first returns ln(Other/Base) of the first complete pair.
func (s Summary) first() float64 { return math.Log(s.First.Other) - math.Log(s.First.Base) }

// withoutFirst returns the summary without the first pair. It needs three pairs.
func (s Summary) withoutFirst() Summary {
	if s.Undefined != "" || s.N < 3 {
		return s
	}
	n, d := float64(s.N), s.first()-s.Mean
	s.Var = math.Max(0, (s.Var*(n-1)-d*d*n/(n-1))/(n-2))
	s.Mean -= d / (n - 1)
	rest := func(mean, first float64) float64 {
		return Exp((n*math.Log(mean) - math.Log(first)) / (n - 1))
	}
	s.Base, s.Value = rest(s.Base, s.First.Base), rest(s.Value, s.First.Other)
	s.N, s.First = s.N-1, Pair{}
	return s
}

// Summarise summarises one comparison. The order of the pairs decides only which is First. A
// zero or negative value makes the whole ratio undefined, not only its block: leaving out the
// blocks in which a count was zero would bias the ratio.
func Summarise(pairs []Pair) Summary {
	var base, other []float64
	for _, p := range pairs {
		if finite(p.Base) && finite(p.Other) {
			base = append(base, p.Base)
			other = append(other, p.Other)
		}
	}
	s := Summary{N: len(base), Missing: len(pairs) - len(base)}
	if s.N == 0 {
		s.Undefined = "no block has a value of both"
		return s
	}
	s.First = Pair{Base: base[0], Other: other[0]}
	for i := 0; s.N >= MinN && i < MinN; i++ {
		s.Opening[i] = Pair{Base: base[i], Other: other[i]}
	}
	if why := nonPositive(base, other); why != "" {
		s.Undefined = why
		s.Base, s.Value = Median(base), Median(other)
		return s
	}
	d := make([]float64, s.N)
	for i := range d {
		// The difference of logarithms, not the logarithm of the quotient: the
		// quotient of two finite numbers may overflow.
		d[i] = math.Log(other[i]) - math.Log(base[i])
	}
	s.Mean, s.Var = meanVar(d)
	s.Base, s.Value = GeoMean(base), GeoMean(other)
	return s
}

func nonPositive(base, other []float64) string {
	var b, o, both, neg int
	for i := range base {
		if base[i] < 0 || other[i] < 0 {
			neg++
		}
		switch {
		case base[i] <= 0 && other[i] <= 0:
			both++
		case base[i] <= 0:
			b++
		case other[i] <= 0:
			o++
		}
	}
	n := len(base)
	switch {
	case b+o+both == 0:
		return ""
	case neg > 0:
		return fmt.Sprintf("a value is negative in %d of %d blocks, and a negative value has no ratio", neg, n)
	case both == n:
		return "both are zero"
	case b+both == n:
		return "the baseline is zero"
	case o+both == n:
		return "the value is zero"
	}
	return fmt.Sprintf("a value is zero in %d of %d blocks", b+o+both, n)
}

// meanVar sorts first, so that the sums do not depend on the order of the blocks.
func meanVar(d []float64) (mean, variance float64) {
	d = slices.Clone(d)
	slices.Sort(d)
	for _, x := range d {
		mean += x
	}
	mean /= float64(len(d))
	if len(d) < 2 {
		return mean, 0
	}
	for _, x := range d {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / float64(len(d)-1)
}

// GeoMean returns the geometric mean of positive values; NaN without values or if one is not
// positive. Of equal values it is that value exactly, which a logarithm and its inverse would lose.
func GeoMean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Clone(v)
	slices.Sort(v)
	if v[0] > 0 && v[0] == v[len(v)-1] {
		return v[0]
	}
	sum := 0.0
	for _, x := range v {
		if !(x > 0) {
			return math.NaN()
		}
		sum += math.Log(x)
	}
	// Rounding may exceed the largest number.
	return math.Min(math.Exp(sum/float64(len(v))), math.MaxFloat64)
}

// Median returns the middle value, or the mean of the middle two; NaN without values.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Clone(v)
	slices.Sort(v)
	m := len(v) / 2
	if len(v)%2 == 1 {
		return v[m]
	}
	return v[m-1] + (v[m]-v[m-1])/2
}

// Line is a straight line through points, by least squares, with the standard errors of its parts. The
// residuals have len(x)-2 degrees of freedom.
type Line struct{ Intercept, InterceptError, Slope, SlopeError float64 }

// FitLine fits a line to three points or more (N. R. Draper and H. Smith, Applied Regression Analysis, 3rd
// edition, section 1.4). All is NaN if all x are equal, or there are fewer points.
func FitLine(x, y []float64) Line {
	n := float64(len(x))
	mx, _ := meanVar(x)
	my, _ := meanVar(y)
	var sxx, sxy, rest float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	l := Line{Slope: sxy / sxx}
	l.Intercept = my - l.Slope*mx
	for i := range x {
		d := y[i] - l.Intercept - l.Slope*x[i]
		rest += d * d
	}
	s := math.Sqrt(rest / (n - 2))
	l.SlopeError, l.InterceptError = s/math.Sqrt(sxx), s*math.Sqrt(1/n+mx*mx/sxx)
	return l
}

// MedianRank is the rank from both ends of n sorted values between which the median lies with this confidence: the
// largest k for which 2 P(Binomial(n, 1/2) < k) <= 1 - confidence; 0 if the values are too few. It holds for
// any distribution (W. J. Conover, Practical Nonparametric Statistics, section 3.2).
func MedianRank(n int, confidence float64) int {
	tail, term := 0.0, math.Pow(0.5, float64(n))
	for k := 0; ; k++ {
		if tail += term; 2*tail > 1-confidence || k > n {
			return k
		}
		term *= float64(n-k) / float64(k+1)
	}
}

// Estimate is a ratio to the baseline and its interval. Zero means that there is no ratio:
// a true ratio is positive, and JSON has no NaN.
type Estimate struct {
	Ratio      float64 `json:"ratio,omitempty"`      // Value/Base: geometric mean of the blocks' ratios
	Lo         float64 `json:"lo,omitempty"`         // of the interval
	Hi         float64 `json:"hi,omitempty"`         //
	N          int     `json:"n"`                    // complete pairs
	Missing    int     `json:"missing,omitempty"`    // incomplete pairs
	Base       float64 `json:"base"`                 // level of the baseline in the complete pairs, geometric mean
	Value      float64 `json:"value"`                // level of the treatment in them
	SE         float64 `json:"se,omitempty"`         // standard error of ln(Ratio), moderated
	DF         float64 `json:"df,omitempty"`         // its degrees of freedom, moderated
	Confidence float64 `json:"confidence,omitempty"` // nominal, of this interval alone; see Rule
	Shrunk     float64 `json:"shrunk,omitempty"`     // the ratio corrected for having been called; 0 if the interval contains 1
	Undefined  string  `json:"undefined,omitempty"`  // why there is no ratio

	// Bound is the share of the baseline above which there is surely no cost, of an
	// undecided estimate for which that is worth saying; 0 otherwise. See Rule.Bound.
	Bound float64 `json:"no_cost_above,omitempty"`
}

// HasInterval reports whether the estimate has an interval.
func (e Estimate) HasInterval() bool { return e.Lo > 0 }

// Cost returns the ratio and its interval as costs, of which more is worse: for what is
// better when it is higher, such as a rate, these are the inverse ratios.
func (e Estimate) Cost(better record.Better) (cost, lo, hi float64) {
	if better != record.Higher || !(e.Ratio > 0) {
		return e.Ratio, e.Lo, e.Hi
	}
	if e.HasInterval() {
		lo, hi = 1/e.Hi, 1/e.Lo
	}
	return 1 / e.Ratio, lo, hi
}

// HalfWidth returns the interval's relative half-width: 0.05 is 5 % either way. It is +Inf
// without an interval.
func (e Estimate) HalfWidth() float64 {
	if !e.HasInterval() {
		return math.Inf(1)
	}
	return math.Sqrt(e.Hi/e.Lo) - 1
}

// Estimate returns the ratio with a Student t interval at the given confidence
// (0.95). Its variance is moderated by prior; the zero Prior gives the ordinary interval.
func (s Summary) Estimate(prior Prior, confidence float64) Estimate {
	e := Estimate{N: s.N, Missing: s.Missing, Base: s.Base, Value: s.Value, Undefined: s.Undefined}
	if s.Undefined != "" {
		return e
	}
	e.Ratio = Exp(s.Mean)
	if s.N < MinN {
		return e
	}
	v, df := prior.Posterior(s.Var, float64(s.N-1))
	e.SE, e.DF, e.Confidence = math.Sqrt(v/float64(s.N)), df, confidence
	e.interval(s.Mean)
	return e
}

// interval fills in the fields that follow from a mean of log-ratios and its standard error.
func (e *Estimate) interval(mean float64) {
	half := Student(e.DF).Quantile(0.5+e.Confidence/2) * e.SE
	e.Lo, e.Hi = Exp(mean-half), Exp(mean+half)
	if math.Abs(mean) > half {
		e.Shrunk = Exp(mean * shrinkage(math.Abs(mean)/e.SE, e.DF, e.Confidence))
	}
}

// shrinkage is the part of an effect that remains when it is corrected for having been
// called: an effect is more likely to be called if it came out large. t is the effect in
// standard errors, above the quantile of the confidence. The maximum of the likelihood
// given that the interval excludes 0 (L. V. Hedges, J. Educ. Stat. 9 (1984) 61) corrects
// too much if the effect is barely called, so it is averaged with the plain mean (H.
// Zhong and R. L. Prentice, Biostatistics 9 (2008) 621, section 2.2). Both use normal
// deviates with the tail probabilities of Student's t.
func shrinkage(t, df, confidence float64) float64 {
	normal := distuv.UnitNormal
	z, c := -normal.Quantile(Student(df).Survival(t)), normal.Quantile(0.5+confidence/2)
	if !(z < c+6) { // the correction is below a millionth
		return 1
	}
	// expected returns the mean of a normal deviate around mu, given that it is beyond c.
	expected := func(mu float64) float64 {
		return mu + (normal.Prob(c-mu)-normal.Prob(c+mu))/(normal.Survival(c-mu)+normal.Survival(c+mu))
	}
	lo, hi := 0.0, z
	for range 50 {
		if mu := (lo + hi) / 2; expected(mu) < z {
			lo = mu
		} else {
			hi = mu
		}
	}
	weight := 1 / (1 + (z-lo)*(z-lo)) // of the plain mean
	return weight + (1-weight)*lo/z
}

// Compare is Summarise and Estimate without a prior, for one comparison by itself.
func Compare(pairs []Pair, confidence float64) Estimate {
	return Summarise(pairs).Estimate(Prior{}, confidence)
}

// Exp returns e^x, bounded to positive finite numbers.
func Exp(x float64) float64 { return math.Exp(math.Max(-700, math.Min(700, x))) }

// Student returns Student's t distribution with these degrees of freedom, +Inf included.
// Beyond 1e6 it returns the normal distribution, which is the same to nine digits and needs no
// beta inversion for quantiles.
func Student(df float64) interface {
	Quantile(p float64) float64
	Survival(t float64) float64
} {
	if df > 1e6 {
		return distuv.UnitNormal
	}
	return student{distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
