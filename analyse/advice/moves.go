package advice

import (
	"slices"
	"strconv"
	"strings"

	"tare/record"
	"tare/study"
)

// move is where one group of an item goes.
type move struct {
	from record.Cell // levels today of what the rule sets
	to   target
	list []*subject
}

// steps are the moves of the text: the item's, or the one of its only group.
func (f *filler) steps() []move {
	if len(f.moves) > 0 {
		return f.moves
	}
	return []move{{f.g.list[0].from(f.g.rule), f.to, f.g.list}}
}

// toward are the levels of a factor that all moves lead to: one, or from the least to
// the most.
func (f *filler) toward(factor string) string {
	var levels []string
	for _, m := range f.steps() {
		if v, ok := m.to.level(factor); ok {
			levels = append(levels, v)
		}
	}
	return span(levels)
}

// leads reports whether a move leads a factor to such a level.
func (f *filler) leads(factor string, is func(string) bool) bool {
	return slices.ContainsFunc(f.steps(), func(m move) bool {
		v, ok := m.to.level(factor)
		return ok && is(v)
	})
}

// start is a level to start with where the moves lead to more than two.
type start struct {
	Level      string
	Cells, All int // cells that need no more than Level, and all
}

// most is the share of the cells for which the level to start with is enough.
const most = 0.75

// start returns the least level that is enough for most cells; nil where the moves lead to one or two levels, or to words.
func (f *filler) start(factor string) *start {
	var levels []string
	cells := make(map[string]map[string]bool) // by level
	all := 0
	for _, m := range f.steps() {
		level, ok := m.to.level(factor)
		if !ok || number(level) < 0 {
			return nil
		}
		if cells[level] == nil {
			levels, cells[level] = append(levels, level), make(map[string]bool)
		}
		for _, s := range m.list {
			if k := s.f.Cell.Key(); !cells[level][k] {
				cells[level][k] = true
				all++
			}
		}
	}
	if len(levels) < 3 {
		return nil
	}
	slices.SortFunc(levels, byNumber)
	out := &start{All: all}
	for _, l := range levels {
		if out.Level, out.Cells = l, out.Cells+len(cells[l]); float64(out.Cells) >= most*float64(all) {
			break
		}
	}
	return out
}

// each says which present level goes where, " (from 1: 2–4, from 2: 4)"; "" where
// there is one alone.
func (f *filler) each(factor string) string {
	from, to := f.table(factor)
	if len(from) < 2 {
		return ""
	}
	out := make([]string, len(from))
	for i, level := range from {
		out[i] = "from " + level + ": " + span(to[level])
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// table has the targets of a factor by its present level, the least first.
func (f *filler) table(factor string) (from []string, to map[string][]string) {
	to = make(map[string][]string)
	for _, m := range f.steps() {
		level, ok := m.from.Get(factor)
		v, set := m.to.level(factor)
		if !ok || !set {
			continue
		}
		if to[level] == nil {
			from = append(from, level)
		}
		to[level] = append(to[level], v)
	}
	slices.SortStableFunc(from, byNumber)
	return from, to
}

// limit says what to do with the CPU limit, for each present one. Where the study found
// that none serves best, it says how much would be used.
func (f *filler) limit() string {
	used := make(map[string][]string) // by present limit: cores that are used without one
	kept := false
	for _, m := range f.steps() {
		if v, _ := m.to.level(study.FactorCPULimit); v != none {
			kept = true
			continue
		}
		level, _ := m.from.Get(study.FactorCPULimit)
		used[level] = append(used[level], strconv.Itoa(f.b.enough(m.list)))
	}
	from, to := f.table(study.FactorCPULimit)
	head := "Raise the CPU limit"
	if first, _ := f.to.level(study.FactorCPULimit); !kept {
		head = "Remove the CPU limit, or raise it"
	} else if first == none {
		head = "Remove or raise the CPU limit"
	}
	of := func(level string) string {
		some := slices.DeleteFunc(slices.Clone(to[level]), func(v string) bool { return v == none })
		switch {
		case len(used[level]) == 0:
			return span(some)
		case len(some) > 0:
			return span(some) + " or none"
		case kept:
			return "none or " + span(used[level])
		}
		return span(used[level])
	}
	if !slices.ContainsFunc(from, func(level string) bool { return of(level) != of(from[0]) }) {
		cores, orNone := strings.CutSuffix(of(from[0]), " or "+none)
		out := head + " to " + cores + " cores"
		if cores == "1" {
			out = head + " to 1 core"
		}
		if orNone {
			out += " or " + none
		}
		return out
	}
	out := make([]string, len(from))
	for i, level := range from {
		out[i] = "from " + level + ": " + of(level)
	}
	return head + " (cores, " + strings.Join(out, "; ") + ")"
}

// either are the levels that the cells have of a factor, as a choice.
func (f *filler) either(factor string) string {
	levels := f.from(factor)
	slices.SortStableFunc(levels, byNumber)
	return strings.Join(levels, " or ")
}

// all says what goes where, of all factors that are set: what was tried.
func (f *filler) all() string {
	var out []string
	for _, set := range f.g.rule.Set {
		from, to := f.table(set.Factor)
		for _, level := range from {
			out = append(out, set.Factor+" from "+level+" to "+span(to[level]))
		}
	}
	return strings.Join(out, ", ")
}

// span writes levels: one, or from the least to the most; a word beside numbers last.
func span(levels []string) string {
	levels = unique(levels)
	slices.SortStableFunc(levels, byNumber)
	n := len(levels)
	for n > 0 && number(levels[n-1]) < 0 {
		n--
	}
	words := slices.Clone(levels[n:])
	switch {
	case n == 1:
		words = slices.Insert(words, 0, levels[0])
	case n > 1:
		words = slices.Insert(words, 0, levels[0]+"–"+levels[n-1])
	}
	return strings.Join(words, " or ")
}

// byNumber orders levels that are numbers by these, and others after them.
func byNumber(x, y string) int {
	a, b := number(x), number(y)
	switch {
	case a < 0 && b < 0, a == b:
		return 0
	case a < 0:
		return 1
	case b < 0, a < b:
		return -1
	}
	return 1
}

// number is a level's, negative where it is a word.
func number(level string) float64 {
	v, err := strconv.ParseFloat(level, 64)
	if err != nil || !(v >= 0) {
		return -1
	}
	return v
}
