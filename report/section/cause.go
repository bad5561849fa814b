package section

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/ordered"
	"tare/record"
	"tare/report/words"
)

// maxGroups bounds the sentences that say by what a cause is known.
const maxGroups = 8

// Cause is what a cell of a map of causes shows beside its words.
type Cause struct {
	Kind       cause.Name `json:"kind"`
	Confidence float64    `json:"confidence,omitempty"`
	Costs      bool       `json:"costs,omitempty"`
	Undecided  bool       `json:"undecided,omitempty"` // none is known to cost, and one may
	Baseline   bool       `json:"baseline,omitempty"`
	Cells      int        `json:"cells"`              // that it is over
	Findings   []int      `json:"findings,omitempty"` // indices into Result.Causes
}

// Causes says what bounds the cells whose isolation costs, and what the others.
func Causes(r *analyse.Result) *Section {
	s := &Section{ID: "causes", Title: "Causes"}
	if len(r.Causes) == 0 {
		return s
	}
	s.Text(words.CausesSentence(r))
	for _, m := range words.CausesMissing(r) {
		s.Item("", m)
	}
	through(s, r)
	if !Known(r) {
		return s
	}
	maps := CauseMaps(r)
	for i := range maps {
		s.Head(maps[i].Title + ", what causes the cost of each")
		t := *maps[i].Table // without the baseline's row: it costs nothing beside itself
		t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(row []Cell) bool {
			return slices.ContainsFunc(row, func(c Cell) bool { return c.Cause != nil && c.Cause.Baseline })
		})
		s.Table(&t)
	}
	if len(maps) > 0 {
		s.Note("The most frequent cause among the variants with a cost, how many of all have it, and the mean confidence; ?: below " + percentOf(words.Doubtful) + ". " +
			words.NotDecided + ": none is known to have a cost, and this many of all are too noisy, or have too few blocks, to say. no cost: all are as good as the baseline or better.")
	}
	groups := causeGroups(r)
	if len(groups) == 0 {
		return s
	}
	if len(r.Tables) == 0 {
		s.Head("which cells cost, or may cost")
		s.Table(costly(r))
	}
	s.Head("the evidence for each, from the case that costs most")
	for _, g := range groups[:min(len(groups), maxGroups)] {
		s.Item(sentence(r, g))
	}
	if more := len(groups) - maxGroups; more > 0 {
		s.Item("", fmt.Sprintf("and %d more: --csv --causes has all", more))
	}
	return s
}

