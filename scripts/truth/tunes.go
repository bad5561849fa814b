package main

import (
	"math"
	"slices"

	"tare/analyse/tune"
)

// ground is the true value of each cell of a grid, and the grid.
type ground struct {
	name  string
	size  []int // levels of each factor
	share []float64
	grid  tune.Grid
}

// newGround has the shares of the best of the cells of a terrain.
func newGround(name string, at func(x ...float64) float64, size ...int) ground {
	g := ground{name: name, size: size}
	places := [][]int{nil}
	for _, n := range size {
		var next [][]int
		for _, p := range places {
			for i := range n {
				next = append(next, append(slices.Clone(p), i))
			}
		}
		places = next
	}
	g.grid = tune.Grid{At: places, Closed: make([]bool, len(places))}
	for _, p := range places {
		x := make([]float64, len(p))
		for f, i := range p {
			x[f] = float64(i)
		}
		g.share = append(g.share, at(x...))
	}
	best := slices.Max(g.share)
	for i := range g.share {
		g.share[i] /= best
	}
	return g
}

// levelGrounds are those of one factor.
func levelGrounds() []ground {
	var out []ground
	for _, t := range levelCells() {
		out = append(out, newGround(t.name, t.at, t.size...))
	}
	return out
}

// pairCells are terrains of two factors: what each does alone, added; a ridge, along which both must rise together; a limit by
// the scarcer one; a peak; no effect; two peaks.
func pairCells() []terrain {
	rising := func(x, scale float64) float64 { return 1 - 0.7*math.Exp(-x/scale) }
	peak := func(x, top, width float64) float64 { return math.Exp(-math.Abs(math.Log((1+x)/(1+top))) / width) }
	hill := func(x, y, at, width float64) float64 { return math.Exp(-((x-at)*(x-at) + (y-at)*(y-at)) / width) }
	return []terrain{
		{"additive", func(x ...float64) float64 { return rising(x[0], 3) + 0.5*rising(x[1], 2) }, []int{12, 8}},
		{"ridge", func(x ...float64) float64 {
			along, across := x[0]+x[1]-13, x[0]-x[1]-1
			return (0.4 + 0.6*math.Exp(-along*along/80)) * math.Exp(-across*across/12)
		}, []int{12, 12}},
		{"saturating", func(x ...float64) float64 { return min(0.25*(x[0]+1), 0.34*(x[1]+1), 1) }, []int{12, 8}},
		{"peaked", func(x ...float64) float64 { return peak(x[0], 5, 2) * peak(x[1], 2, 3) }, []int{12, 8}},
		{"flat", func(...float64) float64 { return 1 }, []int{12, 8}},
		{"two peaks", func(x ...float64) float64 {
			return 0.3 + 0.4*hill(x[0], x[1], 3, 10) + 0.6*hill(x[0], x[1], 12, 20)
		}, []int{17, 17}},
		{"few", func(x ...float64) float64 { return min(0.3*(x[0]+1), 0.6*(x[1]+1), 1) }, []int{4, 3}},
	}
}

// pairGrounds are the grounds of two factors.
func pairGrounds() []ground {
	var out []ground
	for _, t := range pairCells() {
		out = append(out, newGround(t.name, t.at, t.size...))
	}
	return out
}

// surface is one exhaustive data set of a ground.
type surface struct {
	ground
	value [][]float64 // more is better, by block and cell
}

// newSurface lives a search of everything, for so many blocks in random order.
func newSurface(pop *population, g ground, m machine, blocks int, seed uint64) *surface {
	r := fork(seed, 1)
	from := &pop.sources[r.IntN(len(pop.sources))]
	n := len(g.share)
	sd := make([]float64, n)
	for i := range sd {
		sd[i] = pop.sd(from.others[r.IntN(len(from.others))], m.typical())
	}
	s := &surface{ground: g}
	w := &world{m: m, process: process{r: fork(seed, 5)}}
	w.stepAt = w.r.IntN(8 * n)
	w.ar, w.level = w.r.NormFloat64(), nil
	w.process.level = w.r.NormFloat64()
	own, order, place := fork(seed, 3), fork(seed, 6), 0
	for range blocks {
		row := make([]float64, n)
		for _, i := range order.Perm(n) {
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
		{"tune", tuneOn},
	}
}

// whole measures all cells, and takes the one of fewest steps whose mean reaches the share of the best mean.
func whole(blocks int) func(*surface, tune.Goal) (int, int, bool) {
	return func(s *surface, g tune.Goal) (int, int, bool) {
		mean := make([]float64, len(s.share))
		best := math.Inf(-1)
		for i := range mean {
			for b := range blocks {
				mean[i] += math.Log(s.value[b][i]) / float64(blocks)
			}
			best = math.Max(best, mean[i])
		}
		answer, fewest := 0, math.MaxInt
		for i := range mean {
			if n := steps(s.grid.At[i]); mean[i] >= best+math.Log(g.Reach) && n < fewest {
				answer, fewest = i, n
			}
		}
		return answer, len(mean) * blocks, true
	}
}

// blocks are the most that a search of the ground makes.
func (g ground) blocks() int {
	if len(g.size) > 1 {
		return 32
	}
	return 16
}

// tuneOn is what `tare tune` does.
func tuneOn(s *surface, g tune.Goal) (level, readings int, found bool) {
	step, readings := tuneNear(s, g, nil)
	return step.Answer, readings, step.Stage == tune.Found
}

// tuneNear is a search that begins near what another one found.
func tuneNear(s *surface, g tune.Goal, near []int) (step tune.Step, readings int) {
	var values [][]float64
	grid := s.grid
	grid.Near = near
	for {
		step = tune.Next(values, grid, g)
		if step.Stage == tune.Found || len(values) == len(s.value) {
			return step, readings
		}
		row := make([]float64, len(s.share))
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
