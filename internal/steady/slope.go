package steady

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// slope returns the least-squares slope over time relative to the mean, per second, and the
// two-sided p-value of a zero slope: Student's t, with the standard error and the degrees of
// freedom of the residuals' effective sample size.
func (s series) slope() (slope, p float64) {
	n := len(s.v)
	level := s.mean()
	if n < 4 || level == 0 {
		return 0, 1
	}
	at := make([]float64, n)
	for i := range at {
		at[i] = s.t[i].Seconds()
	}
	mt, mv := mean(at), mean(s.v)
	sxy, sxx := 0.0, squares(at)
	for i := range at {
		sxy += (at[i] - mt) * (s.v[i] - mv)
	}
	if sxx == 0 {
		return 0, 1
	}
	b := sxy / sxx
	rest := make([]float64, n)
	for i := range rest {
		rest[i] = s.v[i] - mv - b*(at[i]-mt)
	}
	// From the residuals: a slope would add to the autocorrelation of the values.
	worth := ESS(rest)
	left, df := squares(rest), worth-2
	switch {
	case df <= 0:
		return b / level, 1
	case left == 0 && b == 0:
		return 0, 1
	case left == 0:
		return b / level, 0
	}
	se := math.Sqrt(left / float64(n) / df / (sxx / float64(n)))
	t := math.Abs(b) / se
	return b / level, 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.CDF(-t)
}
