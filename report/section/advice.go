package section

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/analyse/tune"
	"tare/ordered"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// maxAdvice bounds the items in short; `tare advise` prints all of them.
const maxAdvice = 6

// maxGains bounds an item's there: of a setting in two responses, or of one with what it
// loses elsewhere.
const maxGains = 3

// Advice says what to set, in short and without the patches. That no cause is known is
// said where the causes are. dir is the results folder as the user named it, or "".
func Advice(r *analyse.Result, dir string) *Section {
	s := &Section{ID: "advice", Title: "Advice"}
	items, _ := advice.Together(r.Advice, r.Compare)
	items = slices.DeleteFunc(items, func(x advice.Item) bool { return x.Cause == string(cause.Unknown) })
	if len(items) == 0 {
		return s
	}
	for i := range items[:min(len(items), maxAdvice)] {
		x := &items[i]
		text := x.Text
		if x.Brief {
			text = words.AdviceBrief(r, x)
		} else if leads, gains := words.AdviceGains(r, x); !x.Contradicted {
			for k := range gains[:min(len(gains), maxGains)] {
				text += " " + strings.ToUpper(leads[k][:1]) + leads[k][1:] + ": " + gains[k]
			}
		}
		s.Item(words.AdviceFor(r, x), text)
	}
	all := "All of it, with cells, prices, sources and patches: tare advise " + folder(dir)
	if more := len(items) - maxAdvice; more > 0 {
		all = fmt.Sprintf("And %d more. ", more) + all
	}
	s.Text(all)
	return s
}

// folder names the results folder in a command.
func folder(dir string) string {
	if dir == "" {
		return "DIR"
	}
	return words.Path(dir)
}

// Entries says at length what to set, an entry for each of these items of a result's
// advice. Without items it says why there are none.
func Entries(r *analyse.Result, items []advice.Item) *Section {
	s := &Section{ID: "settings", Title: "What to set"}
	kept, left := advice.Together(items, r.Compare)
	for i := range kept {
		s.Blocks = append(s.Blocks, Block{Entry: entry(r, &kept[i])})
	}
	for i := range items {
		if why, ok := left[i]; ok {
			s.Item("left out", fmt.Sprintf("%s for %s: it %s; set --from to what you run today", strings.TrimSuffix(words.AdviceBrief(r, &items[i]), "."), words.AdviceFor(r, &items[i]), why))
		}
	}
	switch {
	case len(items) > 0:
	case len(r.Compared) == 0:
		s.Text("Nothing has been measured, so there is no advice.")
	case len(r.Causes) == 0:
		s.Text("These results were not searched for causes, so there is no advice.")
	case len(r.Advice) > 0:
		s.Text("There is no advice about such cells.")
	case len(r.Tuned) > 0 && !slices.ContainsFunc(r.Tuned, func(t analyse.Tuned) bool { return t.Stage != tune.Found }):
		where := " The report of these results has them."
		if len(TunedEntries(r)) > 0 { // they stand below, with their patches
			where = ""
		}
		s.Text("The search has found its answers, and nothing more has to be measured." + where)
	default:
		s.Text("No cost is known, and nothing was compared with a baseline: there is nothing to set.")
	}
	return s
}

// entry is one item. What was tried in vain has its figures in its text.
func entry(r *analyse.Result, x *advice.Item) *Entry {
	e := &Entry{Rule: x.Rule, Head: words.AdviceFor(r, x) + ": ", Brief: x.Brief || x.Contradicted, Patches: x.Patches}
	if x.Contradicted {
		e.Tone = words.Undecided
	}
	if e.Brief {
		e.Head += words.AdviceBrief(r, x)
		e.Facts = []Item{{Text: adviceCells(r, x)}, {Lead: "rule", Text: x.Rule}}
		return e
	}
	e.Head += words.AdviceBrief(r, x)
	if r.Modelled {
		e.Head += " (" + words.Modelled + ")"
		e.Patches = modelledPatches(x.Patches)
	}
	add := func(lead, text string) {
		if text != "" {
			e.Facts = append(e.Facts, Item{Lead: lead, Text: text})
		}
	}
	leads, gains := words.AdviceGains(r, x)
	for i := range gains {
		add(leads[i], gains[i])
	}
	add("not proven", x.Unproven)
	price := x.Price
	if r.Modelled { // the head says so
		price = strings.ReplaceAll(price, "modelled: ", "")
	}
	add("price", price)
	add("take care", x.Warning)
	add("why", strings.TrimPrefix(strings.TrimPrefix(x.Text, x.Change), ". "))
	about := words.Count(len(x.Cells), "case")
	if x.Cause != "" {
		about = cmp.Or(words.CauseNameOf(cause.Name(x.Cause)).About, x.Cause) + "; " + about
	}
	add("for", adviceCells(r, x)+" ("+about+")")
	add("rule", x.Rule+", from: "+x.Source)
	if n := len(x.Targets); n > 1 && len(x.Patches) > 0 {
		t := &x.Targets[0]
		add("patches", fmt.Sprintf("from %s to %s, one of %d targets; --json has all", words.Levels(r, t.From, " "), words.Levels(r, t.To, " "), n))
	}
	return e
}

// modelledPatches are patches that a model led to. Each says so wherever it is copied to.
func modelledPatches(list []advice.Patch) []advice.Patch {
	list = slices.Clone(list)
	for i := range list {
		list[i].Text = words.ModelledPatch + "\n" + list[i].Text
	}
	return list
}

// adviceCells lists an item's cells compactly: the workloads, then each factor with the
// levels that occur. What all cells of the study have alike is left out, and what the
// treatment's name says.
func adviceCells(r *analyse.Result, x *advice.Item) string {
	said := fixedLevels(r)
	for i := range r.Treatments {
		if t := &r.Treatments[i]; t.Key == x.Treatment || slices.Contains(x.Treatments, t.Key) {
			said = append(slices.Clone(said), t.Cell...)
		}
	}
	var factors []string
	levels := make(map[string][]string)
	combinations := 1
	for _, c := range x.Cells {
		for _, l := range c {
			if slices.Contains(said, l) {
				continue
			}
			if levels[l.Factor] == nil {
				factors = append(factors, l.Factor)
			}
			levels[l.Factor] = ordered.Add(levels[l.Factor], r.LevelName(l))
		}
	}
	order := levelOrder(r)
	var out []string
	for _, f := range factors {
		combinations *= len(levels[f])
		slices.SortStableFunc(levels[f], func(x, y string) int {
			return cmp.Compare(order[record.Level{Factor: f, Value: x}], order[record.Level{Factor: f, Value: y}])
		})
		if f == study.FactorWorkload {
			out = append(out, words.List(levels[f]))
		} else {
			out = append(out, f+"="+strings.Join(levels[f], ","))
		}
	}
	s := strings.Join(out, ", ")
	switch {
	case s == "":
		return "all its cells"
	case combinations*max(1, len(x.Treatments)) > len(x.Cells): // each in every treatment
		s += ", " + strconv.Itoa(len(x.Cells)) + " of these combinations"
	}
	return s
}

// levelOrder is the place of each level, as shown, among those of its factor: the study's order.
func levelOrder(r *analyse.Result) map[record.Level]int {
	out := make(map[record.Level]int)
	for i := range r.Causes {
		for _, l := range r.Causes[i].Cell {
			shown := record.Level{Factor: l.Factor, Value: r.LevelName(l)}
			if _, ok := out[shown]; !ok {
				out[shown] = len(out)
			}
		}
	}
	return out
}
