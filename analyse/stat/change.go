package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// Detector finds changes of level in a sequence as it grows: what it has said of
// the first values it never takes back, so that decisions can rest on it. The
// zero value is ready.
//
// After each value it tries every split of the values since the last change into
// at least minBefore on the left and minAfter to maxAfter on the right (a
// change-point model: D. M. Hawkins, P. Qiu and C. W. Kang, J. Quality Technology
// 35 (2003) 355). There is a change when at one split all three hold:
//
//   - ranks: had the values come in any order, the right ones would lie so far to
//     one end with a probability of at most rankLevel divided by the number of
//     values so far, and rankMost. This is exact for any distribution (D. M.
//     Hawkins and Q. Deng, J. Quality Technology 42 (2010) 165); late values do
//     not pass it where there were late ones before;
//   - size: all but a third of the right values are farther from the left median
//     than Student's t allows medians to be apart, at changeLevel divided by the
//     number of values so far. The scale is of the residuals, pulled in at pullIn
//     robust deviations, so that one odd value does not hide a change (D. M.
//     Hawkins, J. Quality Technology 25 (1993) 248);
//   - that distance is Floor at least.
//
// Ranks alone would need dozens of values, and size alone takes a few late ones in
// a row for a change; together they take three to six. The levels are found by
// simulation (the tests). The change is placed where the absolute deviations
// from the medians of both sides are least.
type Detector struct {
	Floor float64 // least difference of levels that matters
	y     []float64
	start int // of the values since the last change
}

// MinSequence is the number of values below which a Detector tells no change: with
// fewer on either side their ranks are not telling.
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

// Add takes the next value, and reports whether the sequence is now seen to have
// changed, and with which value (counted from 0) the new level begins. A value
// that is not finite is nobody's evidence: it takes its place and no part.
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
	// Where it is: the split with the least absolute deviations from the medians.
	least := math.Inf(1)
	for k := first; k <= n-minAfter; k++ {
		if s := absolute(v[:k]) + absolute(v[k:]); s < least {
			least, from = s, place[k]
		}
	}
	d.start = from
	return from, true
}

// split returns the p-value of a change of level between v[k-1] and v[k], 1 when
// one of the conditions other than size does not hold.
func (d *Detector) split(v []float64, k int) float64 {
	left, right := v[:k], v[k:]
	// Ranks first: they cost least and refuse most.
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
		return 0 // a sequence of constants
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

// inner returns the value that a third of the right ones are short of: the least
// of three, so that two odd ones do not speak for a third.
func inner(right []float64, up bool) float64 {
	r := slices.Clone(right)
	slices.Sort(r)
	if !up {
		slices.Reverse(r)
	}
	return r[(len(r)-1)/3]
}

// unlikely reports whether the right values rank too far to one end: as high as
// they all do with at most so many of the left ones above the lowest of them.
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
	// One to either side, hence twice.
	ln := math.Ln2 + combin.LogGeneralizedBinomial(float64(above+m), float64(m)) - combin.LogGeneralizedBinomial(float64(len(left)+m), float64(m))
	return ln <= math.Log(math.Min(rankMost, rankLevel/float64(len(left)+m)))
}
