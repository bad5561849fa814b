package plot

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/param"
)

// numbers reads levels as numbers, times or sizes, all in the same way, so that
// 4KiB comes before 64KiB and 5m after 30s. A level that is none of them (none,
// auto) is NaN. It is nil when no way reads two of them or more than words are
// left: then the levels are names.
func numbers(levels []string) []float64 {
	for _, read := range []func(string) (float64, error){
		func(s string) (float64, error) { return strconv.ParseFloat(strings.TrimSpace(s), 64) },
		func(s string) (float64, error) { d, err := param.ParseDuration(s); return d.Seconds(), err },
		func(s string) (float64, error) { n, err := param.ParseSize(s); return float64(n), err },
	} {
		out := make([]float64, len(levels))
		good, digits := 0, false
		for i, l := range levels {
			v, err := read(l)
			if err != nil || math.IsInf(v, 0) {
				v = math.NaN()
				digits = digits || strings.ContainsAny(l, "0123456789")
			}
			if !math.IsNaN(v) {
				good++
			}
			out[i] = v
		}
		if good >= 2 && !digits { // a word with digits is a number of another sort
			return out
		}
	}
	return nil
}

// count is how many of the numbers are there.
func count(v []float64) int {
	n := 0
	for _, x := range v {
		if !math.IsNaN(x) {
			n++
		}
	}
	return n
}

// newAxis puts levels into the order of drawing: numbers rising; words before
// or after them, as the study has each.
func newAxis(factor string, levels, all []string) Axis {
	a := Axis{Factor: factor}
	if factor == "" {
		return a
	}
	rank := func(l string) int {
		if l == "" {
			return -1
		}
		if i := slices.Index(all, l); i >= 0 {
			return i
		}
		return len(all)
	}
	levels = slices.Clone(levels)
	slices.SortStableFunc(levels, func(x, y string) int { return rank(x) - rank(y) })
	if v := numbers(levels); v != nil {
		at := make(map[string]float64, len(levels))
		for i, l := range levels {
			at[l] = v[i]
		}
		first := rank(levels[slices.IndexFunc(v, func(x float64) bool { return !math.IsNaN(x) })])
		key := func(l string) float64 {
			switch x := at[l]; {
			case !math.IsNaN(x):
				return x
			case rank(l) < first:
				return math.Inf(-1)
			}
			return math.Inf(1)
		}
		slices.SortStableFunc(levels, func(x, y string) int { return cmp.Compare(key(x), key(y)) })
		a.Numbers = make([]float64, len(levels))
		for i, l := range levels {
			a.Numbers[i] = at[l]
		}
	}
	a.Levels = levels
	for _, l := range levels {
		a.Index = append(a.Index, max(0, rank(l)))
	}
	return a
}

// label is a level as it is written: what has no such factor is said so.
func (a *Axis) label(i int) string {
	if a.Levels[i] == "" {
		return "no " + a.Factor
	}
	if a.Names != nil {
		return a.Names[i]
	}
	return a.Levels[i]
}

// used reports whether the figure uses this axis.
func (a *Axis) used() bool { return a.Factor != "" }

// joins reports whether a line may lead from the level before i to it: both are numbers. Names have no order, so that a line
// between them would show a course that is not there.
func (a *Axis) joins(i int) bool {
	return a.Numbers != nil && !math.IsNaN(a.Numbers[i]) && !math.IsNaN(a.Numbers[i-1])
}

// numeric reports whether the levels have places on a line: all are numbers.
func (a *Axis) numeric() bool { return a.Numbers != nil && count(a.Numbers) == len(a.Levels) }
