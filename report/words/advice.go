package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/record"
)

// AdviceFor names the treatments that an item is about, those of one level of the
// compared factor together: what is nested below it is left out where the item is about
// all of that level's, and whole numbers that follow one another in the study are a range.
func AdviceFor(r *analyse.Result, x *advice.Item) string {
	var names []string
	seen := make(map[record.Level]bool)
	for _, t := range treatmentsOf(r, x) {
		if len(t.Cell) == 0 || seen[t.Cell[0]] {
			continue
		}
		seen[t.Cell[0]] = true
		names = append(names, level(r, x, t.Cell[0]))
	}
	if len(names) == 0 {
		return TreatmentOf(r, x.Treatment)
	}
	return strings.Join(names, "; ")
}

// treatmentsOf are those of an item that one of its cells belongs to, in the study's order.
func treatmentsOf(r *analyse.Result, x *advice.Item) []*analyse.Treatment {
	var out []*analyse.Treatment
	for i := range r.Treatments {
		t := &r.Treatments[i]
		if t.Key == x.Treatment && len(x.Treatments) == 0 || slices.Contains(x.Treatments, t.Key) && slices.ContainsFunc(x.Cells, func(c record.Cell) bool { return within(t.Cell, c) }) {
			out = append(out, t)
		}
	}
	return out
}

// level names an item's treatments of one level of the compared factor.
func level(r *analyse.Result, x *advice.Item, of record.Level) string {
	var own, all []*analyse.Treatment
	for i := range r.Treatments {
		if t := &r.Treatments[i]; len(t.Cell) > 0 && t.Cell[0] == of {
			all = append(all, t)
		}
	}
	for _, t := range treatmentsOf(r, x) {
		if t.Cell[0] == of {
			own = append(own, t)
		}
	}
	name := r.LevelName(of)
	if len(own) == len(all) && len(all) > 1 {
		return name
	}
	for _, l := range r.Distinct(own[0].Cell)[1:] {
		var levels, study []string
		for _, t := range all {
			v, _ := t.Cell.Get(l.Factor)
			study = append(study, v)
		}
		for _, t := range own {
			v, _ := t.Cell.Get(l.Factor)
			levels = append(levels, v)
		}
		name += " " + l.Factor + "=" + ranges(levels, study)
	}
	return name
}

// ranges writes levels: three whole numbers or more that follow one another in the study
// as 2..9, others with a bar between.
func ranges(levels, study []string) string {
	var order []string
	for _, v := range study {
		if !slices.Contains(order, v) {
			order = append(order, v)
		}
	}
	whole := func(v string) bool { _, err := strconv.Atoi(v); return err == nil }
	var out []string
	for i := 0; i < len(order); {
		if !slices.Contains(levels, order[i]) {
			i++
			continue
		}
		n := i
		for n < len(order) && slices.Contains(levels, order[n]) && whole(order[n]) {
			n++
		}
		if n-i < 3 {
			out = append(out, order[i])
			i++
			continue
		}
		out = append(out, order[i]+".."+order[n-1])
		i = n
	}
	return strings.Join(out, "|")
}

// AdviceGains say what a setting is worth, for each response.
func AdviceGains(r *analyse.Result, x *advice.Item) []string {
	gains := x.Gains
	if len(gains) == 0 && x.Gain != nil {
		gains = []advice.Gain{*x.Gain}
	}
	verb := "Measured"
	if r.Modelled {
		verb = "Modelled"
	}
	var out []string
	for _, g := range gains {
		than := g.Than
		if than == "" {
			than = "that without"
			before := slices.DeleteFunc(slices.Clone(g.From), func(l record.Level) bool { return slices.Contains(g.To, l) })
			if len(before) > 0 && len(x.Targets) < 2 { // else each target has its own levels
				than = "that with " + Levels(r, before, " ")
			}
		}
		s := fmt.Sprintf("%s: %s %s (%s–%s) times %s, %s", verb, g.Response, Ratio(g.Ratio), Ratio(g.Lo), Ratio(g.Hi), than, Count(g.Pairs, "block"))
		if g.Cells > 1 {
			s += fmt.Sprintf(" of %d pairs of cells", g.Cells)
		}
		out = append(out, s+".")
	}
	return out
}

// AdviceBrief is the line that says all of an item of which a line is enough: the first
// sentence of its text.
func AdviceBrief(x *advice.Item) string {
	if first, _, ok := strings.Cut(x.Text, ". "); ok && !x.Contradicted {
		return first + "."
	}
	return x.Text
}

// within reports whether a cell has all of some levels.
func within(levels, c record.Cell) bool {
	return !slices.ContainsFunc(levels, func(l record.Level) bool { return !slices.Contains(c, l) })
}
