// Package merit computes figures of merit: what a reader wants from a study beyond the ratio of
// each sandbox to the baseline. They are the best over the levels of a factor, the lowest
// level that reaches a share of the best, the gain of the best over the factor's baseline,
// and the best of one sandbox over the best of another.
//
// The data path: 1. Levels are the values of one response, by level of the factor and by
// block; 2. Estimate computes each level's geometric mean over the blocks, and applies a Figure
// to these means; 3. it does the same with resamples of whole blocks, which give
// the interval (resample.go); 4. Mean makes the row Total of several estimates; 5. Table
// (table.go) arranges them in rows and columns.
//
// docs/merit.md defines each figure.
package merit

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/param"
	"tare/record"
)

// Figure is a number that Of computes from the typical values of all levels. A level that was not
// measured has NaN, and Of returns NaN if it cannot compute the figure. The figure is positive, unless
// it is signed or a level of the factor.
type Figure struct {
	Of     func(values []float64) float64
	Level  bool
	Words  bool    // the levels are words: Of returns a position, and positions have no mean
	Least  float64 // lower bound of a figure that is not signed
	Signed bool    // the figure is a difference
}

// Best returns the best of the values and its position. Without values it returns NaN and -1.
func Best(values []float64, better record.Better) (best float64, at int) {
	best, at = math.NaN(), -1
	for i, v := range values {
		if !math.IsNaN(v) && (at < 0 || ratio(v, best, better) > 1) {
			best, at = v, i
		}
	}
	return best, at
}

// Fewest returns the position of the first value that reaches the share of the best one.
// Without values it returns -1. The levels are in rising order, the baseline first.
func Fewest(values []float64, share float64, better record.Better) int {
	best, _ := Best(values, better)
	return slices.IndexFunc(values, func(v float64) bool { return ratio(v, best, better) >= share })
}

// Gain returns how much better the best is than the baseline, which is values[base]: 0.5 is
// half as good again. It is never below 0, since the baseline is one of the values.
func Gain(values []float64, base int, better record.Better) float64 {
	if base < 0 || base >= len(values) {
		return math.NaN()
	}
	best, _ := Best(values, better)
	return ratio(best, values[base], better) - 1
}

// Over returns the best of the first n values over the best of the others: 2 is twice as
// good.
func Over(values []float64, n int, better record.Better) float64 {
	one, _ := Best(values[:n], better)
	other, _ := Best(values[n:], better)
	return ratio(one, other, better)
}

// ratio returns a's value as a multiple of b's: above 1, a is better.
func ratio(a, b float64, better record.Better) float64 {
	if better == record.Lower {
		return b / a
	}
	return a / b
}

// Number reads a level as a number of threads, bytes or seconds; "none" and "off" are 0. It
// is NaN for other words.
func Number(level string) float64 {
	level = strings.TrimSpace(level)
	if level == "none" || level == "off" {
		return 0
	}
	if v, err := strconv.ParseFloat(level, 64); err == nil && !math.IsInf(v, 0) {
		return v
	}
	if n, err := param.ParseSize(level); err == nil {
		return float64(n)
	}
	if d, err := param.ParseDuration(level); err == nil {
		return d.Seconds()
	}
	return math.NaN()
}

// Order puts levels in rising order if all are numbers. Otherwise they keep the study's order.
func Order(levels []string) []string {
	out := slices.Clone(levels)
	if slices.ContainsFunc(levels, func(l string) bool { return math.IsNaN(Number(l)) }) {
		return out
	}
	slices.SortStableFunc(out, func(x, y string) int {
		switch a, b := Number(x), Number(y); {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return out
}
