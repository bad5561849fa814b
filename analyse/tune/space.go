package tune

import (
	"cmp"
	"slices"
)

// Grid is the cells among which a search looks: the levels of one ordered factor, or the combinations of several.
type Grid struct {
	At     [][]int // place of each cell in each factor, from 0; nil: one factor, in whose order the cells are
	Closed []bool  // cells that cannot be measured
	Near   []int   // what a search of the same cells elsewhere found, where this one begins: its answer, then its best; nil: nothing
}

// space is the open cells of a grid, from the lowest. The lower of two cells is the one with fewer steps from the
// first levels, all factors together; of as many, the one that is lower in the factor named first. So a step of
// every factor costs the same.
type space struct {
	cells  []int       // their columns in the grid
	at     [][]int     // place of each in each factor; a place that no open cell has does not count
	size   []int       // places of each factor
	index  map[int]int // of a cell, by code
	ways   [][]int     // directions: down and up in each factor, then in two factors at once
	screen []int       // cells that the first block measures
	far    []far
	seeded bool // the screen is near what another search found
}

// far is a cell far from the screen, and the distance to the nearest cell of it. There may be a second peak.
type far struct {
	cell  int
	reach float64
}

const (
	few  = 6  // levels of one factor that the first block measures all
	most = 27 // cells of several factors that it measures: 5 by 5, or 3 by 3 by 3
)

func newSpace(g Grid) *space {
	sp := &space{index: map[int]int{}}
	var at [][]int
	for i, closed := range g.Closed {
		if closed {
			continue
		}
		own := []int{i}
		if g.At != nil {
			own = g.At[i]
		}
		sp.cells, at = append(sp.cells, i), append(at, slices.Clone(own))
	}
	if len(at) == 0 {
		return sp
	}
	for f := range at[0] {
		var places []int
		for _, a := range at {
			places = append(places, a[f])
		}
		slices.Sort(places)
		places = slices.Compact(places)
		for _, a := range at {
			a[f], _ = slices.BinarySearch(places, a[f])
		}
		sp.size = append(sp.size, len(places))
	}
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(steps(at[i]), steps(at[j])), slices.Compare(at[i], at[j]))
	})
	cells := sp.cells
	sp.cells = make([]int, len(order))
	for k, i := range order {
		sp.cells[k], sp.at = cells[i], append(sp.at, at[i])
		sp.index[sp.code(at[i])] = k
	}
	sp.ways = directions(len(sp.size))
	sp.screen = sp.screened()
	sp.far = sp.farthest(sp.screen)
	if near := sp.around(g.Near); sp.partial() && len(near) > 0 && len(near) < len(sp.screen) {
		sp.screen, sp.far, sp.seeded = near, nil, true
	}
	return sp
}

// Partial reports whether the screen leaves cells out, so that a search of the grid may begin near what another one found.
func (g Grid) Partial() bool { return newSpace(g).partial() }

func (sp *space) partial() bool { return len(sp.screen) < len(sp.cells) }

