package section

import (
	"fmt"
	"slices"

	"tare/analyse"
	"tare/analyse/tune"
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
		if i == 0 {
			s.About = fmt.Sprintf("share of the best level's value, with %g %% intervals", 100*r.Confidence)
		}
		s.Head(tunedHead(r, t, fixed))
		s.Text(tunedAnswer(t, r.Margin))
		table := NewTable(1, t.Factor, "of the best", "interval", "blocks", "chance")
		for _, l := range t.Levels {
			if l.Blocks == 0 {
				table.Row(l.Level, "-", "", "0")
				continue
			}
			table.Row(l.Level, percentOf(l.Share), percentOf(l.Lo)+" to "+percentOf(l.Hi), fmt.Sprint(l.Blocks), percentOf(l.Chance))
		}
		s.Table(table)
		if len(t.Mix) > 0 {
			s.Table(tunedMix(r, t, fixed))
		}
		if e := (Entry{Head: fmt.Sprintf("Set %s to %s", t.Factor, t.Answer), Patches: t.Patches}); len(t.Patches) > 0 {
			s.Blocks = append(s.Blocks, Block{Entry: &e})
		}
	}
	s.Note("chance: the probability that the level is the lowest that suffices. A level without blocks could not change the answer.")
	return s
}

// tunedHead names what a level is for.
func tunedHead(r *analyse.Result, t *analyse.Tuned, fixed record.Cell) string {
	if len(t.Mix) == 0 {
		return words.Stratum(r, t.Workload, t.Shared, fixed) + ", " + t.Response
	}
	var names []string
	for _, p := range t.Mix {
		if !slices.Contains(names, p.Workload) {
			names = append(names, p.Workload)
		}
	}
	return "the mix of " + words.List(names)
}

// tunedMix says what the answer gives each part of a mix.
func tunedMix(r *analyse.Result, t *analyse.Tuned, fixed record.Cell) *Table {
	table := NewTable(1, "at "+t.Factor+" "+t.Answer, "weight", "of its own best", "its own best level")
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
	}
	return s
}

// tunedAnswer is the answer in words, or how far the search is.
func tunedAnswer(t *analyse.Tuned, margin float64) string {
	goal := fmt.Sprintf("the lowest within %g %% of the best", 100*margin)
	if t.Reach < 1 {
		goal = fmt.Sprintf("the lowest that reaches %g %% of the best", 100*t.Reach)
	}
	switch {
	case t.Answer == "":
		return "Not known yet: no trial was good."
	case t.Stage != tune.Found:
		return fmt.Sprintf("Not clear yet: %s %s is the most probable level for %s (%s). Run more blocks.", t.Factor, t.Answer, goal, percentOf(t.Sure))
	}
	out := fmt.Sprintf("Set %s to %s: it is %s, with a confidence of %s.", t.Factor, t.Answer, goal, percentOf(min(t.Sure, 0.99)))
	if t.Best != t.Answer {
		out += fmt.Sprintf(" The best is %s.", t.Best)
	}
	if saved := t.Whole - t.Trials; saved > 0 {
		out += fmt.Sprintf(" That took %s; as many blocks with every level take %d.", words.Count(t.Trials, "trial"), t.Whole)
	}
	return out
}
