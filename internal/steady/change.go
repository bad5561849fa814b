package steady

import (
	"math"
	"slices"
)

// state is the behaviour of a part of a series.
type state int

const (
	rests state = iota
	moves
	unclear
)

// judgement is the result for some points: the shape that explains most of their change.
type judgement struct {
	state state
	batch int     // points in a batch
	step  int     // the first batch after the step; 0: another shape explains more
	jump  float64 // from before to after the step, or from end to end; relative to the mean
	small bool    // the jump is within the tolerance
}

const (
	// clip, in robust standard deviations, is where outliers are cut off: a larger spike is an
	// event, not a change of the level.
	clip = 5
	// strong is how many standard errors are added to the estimated autocorrelation before
	// points count as moving. By simulation (steady_test.go): at most 5 % of series with a
	// fixed level count so, at any autocorrelation.
	strong = 3.8
	// F must also be above least divided by the square of the number of batches: with few
	// batches, a slow wander leaves residuals that look independent.
	least = 2500
)

// judge looks for a change of the level. The statistic is F, the variance that the best
// line or step explains over the residual variance. Its distribution without a change depends
// on the number of batches and on their autocorrelation. That is estimated from the
// residuals, because a change would add to the autocorrelation of the values, and corrected
// for the fit.
func judge(v []float64, tolerance float64) judgement {
	size := (len(v) + maxBatches - 1) / maxBatches
	b := clipped(batches(v, size))
	j := judgement{batch: size}
	m := mean(b)
	f := fit(b)
	if m == 0 || f.total <= 1e-18*m*m*float64(len(b)) { // constant except for rounding
		j.small = true
		return j
	}
	j.step, j.jump = f.step, f.jump/m
	if math.Abs(j.jump) <= tolerance {
		j.small = true // the change does not matter
		return j
	}
	k := float64(len(b))
	rho := f.rho + (3+8*f.rho)/k
	switch {
	case f.explained <= limit(rho, k, 2.6)*f.left:
	case f.explained > max(least/(k*k), limit(rho+strong*math.Sqrt(max(0, 1-f.rho*f.rho)/k), k, 1.3))*f.left:
		j.state = moves
	default:
		j.state = unclear
	}
	return j
}

// limit is the 95 % quantile of F for k batch means with a fixed level and first-order
// autocorrelation rho. The curve was fitted to simulations with 8 to 64 batches and rho of 0
// to 0.99: bend 2.6. A smaller bend gives a higher limit at high rho.
func limit(rho, k, bend float64) float64 {
	rho = min(max(rho, 0), 0.98)
	x := (1 + rho) / (1 - rho) / k
	return 10.5 * x / (1 + bend*x)
}

// fitted is the best shape through some values.
type fitted struct {
	total, explained, left float64 // sums of squares
	step                   int
	jump                   float64
	rho                    float64 // of the residuals, lag 1
}

// fit tries a line, decays from the beginning (a warm-up) and a step at every
// place.
func fit(b []float64) fitted {
	n := len(b)
	m := mean(b)
	out := fitted{total: squares(b)}
	shape, scale := make([]float64, n), 0.0 // the best shape, and its factor
	try := func(f func(i int) float64) {
		x := make([]float64, n)
		for i := range x {
			x[i] = f(i)
		}
		xm, xx, xy := mean(x), squares(x), 0.0
		for i := range x {
			x[i] -= xm
			xy += x[i] * (b[i] - m)
		}
		if g := xy * xy / xx; g > out.explained {
			shape, scale = x, xy/xx
			out.explained, out.jump = g, scale*(x[n-1]-x[0])
		}
	}
	try(func(i int) float64 { return float64(i) })
	for _, part := range []float64{4, 8, 16} {
		try(func(i int) float64 { return -math.Exp(-float64(i) * part / float64(n)) })
	}
	// A step needs some values on either side. Otherwise every outlier at an edge is a step.
	edge := max(3, n/8)
	sum := 0.0
	for i := 1; i <= n-edge; i++ {
		sum += b[i-1] - m
		if i < edge {
			continue
		}
		before, after := float64(i), float64(n-i)
		if g := sum * sum * float64(n) / (before * after); g > out.explained {
			out.explained, out.step, out.jump = g, i, -sum*float64(n)/(before*after)
		}
	}
	rest := slices.Clone(b)
	for i := range rest {
		switch {
		case out.step == 0:
			rest[i] -= scale * shape[i]
		case i >= out.step:
			rest[i] -= out.jump
		}
	}
	out.left = max(0, out.total-out.explained)
	out.rho = lag(rest, 1)
	return out
}

// clipped returns b without spikes. A value that lies beyond both medians, of the seven
// values before and of the seven after, on the same side, by more than clip robust standard
// deviations (1.4826 times the median absolute deviation from the median of the
// neighbourhood), is moved to that distance. Comparison with the median of all values, or of
// the neighbourhood, was rejected: it would cut off one side of a step, or the end of a steep
// beginning.
func clipped(b []float64) []float64 {
	const beside, near = 7, 3
	n := len(b)
	off := make([]float64, n)
	for i, x := range b {
		off[i] = math.Abs(x - median(slices.Clone(b[max(0, i-near):min(n, i+near+1)])))
	}
	far := clip * 1.4826 * median(off)
	if far == 0 { // more than half are the same
		return b
	}
	out := slices.Clone(b)
	for i := 1; i < n-1; i++ {
		before := median(slices.Clone(b[max(0, i-beside):i]))
		after := median(slices.Clone(b[i+1 : min(n, i+1+beside)]))
		out[i] = min(max(b[i], min(before, after)-far), max(before, after)+far)
	}
	return out
}

// batches returns the means of successive batches. The last batch takes the remainder.
func batches(v []float64, size int) []float64 {
	n := len(v) / size
	out := make([]float64, n)
	for i := range out {
		end := (i + 1) * size
		if i == n-1 {
			end = len(v)
		}
		out[i] = mean(v[i*size : end])
	}
	return out
}

func mean(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

// squares returns the sum of squared deviations from the mean.
func squares(v []float64) float64 {
	m, s := mean(v), 0.0
	for _, x := range v {
		s += (x - m) * (x - m)
	}
	return s
}

// median sorts s, which is not empty.
func median(s []float64) float64 {
	slices.Sort(s)
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
