package stat

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Nested says how the variance of a block's mean depends on the number of its turns.
type Nested struct {
	starts float64 // variance between starts, in that of a single turn
	size   float64 // turns of a block, on average
}

// What is known of the two levels before anything is measured: ln(starts) has about this mean and
// variance. They are those of 24 rows of real results on a busy machine with two processors. Three
// blocks of two turns alone say little: the variance of ln F is 2.6.
const (
	startsBefore = 0.4
	spreadBefore = 0.5
)

// Nest estimates both levels for comparisons that share their baseline, each given as the values of
// the turns of its blocks; turns is the number that they have if none tells. It pools the logarithms of
// their ratios of mean squares (whose mean and variance Fisher's z has), and weighs them against
// what is known before.
func Nest(comparisons [][][]float64, turns int) Nested {
	n, e, known, size := 0.0, 0.0, 0.0, 0.0
	for _, groups := range comparisons {
		v := oneWay(groups)
		if v.groups < MinGroups || v.df2 < 2 || v.between*v.df1 <= v.tiny && v.within*v.df2 <= v.tiny {
			continue
		}
		a, b := v.df1/2, v.df2/2
		ln := math.Log(math.Max(v.between, v.tiny)) - math.Log(math.Max(v.within, v.tiny))
		n++
		e += ln - (mathext.Digamma(a) - math.Log(a)) + mathext.Digamma(b) - math.Log(b)
		known += trigamma(a) + trigamma(b)
		size += v.size
	}
	if n == 0 {
		return Nested{starts: startsBefore, size: float64(turns)}
	}
	size /= n
	// All share the baseline, so that half of the scatter of each is common to all.
	noise := known / n * (1 + 1/n) / 2
	before := math.Log1p(size * startsBefore)
	ln := (before*noise + e/n*spreadBefore) / (noise + spreadBefore)
	return Nested{starts: math.Max(math.Expm1(ln), 0) / size, size: size}
}

// Relative is the variance of the mean of a block with so many turns, in that of the blocks so far.
func (l Nested) Relative(turns int) float64 {
	return (l.starts + 1/float64(turns)) / (l.starts + 1/l.size)
}

// Width is the half-width of an interval from some blocks as they were so far and more of so many turns,
// in standard deviations of a block so far. It is W. G. Cochran's optimum ("Sampling Techniques", 3rd
// edition 1977, section 10.6) with Student's t, because few blocks tell little about their scatter.
func (l Nested) Width(r Rule, before int, more float64, turns int) float64 {
	n := float64(before) + more
	if n < MinN {
		return math.Inf(1)
	}
	v := (float64(before) + more*l.Relative(turns)) / n
	return Student(n-1).Quantile(0.5+r.Level()/2) * math.Sqrt(v/n)
}
