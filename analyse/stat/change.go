package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// Detector finds changes of level in a growing sequence. It never takes a change back, so
// that decisions can rest on it. The zero value is ready.
//
// After each value it tries every split of the values since the last change into
// at least minBefore on the left and minAfter to maxAfter on the right (a
// change-point model: D. M. Hawkins, P. Qiu and C. W. Kang, J. Quality Technology
// 35 (2003) 355). There is a change when at one split all three hold:
//
//   - ranks: in a random order, the right values would rank so far to one end with a
//     probability of at most rankLevel divided by the number of values so far, and at most
//     rankMost. This is exact for any distribution (D. M. Hawkins and Q. Deng, J. Quality
//     Technology 42 (2010) 165). Outliers do not pass it if there were outliers before;
//   - size: all but a third of the right values are farther from the left median than
//     Student's t allows medians to be apart, at changeLevel divided by the number of
//     values so far. The scale is that of the residuals, winsorized at pullIn robust
//     deviations, so that one odd value does not hide a change (D. M. Hawkins, J. Quality
//     Technology 25 (1993) 248);
//   - this distance is at least Floor.
//
// Ranks alone would need dozens of values, and size alone mistakes a few outliers in a row
// for a change. Together they need three to six values. The levels come from simulation (the
// tests). The change is placed where the absolute deviations from the medians of both sides
// are least.
type Detector struct {
	Floor float64 // least difference of levels that matters
	y     []float64
	start int // index of the first value since the last change
}

// MinSequence is the number of values below which a Detector finds no change: ranks of fewer
// values are not significant.
const MinSequence = 11

const (
	minBefore   = 4
	minAfter    = 3
	maxAfter    = 12
	rankLevel   = 0.05
	rankMost    = 5e-3
	changeLevel = 0.02
	pullIn      = 4
)

// Add takes the next value. It reports whether it has found a change, and with which value
// (counted from 0) the new level begins. A value that is not finite counts in the numbering
// and is otherwise ignored.
func (d *Detector) Add(y float64) (from int, changed bool) {
	d.y = append(d.y, y)
	var v []float64
	var place []int
	for i := d.start; i < len(d.y); i++ {
		if finite(d.y[i]) {
			v, place = append(v, d.y[i]), append(place, i)
		}
	}
	n := len(v)
	if !finite(y) || n < minBefore+minAfter {
		return 0, false
	}
	first, best := max(minBefore, n-maxAfter), 1.0
	for k := first; k <= n-minAfter; k++ {
		best = math.Min(best, d.split(v, k))
	}
	if best > changeLevel/float64(n) {
		return 0, false
	}
	// Place the change: the split with the least absolute deviations from the medians.
	least := math.Inf(1)
	for k := first; k <= n-minAfter; k++ {
		if s := absolute(v[:k]) + absolute(v[k:]); s < least {
			least, from = s, place[k]
		}
	}
	d.start = from
	return from, true
}

// split returns the p-value of a change of level between v[k-1] and v[k]; 1 if a condition
// other than size does not hold.
func (d *Detector) split(v []float64, k int) float64 {
	left, right := v[:k], v[k:]
	// Test ranks first: they cost least and reject most.
	up := unlikely(left, right, true)
	if !up && !unlikely(left, right, false) {
		return 1
	}
	a, b := Median(left), Median(right)
	diff := math.Abs(inner(right, up) - a)
	if diff == 0 || diff < d.Floor {
		return 1
	}
	r := make([]float64, len(v))
	for i, y := range v {
		if i < k {
			r[i] = math.Abs(y - a)
		} else {
			r[i] = math.Abs(y - b)
		}
	}
	limit := pullIn * 1.4826 * Median(r)
	s := 0.0
	for _, x := range r {
		x = math.Min(x, limit)
		s += x * x
	}
	df := float64(len(v) - 2)
	s = math.Sqrt(s / df)
	if s == 0 {
		return 0 // the values do not vary
	}
	// The median of a normal sample has pi/2 times the variance of its mean.
	t := diff / (s * math.Sqrt(math.Pi/2*(1/float64(len(left))+1/float64(len(right)))))
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Survival(t)
}

func absolute(v []float64) (sum float64) {
	m := Median(v)
	for _, y := range v {
		sum += math.Abs(y - m)
	}
	return sum
}

// inner returns the value that two thirds of the right values reach: of three values the
// least, so that two outliers cannot outvote the third.
func inner(right []float64, up bool) float64 {
	r := slices.Clone(right)
	slices.Sort(r)
	if !up {
		slices.Reverse(r)
	}
	return r[(len(r)-1)/3]
}

// unlikely reports whether the right values rank too far to one end. The statistic is the
// number of left values beyond the innermost right value.
func unlikely(left, right []float64, up bool) bool {
	edge := slices.Min(right)
	if !up {
		edge = slices.Max(right)
	}
	above := 0
	for _, y := range left {
		if up && y >= edge || !up && y <= edge {
			above++
		}
	}
	m := len(right)
	if above > m { // more than half of the likely outcomes: no need to count them
		return false
	}
	// Both directions count, hence the factor 2.
	ln := math.Ln2 + combin.LogGeneralizedBinomial(float64(above+m), float64(m)) - combin.LogGeneralizedBinomial(float64(len(left)+m), float64(m))
	return ln <= math.Log(math.Min(rankMost, rankLevel/float64(len(left)+m)))
}
