package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/ordered"
	"tare/record"
)

// AdviceFor names the treatments that an item is about, those of one level of the
// compared factor together: what is nested below it is left out where the item is about
// all of that level's, and whole numbers that follow one another in the study are a range. Levels that do not say what they are
// have the factor before them.
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
	return named(r, strings.Join(names, "; "))
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
// as 2..9, others with a comma between.
func ranges(levels, study []string) string {
	var order []string
	for _, v := range study {
		order = ordered.Add(order, v)
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
	return strings.Join(out, ",")
}

// AdviceGains say what a setting was measured to bring, for each response: gains as
// gains, and losses as losses. The lead of each is which of these it is.
func AdviceGains(r *analyse.Result, x *advice.Item) (leads, texts []string) {
	gains := x.Gains
	if len(gains) == 0 && x.Gain != nil {
		gains = []advice.Gain{*x.Gain}
	}
	for i := range gains {
		g := &gains[i]
		lead, text := gain(r, x, g)
		text += ", " + Count(g.Pairs, "block")
		if g.Cells > 1 {
			text += fmt.Sprintf(" of %d combinations", g.Cells)
		}
		leads, texts = append(leads, lead), append(texts, text+".")
	}
	return leads, texts
}

// gain says what a setting brings in one response.
func gain(r *analyse.Result, x *advice.Item, g *advice.Gain) (lead, text string) {
	switch up := g.Better == record.Higher; {
	case g.Lo <= 1 && g.Hi >= 1:
		lead = "not sure"
	case (g.Lo > 1) == up:
		lead = "gain"
	default:
		lead = "loss"
	}
	than := g.Than
	if than == "" {
		than = "without"
		before := slices.DeleteFunc(slices.Clone(g.From), func(l record.Level) bool { return slices.Contains(g.To, l) })
		switch {
		case len(before) > 0 && len(x.Targets) < 2:
			than = "with " + Levels(r, before, " ")
		case len(before) > 0: // each target has its own levels
			than = "with today's levels"
		}
	}
	text = g.Response + " is " + amount(g) + " " + than
	if g.With != "" {
		text = "with " + g.With + ", " + text
	}
	return lead, text
}

// amount writes a change up to what it is compared with: in per cent where it is less than a factor of two.
func amount(g *advice.Gain) string {
	per := func(v float64) string { return strconv.FormatFloat(100*math.Abs(v-1), 'g', 3, 64) }
	switch {
	case g.Ratio >= 2:
		return fmt.Sprintf("%s times as high (%s to %s) as", Ratio(g.Ratio), Ratio(g.Lo), Ratio(g.Hi))
	case g.Ratio <= 0.5:
		return fmt.Sprintf("%s × lower (%s to %s) than", Ratio(1/g.Ratio), Ratio(1/g.Hi), Ratio(1/g.Lo))
	case g.Lo <= 1 && g.Hi >= 1:
		return fmt.Sprintf("%s %% %s (%s %% lower to %s %% higher) than", per(g.Ratio), map[bool]string{true: "higher", false: "lower"}[g.Ratio >= 1], per(g.Lo), per(g.Hi))
	case g.Ratio > 1:
		return fmt.Sprintf("%s %% higher (%s to %s %%) than", per(g.Ratio), per(g.Lo), per(g.Hi))
	}
	return fmt.Sprintf("%s %% lower (%s to %s %%) than", per(g.Ratio), per(g.Hi), per(g.Lo))
}

// AdviceShort is the change that an item advises, and what it brings in the response that
// gains most.
func AdviceShort(r *analyse.Result, x *advice.Item) string {
	if x.Gain == nil {
		return x.Change + ". Its gain was not measured."
	}
	lead, text := gain(r, x, x.Gain)
	return x.Change + ". " + strings.ToUpper(lead[:1]) + lead[1:] + ": " + text + "."
}

// AdviceBrief is the line that says all of an item of which a line is enough: the change,
// or the first sentence of its text.
func AdviceBrief(r *analyse.Result, x *advice.Item) string {
	switch {
	case x.Contradicted && x.Gain != nil:
		lead, text := gain(r, x, x.Gain)
		return fmt.Sprintf("%s %s%s: %s.", x.Text, strings.ToUpper(lead[:1]), lead[1:], text)
	case x.Contradicted:
		return x.Text
	case x.Change != "":
		return x.Change + "."
	}
	first, _, _ := strings.Cut(x.Text, ". ")
	return strings.TrimSuffix(first, ".") + "."
}

// within reports whether a cell has all of some levels.
func within(levels, c record.Cell) bool {
	return !slices.ContainsFunc(levels, func(l record.Level) bool { return !slices.Contains(c, l) })
}
