package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// OneWay returns the p-value of the one-way analysis of variance: whether groups of values
// have one mean (R. A. Fisher, "Statistical Methods for Research Workers", 1925). It ignores
// empty groups. It is NaN with fewer than two groups or two degrees of freedom within them.
func OneWay(groups [][]float64) float64 {
	var all []float64
	k, within := 0, 0.0
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		k++
		all = append(all, g...)
		_, v := meanVar(g)
		within += v * float64(len(g)-1)
	}
	df1, df2 := float64(k-1), float64(len(all)-k)
	if k < 2 || df2 < 2 {
		return math.NaN()
	}
	_, v := meanVar(all)
	between := v*float64(len(all)-1) - within
	// Rounding leaves a little variance where there is none.
	if tiny := 1e-12 * v * float64(len(all)-1); within <= tiny {
		if between <= tiny {
			return 1
		}
		return 0
	}
	return distuv.F{D1: df1, D2: df2}.Survival(max(between, 0) / df1 / (within / df2))
}
