package section

import (
	"fmt"
	"slices"

	"tare/analyse"
	"tare/analyse/tune"
	"tare/ordered"
	"tare/record"
	"tare/report/words"
)

// Tuned says which level to set, where the study looks for one.
func Tuned(r *analyse.Result) *Section {
	s := &Section{ID: "tuned", Title: "The level to set"}
	if len(r.Tuned) == 0 {
		return s
	}
	fixed := fixedLevels(r)
	for i := range r.Tuned {
		t := &r.Tuned[i]
		if i == 0 && t.Objective == "" {
			s.About = fmt.Sprintf("share of the best level's value, with %g %% intervals", 100*r.Confidence)
		}
		s.Head(tunedHead(r, t, fixed))
		s.Text(tunedAnswer(t, r.Margin))
		for _, care := range t.Care {
			s.Text("Take care: " + care + ".")
		}
		if t.Objective != "" {
			loadTable(s, t)
			continue
		}
		tunedTable(s, t)
		if len(t.Mix) > 0 {
			s.Table(tunedMix(r, t, fixed))
		}
		if len(t.Patches) > 0 {
			s.Blocks = append(s.Blocks, Block{Entry: tunedEntry(r, t, "")})
		}
	}
	if r.Tuned[0].Objective != "" {
		s.Title = "The highest load"
		loadNotes(s, slices.ContainsFunc(r.Tuned, func(t analyse.Tuned) bool { return anyLate(&t) }))
		return s
	}
	s.Note(tunedNote(tune.Goal{Reach: r.Tuned[0].Reach, Margin: r.Margin}))
	if slices.ContainsFunc(r.Tuned, func(t analyse.Tuned) bool { return len(t.Factors) > 0 }) {
		s.Note("The lowest of several combinations takes the fewest steps from the first levels, all factors together; of as many, it is lower in the factor named first.")
	}
	return s
}

// TunedEntries are the levels that a search found, an entry for each that has patches, with what it is for.
func TunedEntries(r *analyse.Result) (out []*Entry) {
	fixed := fixedLevels(r)
	for i := range r.Tuned {
		if t := &r.Tuned[i]; len(t.Patches) > 0 {
			out = append(out, tunedEntry(r, t, tunedHead(r, t, fixed)+": "))
		}
	}
	return out
}

// tunedEntry is a level that a search found, with its patches.
func tunedEntry(r *analyse.Result, t *analyse.Tuned, lead string) *Entry {
	e := &Entry{Head: lead + "Set " + settings(t, " to "), Patches: t.Patches}
	if r.Modelled {
		e.Head += " (" + words.Modelled + ")"
		e.Patches = modelledPatches(t.Patches)
	}
	return e
}

// tunedNote tells the chances from the confidence of an answer, which may be higher, because it allows for the margin.
func tunedNote(g tune.Goal) string {
	low, share, high := g.Band()
	of := func(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }
	return fmt.Sprintf("chance: the probability that the level is exactly the lowest that reaches %s of the best. The confidence in an answer allows for the margin: "+
		"the answer reaches at least %s, and no lower level reaches %s. So it can be higher than the chance. A level without blocks could not change the answer.", of(share), of(low), of(high))
}

// tunedTable has what is known about each level; of several factors, about the combinations that were measured.
func tunedTable(s *Section, t *analyse.Tuned) {
	names := t.Factors
	if len(names) == 0 {
		names = []string{t.Factor}
	}
	table, left := NewTable(len(names), append(slices.Clone(names), "of the best", "interval", "blocks", "chance")...), 0
	for _, l := range t.Levels {
		row := []string{l.Level}
		if len(t.Factors) > 0 {
			row = nil
			for _, own := range l.Cell {
				row = append(row, own.Value)
			}
		}
		switch {
		case l.Blocks > 0:
			chance := percentOf(l.Chance)
			if t.Thin {
				chance = "-"
			}
			table.Row(append(row, percentOf(l.Share), percentOf(l.Lo)+" to "+percentOf(l.Hi), fmt.Sprint(l.Blocks), chance)...)
		case len(t.Factors) > 0:
			left++
		default:
			table.Row(append(row, "-", "", "0")...)
		}
	}
	s.Table(table)
	if left > 0 {
		s.Text(fmt.Sprintf("Not measured: %d of %s.", left, words.Count(len(t.Levels), "combination")))
	}
}

