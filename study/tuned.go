package study

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tare/ordered"
	"tare/param"
)

// maxTuned is the most factors that stop.tune looks for together: their combinations multiply.
const maxTuned = 4

// tunedOf reads the factors for which stop.tune looks together. One alone is the compared factor, as without them.
func (d *draft) tunedOf(keys map[string]pair) {
	n := find(keys["stop"].val, "factors")
	if empty(n) || d.study.Stop.Objective != nil {
		return
	}
	s := d.study
	if s.Stop.Tune == 0 {
		d.bad(n, "add tune: 90%, or remove factors", "factors has no effect without tune")
		return
	}
	names, nodes := d.words(n, "factors")
	for k, name := range names {
		i, ok := d.index[name]
		switch {
		case !ok:
			d.noFactor(nodes[k], name, d.inStudy()[1:])
			return
		case d.factors[i].class == isWorkload:
			d.bad(nodes[k], "name one of the workloads' parameters", "workloads are not levels to choose")
			return
		}
		d.tuned = append(d.tuned, i)
	}
	switch {
	case len(names) == 0: // said already
	case len(names) > maxTuned:
		d.bad(nodes[maxTuned], "tune the others afterwards", "more than %d factors are tuned together", maxTuned)
	case names[0] != s.Compare:
		d.bad(nodes[0], fmt.Sprintf("write %s first, or compare: %s", s.Compare, names[0]), "the first tuned factor is %s, and the compared factor is %s", names[0], s.Compare)
	case len(names) == 1:
		d.tuned = nil
	default:
		s.Stop.Factors = names
	}
}

// places finds where each cell is among the levels of the tuned factors. It refuses cells that differ in another factor.
func (d *draft) places(n *yaml.Node) {
	if len(d.tuned) == 0 {
		return
	}
	for i := range d.study.Strata {
		s := &d.study.Strata[i]
		taken := map[string]int{}
		for k, cell := range s.Cells {
			var at []int
			for _, f := range d.tuned {
				level, _ := cell.Get(d.factors[f].name)
				own := d.levelsFor(d.loads[s.Workload], f)
				place := slices.Index(own, level)
				if place < 0 { // of an entry of include: after the others
					place = len(own) + slices.Index(d.factors[f].levels, level)
				}
				at = append(at, place)
			}
			key := fmt.Sprint(at)
			if j, is := taken[key]; is {
				d.bad(n, "give the other factors one level, or add the one in which they differ", "%s and %s are the same levels of the tuned factors", d.study.Treatment(i, s.Cells[j]), d.study.Treatment(i, s.Cells[k]))
				return
			}
			taken[key] = k
			s.Places = append(s.Places, at)
		}
	}
}

// inOrder refuses numbers among the levels of a tuned factor that neither rise nor fall: the lowest level that reaches a share would be any
// of them. Words are in the user's order. A study of results may have what an earlier tare accepted.
func (d *draft) inOrder() {
	if d.study.Stop.Tune == 0 || d.cat.Stored {
		return
	}
	for _, name := range d.study.Tuned() {
		i := d.index[name]
		for j := range d.study.Strata {
			s := &d.study.Strata[j]
			levels := slices.Clone(d.levelsFor(d.loads[s.Workload], i))
			for _, c := range s.Cells { // of an entry of include: after the others
				level, _ := c.Get(name)
				levels = ordered.Add(levels, level)
			}
			if right := d.sorted(d.factors[i], levels); right != nil {
				d.bad(d.factors[i].at, "write "+strings.Join(right, ", "), "the levels of %s are not in order, and the lowest of them is asked for: %s", name, strings.Join(levels, ", "))
				break
			}
		}
	}
}

// sorted returns levels with the numbers among them in rising order; nil if these rise or fall already.
func (d *draft) sorted(f *factor, levels []string) []string {
	ps := d.paramsOf(f, d.loads)
	type number struct {
		text  string
		value float64
	}
	var numbers []number
	var at []int
	for k, l := range levels {
		if v, ok := numberOf(ps, l); ok {
			numbers, at = append(numbers, number{l, v}), append(at, k)
		}
	}
	by := func(a, b number) int { return cmp.Compare(a.value, b.value) }
	if slices.IsSortedFunc(numbers, by) || slices.IsSortedFunc(numbers, func(a, b number) int { return by(b, a) }) {
		return nil
	}
	slices.SortStableFunc(numbers, by)
	out := slices.Clone(levels)
	for n, k := range at {
		out[k] = numbers[n].text
	}
	return out
}

// numberOf is a level as a number in its parameter's base unit; ok is false for words.
func numberOf(ps []param.Param, level string) (v float64, ok bool) {
	if len(ps) == 0 || slices.Contains(ps[0].Words, level) {
		return 0, false
	}
	var err error
	var n int64
	switch ps[0].Type {
	case param.Int, param.Float:
		v, err = strconv.ParseFloat(level, 64)
	case param.Size:
		n, err = param.ParseSize(level)
		v = float64(n)
	case param.Rate:
		n, err = param.ParseRate(level)
		v = float64(n)
	case param.Duration:
		var t time.Duration
		t, err = param.ParseDuration(level)
		v = t.Seconds()
	default:
		return 0, false
	}
	return v, err == nil
}
