package stat

import (
	"math"
	"slices"
)

// BenjaminiHochberg returns, in the order of p, the false discovery rate at which each
// p-value would just be called a discovery (Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B
// 57 (1995) 289). A NaN means that the test could not be made: it stays NaN and does not
// count.
func BenjaminiHochberg(p []float64) []float64 {
	q := make([]float64, len(p))
	var idx []int
	for i, x := range p {
		q[i] = math.NaN()
		if !math.IsNaN(x) {
			idx = append(idx, i)
		}
	}
	slices.SortStableFunc(idx, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	least := 1.0
	for rank := len(idx); rank > 0; rank-- {
		i := idx[rank-1]
		least = math.Min(least, p[i]*float64(len(idx))/float64(rank))
		q[i] = least
	}
	return q
}

// P is the two-sided p-value of the estimate against a ratio of one, by itself. NaN
// without an interval. Use Rule.P for the results of a study that chose when to stop.
func (e Estimate) P() float64 {
	if !e.HasInterval() {
		return math.NaN()
	}
	d := math.Abs(math.Log(e.Ratio))
	if e.SE == 0 {
		if d == 0 {
			return 1
		}
		return 0
	}
	return 2 * Student(e.DF).Survival(d/e.SE)
}

// P is the two-sided p-value of an estimate made by r. It allows for stopping: it is
// below 1 - Confidence exactly where the interval excludes 1. NaN without an interval.
// BenjaminiHochberg takes these.
func (r Rule) P(e Estimate) float64 {
	p := e.P()
	if e.HasInterval() {
		p = math.Min(1, p*(1-r.Confidence)/(1-e.Confidence))
	}
	return p
}