// settings writes the levels of the answer: io_threads to 2 and default_vcpus to 4.
func settings(t *analyse.Tuned, to string) string {
	var out []string
	for _, l := range t.Set {
		level := l.Value
		if len(t.Factors) == 0 {
			level = t.Answer // with what is nested under it
		}
		out = append(out, l.Factor+to+level)
	}
	return words.List(out)
}

// tunedHead names what a level is for.
func tunedHead(r *analyse.Result, t *analyse.Tuned, fixed record.Cell) string {
	if len(t.Mix) == 0 {
		return words.Stratum(r, t.Workload, t.Shared, fixed) + ", " + t.Response
	}
	var names []string
	for _, p := range t.Mix {
		names = ordered.Add(names, p.Workload)
	}
	return "the mix of " + words.List(names)
}

// tunedMix says what the answer gives each part of a mix.
func tunedMix(r *analyse.Result, t *analyse.Tuned, fixed record.Cell) *Table {
	table := NewTable(1, "at "+settings(t, " "), "weight", "of its own best", "its own best level")
	for _, p := range t.Mix {
		share := "-"
		if p.Share > 0 {
			share = percentOf(p.Share)
		}
		table.Row(words.Stratum(r, p.Workload, p.Shared, fixed)+", "+p.Response, percentOf(p.Weight), share, p.Best)
	}
	return table
}

// tunedAnswers are the answers alone.
func tunedAnswers(r *analyse.Result) *Section {
	s := &Section{ID: "tuned"}
	fixed := fixedLevels(r)
	for i := range r.Tuned {
		t := &r.Tuned[i]
		lead := words.Stratum(r, t.Workload, t.Shared, fixed)
		if len(t.Mix) > 0 {
			lead = tunedHead(r, t, fixed)
		}
		s.Item(lead, tunedAnswer(t, r.Margin))
		for _, care := range t.Care {
			s.Item("take care", care)
		}
	}
	return s
}

// onward says how a search goes on whose answer is not clear, or why it does not.
func onward(t *analyse.Tuned) string {
	if t.Ended == "" {
		return " Run more blocks."
	}
	return " The search ended: " + t.Ended + "."
}

// tunedAnswer is the answer in words, or how far the search is.
func tunedAnswer(t *analyse.Tuned, margin float64) string {
	if t.Objective != "" {
		return loadAnswer(t)
	}
	goal := fmt.Sprintf("the lowest within %g %% of the best", 100*margin)
	if t.Reach < 1 {
		goal = fmt.Sprintf("the lowest that reaches %g %% of the best, within the margin of %g %%", 100*t.Reach, 100*margin)
	}
	switch {
	case t.Answer == "":
		return "Not known yet: no trial was good."
	case t.Thin:
		return fmt.Sprintf("Not clear yet: %s comes first so far for %s, but there are %s.%s", settings(t, " "), goal, words.FewBlocks, onward(t))
	case t.Stage != tune.Found:
		return fmt.Sprintf("Not clear yet: %s is the most probable for %s (%s).%s", settings(t, " "), goal, percentOf(t.Sure), onward(t))
	}
	out := fmt.Sprintf("Set %s: it is %s, with a confidence of %s.", settings(t, " to "), goal, percentOf(min(t.Sure, 0.99)))
	if t.Best != t.Answer {
		out += fmt.Sprintf(" The best is %s.", t.Best)
	}
	unit := "level"
	if len(t.Factors) > 0 {
		unit = "combination"
	}
	if saved := t.Whole - t.Trials; saved > 0 {
		out += fmt.Sprintf(" That took %s; as many blocks with every %s take %d.", words.Count(t.Trials, "trial"), unit, t.Whole)
	}
	return out
}
