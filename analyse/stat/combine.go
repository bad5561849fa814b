package stat

import "math"

// Combine returns the geometric mean of several ratios, each estimated from its own blocks:
// the mean of the log-ratios, equally weighted, with the standard error
//
//	sqrt(SE1² + ... + SEk²) / k
//
// and a Student t interval whose degrees of freedom are those of F. E.
// Satterthwaite, "An approximate distribution of estimates of variance
// components", Biometrics Bulletin 2 (1946) 110, doi 10.2307/3002019. One estimate is
// returned as it is.
//
// The weights are equal and do not depend on the standard errors: a mean over the levels of
// a factor must not change its meaning with the noise of a level. It is a mean over exactly
// these ratios (the strata are the population, not a sample of it), so their differences are
// not part of the error.
//
// Combine assumes that the errors of the estimates are independent: each comes from other
// blocks, and so from other trials, also of the baseline. Ratios that share a baseline's
// trials are not independent: sum those up block by block first. Moderated variances are not
// independent either, because they share a prior, and those of the noisiest are too small;
// Rule.Part gives estimates without moderation. The degrees of freedom are never more than
// those of the unmoderated variances together, or of the best single moderated one.
//
// If one of the estimates has no ratio, neither has the result; the same holds for the
// interval.
func Combine(of []Estimate) Estimate {
	if len(of) == 1 {
		return of[0]
	}
	var out Estimate
	var base, value []float64
	var mean, variance, fourth, plain, best, miss, level float64
	whole := len(of) > 0
	k := float64(len(of))
	for _, e := range of {
		out.N += e.N
		out.Missing += e.Missing
		if e.Undefined != "" || !(e.Ratio > 0) {
			return Estimate{N: out.N, Undefined: "one of them has no ratio"}
		}
		base, value = append(base, e.Base), append(value, e.Value)
		mean += math.Log(e.Ratio) / k
		if whole = whole && e.HasInterval() && e.DF > 0; whole {
			v := e.SE * e.SE / (k * k)
			variance += v
			fourth += v * v / e.DF
			plain += float64(e.N - 1)
			best = math.Max(best, e.DF)
			miss += v * (1 - e.Confidence)
			level = math.Max(level, e.Confidence)
		}
	}
	if len(of) == 0 {
		out.Undefined = "there is nothing to combine"
		return out
	}
	out.Base, out.Value, out.Ratio = GeoMean(base), GeoMean(value), Exp(mean)
	if !whole {
		return out
	}
	out.SE, out.DF, out.Confidence = math.Sqrt(variance), math.Max(best, plain), level
	if fourth > 0 { // otherwise nothing varies, or too little for a float64
		out.DF, out.Confidence = math.Min(out.DF, variance*variance/fourth), 1-miss/variance
	}
	out.interval(mean)
	return out
}
