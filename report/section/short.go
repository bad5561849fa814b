package section

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// Bounds of the answer that fits a screen.
const (
	shortWarnings = 4
	shortAdvice   = 3
)

// Short lists the sections of the answer that fits a screen: what to beware of, a sentence
// for each sandbox, a table of costs, the settings most worth making, and where the rest is.
// dir is the results folder as the user named it, or "".
func Short(r *analyse.Result, hosts []record.Host, dir string) []*Section {
	head := &Section{ID: "head"}
	head.Text(title(r))
	warnings := matters(r, hosts)
	for _, w := range warnings[:min(len(warnings), shortWarnings)] {
		head.Item(w.Lead, w.Text)
	}
	if len(r.Tuned) > 0 { // the level is the answer, and costs beside the first level are not
		return []*Section{head, tunedAnswers(r), ended(r, dir)}
	}
	if alone(r) {
		if len(r.LoadSteps) == 0 {
			return []*Section{head, Results(r), ended(r, dir)}
		}
		return []*Section{head, Answer(r), withoutSteps(r), steps(r, true), ended(r, dir)}
	}
	return []*Section{head, Answer(r), Costs(r), steps(r, true), Settings(r), ended(r, dir)}
}

// withoutSteps are the results of the workloads that have no steps, such as one that could not run.
func withoutSteps(r *analyse.Result) *Section {
	rest := *r
	rest.Compared = slices.DeleteFunc(slices.Clone(r.Compared), func(c analyse.Comparison) bool {
		return slices.ContainsFunc(r.LoadSteps, func(x analyse.LoadStep) bool { return x.Cell.Key() == c.Cell.Key() })
	})
	if len(rest.Compared) == 0 {
		return &Section{}
	}
	return Results(&rest)
}

// alone reports whether a study has only the baseline. A study that loads a cluster may have no other sandbox.
func alone(r *analyse.Result) bool {
	return len(r.Compared) > 0 && !slices.ContainsFunc(r.Compared, func(c analyse.Comparison) bool { return !c.Baseline })
}

// title says what was measured.
func title(r *analyse.Result) string {
	what := study.FactorSandbox
	if !words.BySandbox(r) {
		what = "level of " + r.Compare
	}
	s := fmt.Sprintf("%s: what each %s costs compared with %s, %s", r.Study, what, words.Base(r), words.Count(r.Trials, "trial"))
	if alone(r) {
		s = fmt.Sprintf("%s: %s in %s", r.Study, words.Count(r.Trials, "trial"), words.Base(r))
	}
	if r.Failed > 0 {
		s += fmt.Sprintf(", %d of them failed", r.Failed)
	}
	return s
}

// matters are the warnings that change what the figures are worth, the gravest first.
func matters(r *analyse.Result, hosts []record.Host) []Item {
	var out []Item
	add := func(lead, text string) {
		out = ordered.Add(out, Item{Lead: lead, Text: text})
	}
	if r.Modelled {
		add("MODELLED, not measured", strings.TrimPrefix(words.ModelledAbout, "Modelled, not measured: "))
	}
	if r.Sentinel != nil {
		if busy := r.Sentinel.Busy(); busy != "" {
			add("busy host", busy)
		}
	}
	if len(r.Epochs) > 0 {
		add("changing host", "the host changed while the study ran; blocks from before and after a change are not mixed")
	}
	for _, line := range failedShort(r) {
		add("", line)
	}
	for _, i := range Fair(r).Blocks {
		for _, x := range i.List {
			if x.Lead != "" {
				add("not alike", x.Lead)
			}
		}
	}
	for _, b := range Warnings(r, hosts).Blocks {
		for _, i := range b.List {
			add(i.Lead, i.Text)
		}
	}
	if c := words.Accelerators(r); strings.HasPrefix(c, "TCG") {
		add("", c)
	}
	return out
}

// mostCosts is the most rows of the table of costs with a row for each workload variant.
const mostCosts = 12

// costNames returns a function that names the row of a comparison. The name is the workload variant if the table has room for
// all variants, and the workload otherwise. A command is its own name.
func costNames(r *analyse.Result) func(*analyse.Comparison) string {
	whole := func(c *analyse.Comparison) string { return words.Subject(c) + " " + c.Response.Name }
	fixed, rows, variants := fixedLevels(r), 0, make(map[string][]string)
	for i := range r.Compared {
		c := &r.Compared[i]
		if _, command := c.Shared.Get("command"); command {
			return whole
		}
		if c.First && !slices.Contains(variants[c.Workload], c.Stratum) {
			variants[c.Workload] = append(variants[c.Workload], c.Stratum)
			rows++
		}
	}
	if rows > mostCosts {
		return whole
	}
	return func(c *analyse.Comparison) string {
		if len(variants[c.Workload]) < 2 {
			return whole(c)
		}
		return words.Stratum(r, c.Workload, c.Shared, fixed) + " " + c.Response.Name
	}
}

