package advice

import (
	"math"
	"slices"
	"strconv"

	"tare/analyse/merit"
	"tare/record"
)

// best is the least level of a factor that the study measured to reach most of the best
// one's value, for the workload and response of one cell: the figure of merit "fewest 90%".
// It is false where the study did not measure two levels at least.
func (b *builder) best(factor string, s *subject) (level string, ok bool) {
	if b.in.Mean == nil || b.in.Measured == nil {
		return "", false
	}
	levels := merit.Order(b.levels(factor))
	values, measured := make([]float64, len(levels)), 0 // as multiples of the cell's own
	for i, l := range levels {
		values[i] = math.NaN()
		c := swap(s.f.Cell, factor, l)
		if c == nil || !b.in.Measured(c, s.f.Response.Name) {
			continue
		}
		if l == s.level(factor) {
			values[i] = 1
		} else if sum := b.in.Mean(s.f.Cell, []record.Cell{c}, s.f.Response.Name); sum.Undefined == "" && sum.N > 0 {
			values[i] = math.Exp(sum.Mean)
		}
		if !math.IsNaN(values[i]) {
			measured++
		}
	}
	i := merit.Fewest(values, reaches, s.f.Response.Better)
	if i < 0 || measured < 2 {
		return "", false
	}
	return levels[i], true
}

// enoughOf reports whether a cell has already as many of what a rule sets as serve it best:
// by what the study measured, else by the rule's arithmetic. Otherwise fewest is the measured
// number; "" where the study does not tell.
func (b *builder) enoughOf(r *Rule, s *subject) (fewest string, enough bool) {
	for _, set := range r.Set {
		if set.To != toFewest {
			continue
		}
		level, ok := b.best(set.Factor, s)
		if ok {
			fewest = level
		} else {
			level = strconv.Itoa(ioThreads([]*subject{s}))
		}
		if merit.Number(s.level(set.Factor)) >= merit.Number(level) { // false of words
			return fewest, true
		}
	}
	return fewest, false
}

// fewest is the level to set for cells that have one measured best, or none.
func (b *builder) fewest(factor string, list []*subject) string {
	if level, ok := b.best(factor, list[0]); ok {
		return level
	}
	return strconv.Itoa(ioThreads(list))
}

// fromFewest are the study's levels from the measured one on, in rising order.
func (b *builder) fromFewest(factor string, s *subject) []string {
	least, ok := b.best(factor, s)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(merit.Order(b.levels(factor)), func(l string) bool {
		return !(merit.Number(l) >= merit.Number(least))
	})
}

// ioThreads is how many I/O threads to begin with: 4 to 8, no more than jobs.
func ioThreads(list []*subject) int {
	n := 0
	for _, s := range list {
		n = max(n, s.workers)
	}
	return max(4, min(8, n))
}

// sets reports whether a rule sets a factor of studies.
func (r *Rule) sets(factor string) bool {
	return slices.ContainsFunc(r.Set, func(s Setting) bool { return s.Factor == factor })
}
