package main

import (
	"math"

	"tare/analyse/tune"
)

// surface is one exhaustive data set of a factor's levels: readings by block and level.
type surface struct {
	value [][]float64 // more is better
	share []float64   // true, of the best level
}

// newSurface lives a search of everything, for so many blocks in random order.
func newSurface(pop *population, f form, m machine, blocks int, seed uint64) *surface {
	r := fork(seed, 1)
	from := &pop.sources[r.IntN(len(pop.sources))]
	sd := make([]float64, levels)
	for i := range sd {
		sd[i] = pop.sd(from.others[r.IntN(len(from.others))], m.typical())
	}
	s := &surface{}
	best := 0.0
	for i := range levels {
		best = math.Max(best, f.at(float64(i)))
	}
	for i := range levels {
		s.share = append(s.share, f.at(float64(i))/best)
	}
	w := &world{m: m, process: process{r: fork(seed, 5)}}
	w.stepAt = w.r.IntN(8 * levels)
	w.ar, w.level = w.r.NormFloat64(), nil
	w.process.level = w.r.NormFloat64()
	own, order, place := fork(seed, 3), fork(seed, 6), 0
	for range blocks {
		row := make([]float64, levels)
		for _, i := range order.Perm(levels) {
			row[i] = s.share[i] * math.Exp(sd[i]*w.own(own)-w.next(m, place))
			place++
		}
		s.value = append(s.value, row)
	}
	return s
}

// search is a way to find a level. It returns the level and the number of readings.
type search struct {
	name string
	find func(s *surface, g tune.Goal) (level, readings int, found bool)
}

func searches() []search {
	return []search{
		{"all levels, 5 blocks", whole(5)},
		{"all levels, 16 blocks", whole(16)},
		{"tune", tuned16},
	}
}

// whole measures all levels, and takes the lowest whose mean reaches the share of the best mean.
func whole(blocks int) func(*surface, tune.Goal) (int, int, bool) {
	return func(s *surface, g tune.Goal) (int, int, bool) {
		mean := make([]float64, levels)
		best := math.Inf(-1)
		for i := range mean {
			for b := range blocks {
				mean[i] += math.Log(s.value[b][i]) / float64(blocks)
			}
			best = math.Max(best, mean[i])
		}
		for i := range mean {
			if mean[i] >= best+math.Log(g.Reach) {
				return i, levels * blocks, true
			}
		}
		return 0, levels * blocks, false
	}
}

// tuned16 is what `tare tune` does.
func tuned16(s *surface, g tune.Goal) (level, readings int, found bool) {
	var values [][]float64
	closed := make([]bool, levels)
	for {
		step := tune.Next(values, closed, g)
		if step.Stage == tune.Found || len(values) == len(s.value) {
			return step.Answer, readings, step.Stage == tune.Found
		}
		row := make([]float64, levels)
		for i := range row {
			row[i] = math.NaN()
		}
		for _, i := range step.Measure {
			row[i] = s.value[len(values)][i]
			readings++
		}
		values = append(values, row)
	}
}