// Costs returns the table of costs, with a row for each workload variant and a column for each of words.Sides. If
// there are too many variants, it has a row for each workload, with the range of the workload's variants.
func Costs(r *analyse.Result) *Section {
	s := &Section{ID: "costs"}
	name, first := costNames(r), make(map[string]bool)
	for i := range r.Compared {
		first[r.Compared[i].Workload] = first[r.Compared[i].Workload] || r.Compared[i].First
	}
	baseline, sides := words.Sides(r)
	sides = withoutSkipped(r, sides)
	rows := make(map[string]map[*words.Side]*words.Group) // by workload and response
	base := make(map[string]string)
	var order []string
	for i := range r.Compared {
		if c := &r.Compared[i]; c.Baseline && c.Level.N > 0 {
			k := name(c)
			if v := words.Typical(&c.Level, c.Response.Shown()); base[k] == "" {
				base[k] = v
			} else {
				base[k] = "-" // several: none is the one
			}
		}
	}
	for _, l := range sides {
		var list []string
		of := make(map[string][]*analyse.Comparison)
		for i := range r.Compared {
			c := &r.Compared[i]
			if l.Has(c) && (c.First || !first[c.Workload]) {
				k := name(c)
				list = ordered.Add(list, k)
				of[k] = append(of[k], c)
			}
		}
		for _, k := range list {
			if rows[k] == nil {
				rows[k] = make(map[*words.Side]*words.Group)
				order = append(order, k)
			}
			rows[k][l] = words.Groups(of[k])[0] // all are of one response
		}
	}
	if len(order) == 0 {
		return s
	}
	what := "times " + r.Baseline + "'s cost"
	if !words.BySandbox(r) {
		what = "times the cost with " + words.Base(r)
	}
	t := NewTable(1, what, baseline)
	t.Sparing, t.All = true, "--full"
	for _, l := range sides {
		t.Add(l.Name)
	}
	seen := make(map[stat.Verdict]bool)
	for _, k := range order {
		row := t.Row(k, cmp.Or(base[k], "-"))
		for i, l := range sides {
			if g := rows[k][l]; g != nil {
				var v stat.Verdict
				row[2+i], v = costsCell(g)
				seen[v] = true
			} else {
				row[2+i].First = "-"
			}
		}
	}
	s.Table(t)
	var signs []Sign
	for _, v := range Verdicts() {
		if seen[v] {
			signs = append(signs, SignOf(v))
		}
	}
	if len(signs) > 0 {
		s.Blocks = append(s.Blocks, Block{Signs: signs})
	}
	return s
}

// withoutSkipped leaves out the sides that no cell of could run, which the answer names: they would take the room of others.
func withoutSkipped(r *analyse.Result, sides []*words.Side) []*words.Side {
	rest := slices.DeleteFunc(slices.Clone(sides), func(l *words.Side) bool {
		return !slices.ContainsFunc(r.Compared, func(c analyse.Comparison) bool { return l.Has(&c) && c.Skipped == "" })
	})
	if len(rest) == 0 {
		return sides
	}
	return rest
}

// costsCell is a group's cell, and the verdict that its sign stands for.
func costsCell(g *words.Group) (Cell, stat.Verdict) {
	first, second, v := g.Cost()
	if v == "" {
		return Cell{First: first}, v
	}
	sign := SignOf(v)
	if !strings.HasPrefix(first, sign.Mark) {
		first += " " + sign.Mark
	}
	return Cell{First: first, Second: second, Tone: sign.Tone}, v
}

// Settings are the few settings most worth making.
func Settings(r *analyse.Result) *Section {
	s := &Section{ID: "advice", Title: "Most worth setting"}
	told := map[string]bool{} // two rules may lead to one setting
	items, _ := advice.Together(r.Advice, r.Compare)
	for i := range items {
		x := &items[i]
		setting := words.AdviceFor(r, x) + " " + x.Sets.Key()
		if !worthSetting(x) || len(x.Sets) > 0 && told[setting] || len(told) == shortAdvice {
			continue
		}
		if len(x.Sets) == 0 {
			setting = x.Rule
		}
		told[setting] = true
		s.Item(words.AdviceFor(r, x), words.AdviceShort(r, x))
	}
	return s
}

// worthSetting reports whether an item is a change that can be made.
func worthSetting(x *advice.Item) bool {
	return !x.Contradicted && !x.Brief && (len(x.Sets) > 0 || len(x.Patches) > 0)
}

// goOn returns the command that continues a study. Results of an earlier tare lack the flags that a cluster needs, such as
// --tare-image.
func goOn(r *analyse.Result, dir string) string {
	out := strings.TrimSpace("Go on: tare run " + folder(dir) + " " + r.On())
	if r.OnCluster && r.Flags == "" {
		out += ", with the other flags of the first run"
	}
	return out
}

// ended says how far the study is and where the rest of the report is.
func ended(r *analyse.Result, dir string) *Section {
	s := &Section{ID: "ending"}
	next := words.State(r) + "."
	if !r.Finished {
		next += " " + goOn(r, dir) + "."
	}
	if of := needing(r); r.Finished && len(of) > 0 {
		c := of[0]
		next += fmt.Sprintf(" Of %s, %s %s is the nearest: it would need %s.", open(of),
			words.Stratum(r, c.Workload, c.Shared, fixedLevels(r)), words.TreatmentOf(r, c.Treatment), c.Needs)
	}
	s.Text(next)
	s.Text("All tables and reasons: tare report " + folder(dir) + " --full")
	if slices.ContainsFunc(r.Tuned, func(t analyse.Tuned) bool { return len(t.Patches) > 0 }) {
		s.Text("The patches that set the answers: tare advise " + folder(dir))
	}
	n := 0
	for i := range r.Advice {
		if worthSetting(&r.Advice[i]) {
			n++
		}
	}
	switch {
	case n > 0:
		s.Text(fmt.Sprintf("%s, with patches: tare advise %s", words.Count(n, "setting"), folder(dir)))
	case len(r.Advice) > 0 && !r.Imported:
		s.Text("What to measure next: tare advise " + folder(dir))
	}
	return s
}
