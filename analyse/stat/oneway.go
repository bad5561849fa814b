package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// variances are the mean squares of a one-way analysis of variance.
type variances struct {
	groups          int // that are not empty
	between, within float64
	df1, df2        float64
	tiny            float64 // rounding leaves so much of a sum of squares where there is none
	size            float64 // of a group, as the expectation of between has it
}

func oneWay(groups [][]float64) (v variances) {
	var all []float64
	squares := 0.0
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		v.groups++
		all = append(all, g...)
		_, x := meanVar(g)
		v.within += x * float64(len(g)-1)
		squares += float64(len(g) * len(g))
	}
	n := float64(len(all))
	v.df1, v.df2 = float64(v.groups-1), n-float64(v.groups)
	if v.groups < 2 || v.df2 < 2 {
		return v
	}
	_, x := meanVar(all)
	v.tiny = 1e-12 * x * (n - 1)
	v.between = max(x*(n-1)-v.within, 0) / v.df1
	v.within /= v.df2
	v.size = (n - squares/n) / v.df1
	return v
}

// OneWay returns the p-value of the one-way analysis of variance: whether groups of values
// have one mean (R. A. Fisher, "Statistical Methods for Research Workers", 1925). It ignores
// empty groups. It is NaN with fewer than two groups or two degrees of freedom within them.
func OneWay(groups [][]float64) float64 {
	v := oneWay(groups)
	switch {
	case v.groups < 2 || v.df2 < 2:
		return math.NaN()
	case v.within*v.df2 > v.tiny:
		return distuv.F{D1: v.df1, D2: v.df2}.Survival(v.between / v.within)
	case v.between*v.df1 > v.tiny:
		return 0
	}
	return 1
}

// MinGroups is the number of groups below which Between says nothing: the scatter of two means has
// one degree of freedom, and its interval reaches from almost nothing to almost all.
const MinGroups = 3

// Share is a part of a variance, from 0 to 1, with its interval.
type Share struct {
	Share float64 `json:"share"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

// Between returns the share of the variance of single values that lies between the groups, in
// the one-way model of random effects: the intraclass correlation, with the interval of F (S. R.
// Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, sections 3.6 and 3.7). The
// interval is exact for groups of one size. false: there are too few groups or values.
func Between(groups [][]float64, confidence float64) (Share, bool) {
	v := oneWay(groups)
	if v.groups < MinGroups || v.df2 < 2 || v.between*v.df1 <= v.tiny && v.within*v.df2 <= v.tiny {
		return Share{}, false
	}
	share := func(f float64) float64 {
		if math.IsInf(f, 1) {
			return 1
		}
		return min(max((f-1)/(f+v.size-1), 0), 1)
	}
	f := math.Inf(1)
	if v.within*v.df2 > v.tiny {
		f = v.between / v.within
	}
	d := distuv.F{D1: v.df1, D2: v.df2}
	return Share{Share: share(f), Lo: share(f / d.Quantile(0.5+confidence/2)), Hi: share(f / d.Quantile(0.5-confidence/2))}, true
}

// Levels are the two components of the variance of nested values: of groups, and of single values
// within a group. Part is the share of the variance of a group's mean that single values make up,
// with its interval: what more values in a group can take away at most.
type Levels struct {
	Between float64 // variance of the groups' true means
	Within  float64 // variance of single values about them
	Part    Share
}

// TwoLevels estimates them by the method of moments. It sets mean squares equal to their
// expectations, and a negative component to 0 (S. R. Searle, G. Casella, C. E. McCulloch,
// "Variance Components", 1992, sections 3.5 and 3.6). The interval is exact for groups of one size.
// false: there are too few groups or values.
func TwoLevels(groups [][]float64, confidence float64) (Levels, bool) {
	v := oneWay(groups)
	if v.groups < MinGroups || v.df2 < 2 || v.between*v.df1 <= v.tiny && v.within*v.df2 <= v.tiny {
		return Levels{}, false
	}
	l := Levels{Between: max(v.between-v.within, 0) / v.size, Within: v.within, Part: Share{1, 1, 1}}
	if v.between*v.df1 > v.tiny {
		// The variance of a mean is the expectation of between over the size of a group.
		part, d := v.within/v.between, distuv.F{D1: v.df1, D2: v.df2}
		l.Part = Share{min(part, 1), min(part*d.Quantile(0.5-confidence/2), 1), min(part*d.Quantile(0.5+confidence/2), 1)}
	}
	return l, true
}