// through lists what bounds each load that passes through pods of others, whether it costs or not.
func through(s *Section, r *analyse.Result) {
	fixed := fixedCauses(r)
	t := NewTable(1, "work", "in", "bound, confidence", "load's thread", "controller's thread", "backend's thread", "node CPU")
	t.Grouped, t.All = true, "--json"
	said := map[string]bool{}
	var items [][2]string
	for i := range r.Causes {
		f := &r.Causes[i]
		if !f.Through || f.Cause == cause.Unknown {
			continue
		}
		work, in := words.CauseWhere(r, f, fixed)
		row := t.Row(work, in, words.Cause(f), busiest(f, cause.Load), busiest(f, record.EndController), busiest(f, record.EndBackend), mostOf(f, cause.HostInUse, ""))
		if c := words.CauseConfidence(f); c != "-" {
			row[2].Second = c
		}
		if what := words.Cause(f); !said[what] {
			said[what] = true
			items = append(items, [2]string{in + ", " + what, work + ". " + f.Text})
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	s.Head("what limits each load on its way through the controller")
	s.Table(t)
	s.Note("The busiest thread of each part, in percent of a processor, and the fullest node. A thread that waits for a processor, or is throttled, may be full below 100 %. -: not read, or too short-lived to be seen.")
	for _, x := range items[:min(len(items), maxGroups)] {
		s.Item(x[0], x[1])
	}
}

// busiest is the share of a processor that the busiest thread of a part has.
func busiest(f *cause.Finding, part string) string {
	return mostOf(f, cause.BusiestThread, part)
}

// mostOf is the greatest of a part's readings of a name, in percent; of all parts if that is "".
func mostOf(f *cause.Finding, name, part string) string {
	most := math.NaN()
	for _, x := range f.Readings {
		of, _ := record.CopyOf(x.Endpoint)
		if of != record.EndController && of != record.EndBackend {
			of = cause.Load // an end of the study itself
		}
		if x.Name == name && (part == "" || of == part) && x.Value > 0 && !(x.Value <= most) { // 0: no single thread was seen
			most = x.Value
		}
	}
	if math.IsNaN(most) {
		return "-"
	}
	return percentOf(most)
}

// CauseCell is the cell of one finding or of several, by their indices in Result.Causes.
func CauseCell(r *analyse.Result, at []int) Cell {
	list := make([]*cause.Finding, len(at))
	for i, k := range at {
		list[i] = &r.Causes[k]
	}
	t := words.Tally(list)
	c := &Cause{Kind: t.Kind, Confidence: math.Round(100*t.Confidence) / 100, Costs: t.Costs > 0, Undecided: t.Costs == 0 && t.Undecided > 0, Baseline: t.Baseline, Cells: len(at), Findings: at}
	out := Cell{First: t.Word(), Cause: c}
	if len(at) == 0 {
		out.Cause = nil
		return out
	}
	var second []string
	one := len(list) == 1
	if one && list[0].Ratio != nil && !t.Baseline {
		second = append(second, words.CauseCost(list[0]))
	}
	if p := t.Part(); p != "" {
		second = append(second, p)
	}
	named := t.Costs > 0 || t.Baseline // else the word says whether it costs
	switch told := t.Kind != cause.Unknown && t.Kind != cause.Untold && t.Confidence > 0; {
	case !named && one && t.Kind != cause.None && t.Kind != cause.Unknown:
		second = append(second, words.CauseKind(t.Kind, t.Role))
	case !named && !one && !c.Undecided:
		c.Kind = cause.None // what bounds them may be many things
	case named && told:
		second = append(second, percentOf(t.Confidence))
		if t.Confidence < words.Doubtful {
			out.First += " ?"
		}
	}
	out.Second = strings.Join(second, ", ")
	switch {
	case c.Undecided, c.Costs && (t.Kind == cause.Unknown || t.Kind == cause.Untold):
		out.Tone = words.Undecided
	case c.Costs:
		out.Tone = words.Worse
	}
	return out
}

func percentOf(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// causeGroups puts the findings of one treatment with one cause together. Those that cost
// come first, what costs most in all before the rest; then those that may cost. In a
// group the costliest comes first.
func causeGroups(r *analyse.Result) [][]*cause.Finding {
	var groups ordered.Groups[[4]string, *cause.Finding]
	for i := range r.Causes {
		f := &r.Causes[i]
		if !words.Shown(f) || f.Cause == cause.Unknown {
			continue
		}
		groups.Add([4]string{f.Treatment, string(f.Cause), f.Role, words.CauseState(f)}, f)
	}
	out := groups.Lists()
	lost := func(g []*cause.Finding) (sum float64) {
		for _, f := range g {
			sum += loss(f)
		}
		return sum
	}
	for _, g := range out {
		slices.SortStableFunc(g, func(a, b *cause.Finding) int { return cmp.Compare(loss(b), loss(a)) })
	}
	slices.SortStableFunc(out, func(a, b []*cause.Finding) int {
		if a[0].Costs != b[0].Costs {
			return map[bool]int{true: -1, false: 1}[a[0].Costs]
		}
		return cmp.Compare(lost(b), lost(a))
	})
	return out
}

// loss is the logarithm of what a cell loses.
func loss(f *cause.Finding) float64 {
	if f.Ratio == nil || !(*f.Ratio > 0) {
		return 0
	}
	return math.Abs(math.Log(*f.Ratio))
}

// sentence says what decided the costliest of a group.
func sentence(r *analyse.Result, g []*cause.Finding) (lead, text string) {
	worst := g[0]
	text, in := words.CauseWhere(r, worst, fixedCauses(r))
	lead = in + ", " + seen(worst)
	if n := len(g); n > 1 {
		lead += fmt.Sprintf(" (%d cases)", n)
	}
	if worst.Ratio != nil {
		text += fmt.Sprintf(", %s the cost (%s)", words.CauseCost(worst), worst.Response.Name)
	}
	if worst.Undecided {
		text += " after " + words.Count(worst.Trials, "trial")
	}
	if c := words.CauseConfidence(worst); c != "-" {
		text += ", confidence " + c
	}
	text += ". " + strings.TrimSuffix(worst.Text, ".") + "."
	if p := words.CausePrice(worst.Price); p != "" {
		text += " It takes " + p + "."
	}
	return lead, text
}

// seen is a finding's cause, and before it that nothing is decided.
func seen(f *cause.Finding) string {
	if f.Undecided {
		return words.NotDecided + ", " + words.Cause(f)
	}
	return words.Cause(f)
}

// costly lists the cells that cost and those that may cost, one a row.
func costly(r *analyse.Result) *Table {
	t := NewTable(1, "work", "in", "cost", "cause, confidence")
	t.Grouped, t.Words, t.All = true, true, "--csv --causes"
	fixed := fixedCauses(r)
	for i := range r.Causes {
		f := &r.Causes[i]
		if !words.Shown(f) {
			continue
		}
		work, in := words.CauseWhere(r, f, fixed)
		row := t.Row(work, in, "-", seen(f))
		if f.Ratio != nil {
			row[2] = Cell{First: words.CauseCost(f), Second: f.Response.Name}
		}
		if c := words.CauseConfidence(f); c != "-" {
			row[3].Second = c
		}
	}
	return t
}

// fixedCauses are the levels that every stratum with a finding has.
func fixedCauses(r *analyse.Result) record.Cell {
	return words.Fixed(r.Causes, func(x *cause.Finding) record.Cell { return x.Shared })
}
