package tune

import "slices"

// nearBest is a difference of logarithms. If a neighbour of the best cell is below it by no more than that, a
// better cell may lie between the two.
const nearBest = 0.25

// explored is how many blocks look in two factors at once. Where many cells are equal, the best is another one after
// each block, and looking around it would not end. The cells one step away in each factor are measured at any time.
const explored = 8

// near reports whether the kth measured cell is near the best.
func (e *estimate) near(k, best int) bool { return e.mean[k] >= e.mean[best]-nearBest }

// once returns the cells near the best that only one block has measured. One reading may be far off, and must not
// rule a cell out.
func (e *estimate) once(best int) []int {
	var out []int
	for k, i := range e.levels {
		if e.blocks[k] < 2 && e.near(k, best) {
			out = append(out, i)
		}
	}
	return out
}

// gap returns the cells that were not measured between the kth measured cell and the next one in a direction,
// and which one that is; -1 at the border.
func (e *estimate) gap(sp *space, k int, way []int) (cells []int, end int) {
	cells = sp.along(e.levels[k], way)
	for n, i := range cells {
		if row, is := slices.BinarySearch(e.levels, i); is {
			return cells[:n], row
		}
	}
	return cells, -1
}

// probes returns cells that were not measured and that may change the answer: cells of the screen;
// the middles of the gaps below the answer; the middles of the gaps beside the best if both ends of a gap
// are near it, also in two factors at once, because a ridge between two factors shows no better cell in either alone;
// and, once, the cells far from the screen, where a second peak may be. In a direction that has no measured cell, the
// next cell is the middle.
func (e *estimate) probes(sp *space, answer, best, blocks int) []int {
	var out []int
	for _, i := range sp.screen { // again, if no trial was good
		if !slices.Contains(e.levels, i) {
			out = append(out, i)
		}
	}
	middle := func(cells []int, end int, way []int) {
		switch n := len(cells); {
		case n == 0:
		case end < 0 && sp.seeded: // the answer is at the edge of what was measured: two steps beyond it
			out = append(out, cells[min(n-1, 1)])
		case end < 0:
			out = append(out, cells[0])
		case steps(way) < 0: // the lower of two middles
			out = append(out, cells[n/2])
		default:
			out = append(out, cells[(n-1)/2])
		}
	}
	ways := sp.ways
	if blocks > explored {
		ways = sp.axes()
	}
	for n, way := range ways {
		if cells, end := e.gap(sp, best, way); end < 0 || e.near(end, best) {
			middle(cells, end, way)
		}
		if cells, end := e.gap(sp, answer, way); n < len(sp.axes()) && steps(way) < 0 {
			middle(cells, end, way)
		}
	}
	for _, f := range sp.far {
		if !slices.ContainsFunc(e.levels, func(i int) bool { return !slices.Contains(sp.screen, i) && sp.distance(i, f.cell) <= f.reach }) {
			out = append(out, f.cell)
		}
	}
	return out
}