// around are the first of some columns of the grid, the cells one step from it in each factor, the other columns, and the
// cell farthest from all these, where there may be another peak. There are none if no column is open.
func (sp *space) around(columns []int) []int {
	var out []int
	for n, c := range columns {
		k := slices.Index(sp.cells, c)
		if k < 0 {
			continue
		}
		out = append(out, k)
		for _, way := range sp.axes() {
			if next := sp.along(k, way); n == 0 && len(next) > 0 {
				out = append(out, next[0])
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	if far := sp.farthest(out); len(far) > 0 {
		out = append(out, far[0].cell)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// steps are those of a way, or from the first levels to a place.
func steps(at []int) int {
	sum := 0
	for _, p := range at {
		sum += p
	}
	return sum
}

func (sp *space) code(at []int) int {
	c := 0
	for f, p := range at {
		c = c*sp.size[f] + p
	}
	return c
}

// directions are those of so many factors: 2 in each, and 4 in each two.
func directions(factors int) [][]int {
	var out [][]int
	way := func(f, a, g, b int) {
		w := make([]int, factors)
		w[g], w[f] = b, a
		out = append(out, w)
	}
	for f := range factors {
		way(f, -1, f, 0)
		way(f, 1, f, 0)
	}
	for f := range factors {
		for g := range f {
			way(f, -1, g, -1)
			way(f, -1, g, 1)
			way(f, 1, g, -1)
			way(f, 1, g, 1)
		}
	}
	return out
}

// axes are the directions in one factor.
func (sp *space) axes() [][]int { return sp.ways[:2*len(sp.size)] }

// along returns the cells from one in a direction, up to the border.
func (sp *space) along(from int, way []int) []int {
	var out []int
	at := slices.Clone(sp.at[from])
	for {
		for f := range at {
			at[f] += way[f]
			if at[f] < 0 || at[f] >= sp.size[f] {
				return out
			}
		}
		if i, ok := sp.index[sp.code(at)]; ok {
			out = append(out, i)
		}
	}
}

// screened are the cells of the screen: all if they are few, otherwise the combinations of the first, second,
// third, fifth, ninth ... and last level of each factor. Of several factors, those with the most such levels leave
// out the lowest between the first and the last, until the combinations are few enough.
func (sp *space) screened() []int {
	all := make([]int, len(sp.cells))
	for i := range all {
		all[i] = i
	}
	several := len(sp.size) > 1
	if !several && len(all) <= few || several && len(all) <= most {
		return all
	}
	picks, product := make([][]int, len(sp.size)), 1
	for f, n := range sp.size {
		picks[f] = doubling(n)
		product *= len(picks[f])
	}
	for several && product > most {
		f := 0
		for g := range picks {
			if len(picks[g]) > len(picks[f]) {
				f = g
			}
		}
		product = product / len(picks[f]) * (len(picks[f]) - 1)
		picks[f] = slices.Delete(picks[f], 1, 2)
	}
	out := []int{0}
	for i, at := range sp.at {
		picked := i == len(all)-1 // like the first, whatever combinations are missing
		if !picked {
			picked = true
			for f, p := range at {
				picked = picked && slices.Contains(picks[f], p)
			}
		}
		if picked && i > 0 {
			out = append(out, i)
		}
	}
	return out
}

// doubling are the first, second, third, fifth, ninth ... and last of so many places.
func doubling(n int) []int {
	out := []int{0}
	for i := 1; i < n; i *= 2 {
		out = append(out, i)
	}
	return slices.Compact(append(out, n-1))
}

// farthest are the cells farthest from some cells and from each other, at most as many as there are factors.
func (sp *space) farthest(base []int) []far {
	var out []far
	base = slices.Clone(base)
	for range sp.size {
		f := far{}
		for i := range sp.cells {
			nearest := sp.distance(i, base[0])
			for _, j := range base[1:] {
				nearest = min(nearest, sp.distance(i, j))
			}
			if nearest > f.reach {
				f = far{i, nearest}
			}
		}
		if f.reach == 0 {
			break
		}
		out, base = append(out, f), append(base, f.cell)
	}
	return out
}

// distance is the square of that between two cells, where each factor is as long as the others.
func (sp *space) distance(i, j int) float64 {
	sum := 0.0
	for f, n := range sp.size {
		d := float64(sp.at[i][f]-sp.at[j][f]) / float64(max(n-1, 1))
		sum += d * d
	}
	return sum
}

// rows are the values of the open cells.
func (sp *space) rows(values [][]float64) [][]float64 {
	out := make([][]float64, len(values))
	for b, v := range values {
		for _, i := range sp.cells {
			out[b] = append(out[b], v[i])
		}
	}
	return out
}

// columns puts a step in terms of the grid's columns.
func (sp *space) columns(s Step, n int) Step {
	levels := make([]Level, n)
	for k, i := range sp.cells {
		levels[i] = s.Levels[k]
	}
	s.Levels = levels
	var measure []int
	for _, k := range s.Measure {
		measure = append(measure, sp.cells[k])
	}
	slices.Sort(measure)
	s.Measure = measure
	if s.Answer >= 0 {
		s.Answer, s.Best = sp.cells[s.Answer], sp.cells[s.Best]
	}
	return s
}
