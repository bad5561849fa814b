package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
)

// Times writes a cost as a multiple of the baseline's: 2.94 ×.
func Times(v float64) string { return Ratio(v) + " ×" }

// Group is one figure of a workload, such as the rate of rr, in one sandbox: one
// comparison, or several over the levels of other factors.
type Group struct {
	Name string // the workload, and the response where the workload has several
	All  []*analyse.Comparison
	by   [kinds][]*analyse.Comparison
}

// firsts are the workloads that have responses by which the study stops: in sentences only these
// count.
func firsts(r *analyse.Result) map[string]bool {
	out := make(map[string]bool)
	for i := range r.Compared {
		out[r.Compared[i].Workload] = out[r.Compared[i].Workload] || r.Compared[i].First
	}
	return out
}

// Subject is what a comparison weighs: the workload, or the command where one is compared with
// others, which have little in common.
func Subject(c *analyse.Comparison) string {
	command, ok := c.Shared.Get("command")
	if !ok {
		return c.Workload
	}
	if r := []rune(command); len(r) > 24 {
		return string(r[:21]) + "..."
	}
	return command
}

// Groups puts the comparisons of the same workload and response together, in order. Of a
// workload that has first responses, those by which the study stops, only these count.
func Groups(all []*analyse.Comparison) []*Group {
	first := make(map[string]bool)
	for _, c := range all {
		first[c.Workload] = first[c.Workload] || c.First
	}
	at := make(map[[3]string]*Group)
	several := make(map[string]int)
	var out []*Group
	for _, c := range all {
		if first[c.Workload] && !c.First {
			continue
		}
		command, _ := c.Shared.Get("command")
		k := [3]string{c.Workload, command, c.Response.Name}
		g := at[k]
		if g == nil {
			g = &Group{Name: Subject(c)}
			at[k] = g
			several[c.Workload+command]++
			out = append(out, g)
		}
		g.All = append(g.All, c)
		g.by[kindOf(c)] = append(g.by[kindOf(c)], c)
	}
	for _, g := range out {
		c := g.All[0]
		if command, _ := c.Shared.Get("command"); several[c.Workload+command] > 1 {
			g.Name += " " + c.Response.Name
		}
	}
	return out
}

// kind is the one that a group is listed under: what costs comes before what is unknown.
func (g *Group) kind() kind {
	for k := range kinds {
		if len(g.by[k]) > 0 {
			return k
		}
	}
	return noValue
}

// Cost writes what a group costs, for a cell of a table: the cost or the range of costs,
// how sure one cost is, and the verdict, "" where there is none. More is always worse.
func (g *Group) Cost() (first, second string, v stat.Verdict) {
	k := g.kind()
	list := g.by[k]
	one := list[0]
	switch v = shown(one); k {
	case few:
		if v == stat.TooFew || slices.ContainsFunc(list, func(c *analyse.Comparison) bool { return shown(c) != v }) {
			return noise(list), "", stat.TooFew // some perhaps cost more, others less
		}
		fallthrough
	case worse, better, differs:
		lo, hi := span(list)
		if first = Ratio(lo); first != Ratio(hi) {
			first += "–" + Ratio(hi)
		}
		switch _, from, to := one.Estimate.Cost(one.Response.Better); {
		case len(list) > 1 || to == 0:
		case one.Estimate.HalfWidth() <= 0.5:
			second = "±" + strconv.FormatFloat(100*one.Estimate.HalfWidth(), 'g', 2, 64) + " %"
		default:
			second = Ratio(from) + "–" + Ratio(to)
		}
		return first + " ×", second, v
	case equal:
		return Free, "", v
	case bounded:
		return "≤ " + ceil(bound(list)), "", v
	case undecided:
		return noise(list), "", v
	}
	return said()[k], "", ""
}

// bound is the share of the baseline above which none of a list costs.
func bound(list []*analyse.Comparison) (most float64) {
	for _, c := range list {
		most = max(most, c.Estimate.Bound)
	}
	return most
}

// Free is said of what costs as much as the baseline, within the margin.
const Free = "free"

// NoCostAbove says that a cost is surely below a share of the baseline's.
func NoCostAbove(share float64) string { return "no cost above " + ceil(share) }

// ceil writes a bound in per cent, rounded up: 4 %, and below 1 % to a tenth.
func ceil(share float64) string {
	step := 1.0
	if share < 0.01 {
		step = 0.1
	}
	return strconv.FormatFloat(math.Ceil(100*share/step-1e-9)*step, 'g', 3, 64) + " %"
}

// TooFew stands in place of an interval that takes more blocks: no wider than one, so that a table
// stays as wide.
const TooFew = "few blocks"

// noise is the range that the intervals of what is undecided span.
func noise(list []*analyse.Comparison) string {
	lo, hi := math.Inf(1), 0.0
	for _, c := range list {
		if _, a, b := c.Estimate.Cost(c.Response.Better); b > 0 {
			lo, hi = min(lo, a), max(hi, b)
		}
	}
	if hi == 0 {
		return TooFew
	}
	return Ratio(lo) + "–" + Ratio(hi)
}

// span is the range of costs.
func span(list []*analyse.Comparison) (lo, hi float64) {
	lo = math.Inf(1)
	for _, c := range list {
		x := cost(c)
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// costs says in one sentence what a treatment costs, or several of one sandbox; names
// bounds how many workloads each clause names. short says only the most important.
func costs(all []*analyse.Comparison, names int) (t Tone, text, short string) {
	var n [kinds]int
	var by [kinds][]*Group
	groups := Groups(all)
	for _, g := range groups {
		by[g.kind()] = append(by[g.kind()], g)
	}
	for _, c := range all {
		n[kindOf(c)]++
	}
	if n[skipped] == len(all) {
		return Note, "skipped: " + strings.TrimSuffix(all[0].Skipped, ".") + ".", said()[skipped] + "."
	}
	var clauses []string
	if more, c := largest(all); c != nil && len(by[worse]) == 0 { // nothing of the first responses is known to cost more, but of further ones
		clauses = append(clauses, fmt.Sprintf("%s the cost in %s %s, the largest of %s that cost more", Times(cost(c)), Subject(c), c.Response.Name, Count(more, "further response")))
		if more == 1 {
			clauses[0] = fmt.Sprintf("%s the cost in %s %s", Times(cost(c)), Subject(c), c.Response.Name)
		}
	}
	for _, k := range told() {
		list := by[k]
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, b *Group) int { return cmp.Compare(away(b.by[k]), away(a.by[k])) })
		clauses = append(clauses, clause(k, list, names))
	}
	for k := range kinds { // as the tone
		if list := by[k]; len(list) > 0 {
			short = brief(k, list) + "."
			break
		}
	}
	return tone(n), strings.Join(clauses, "; ") + ".", short
}

// brief is a clause that names only the group farthest from 1.
func brief(k kind, list []*Group) string {
	lo, hi := span(list[0].by[k])
	most, of := "", " ("+list[0].Name+")"
	if len(list) > 1 || Ratio(lo) != Ratio(hi) {
		most = "up to "
	}
	switch r := list[0].by[k][0].Response; {
	case k == worse:
		return most + Times(hi) + " the cost" + of
	case k == better && quick(r):
		return most + Times(1/lo) + " faster" + of
	case k == better:
		return most + Times(1/lo) + " less " + r.Name + of
	}
	return clause(k, list, 1)
}

// away is how far the farthest cost is from 1, as a logarithm.
func away(list []*analyse.Comparison) float64 {
	most := 0.0
	for _, c := range list {
		most = max(most, min(math.Abs(math.Log(cost(c))), 100))
	}
	return most
}

// clause says what some groups of one kind come to.
func clause(k kind, list []*Group, names int) string {
	items := make([]string, 0, len(list))
	if len(list) == names+1 {
		names++ // a name is no longer than "1 more"
	}
	for i, g := range list[:min(len(list), names)] {
		name := g.Name
		if n := len(g.by[k]); n < len(g.All) {
			name += fmt.Sprintf(" (%d of %d)", n, len(g.All))
		}
		lo, hi := span(g.by[k])
		x := hi
		if k == better {
			x = 1 / lo
		}
		figure := Times(x)
		if len(g.by[k]) > 1 && Ratio(lo) != Ratio(hi) && k != differs {
			figure = "up to " + figure
		}
		c := g.by[k][0]
		switch {
		case k == worse && i == 0:
			name = figure + " the cost in " + name
		case k == worse:
			name = figure + " in " + name
		case k == better && quick(c.Response):
			name = figure + " faster in " + name
		case k == better:
			name = figure + " less " + c.Response.Name + " in " + name
		case k == differs:
			name = figure + " the " + c.Response.Name + " in " + name
		}
		items = append(items, name)
	}
	if more := len(list) - len(items); more > 0 {
		items = append(items, fmt.Sprintf("%d more", more))
	}
	head := ""
	switch k {
	case equal:
		head = Free + ": "
	case bounded:
		most := 0.0
		for _, g := range list {
			most = max(most, bound(g.by[k]))
		}
		head = NoCostAbove(most) + " in "
	case few:
		head = "too few blocks to be sure in "
	case undecided:
		head = "too noisy to say in "
	case noRatio, belowNoise, failed, noValue, skipped:
		head = said()[k] + ": "
	}
	return head + List(items)
}

// quick reports whether less of a figure's cost is called faster: of times and rates.
func quick(r record.Response) bool {
	return r.Unit == record.Second || r.Better == record.Higher
}

// varying are the factors that tell the strata of one workload apart.
func varying(r *analyse.Result) map[string][]string {
	first := make(map[string]record.Cell)
	out := make(map[string][]string)
	for i := range r.Compared {
		c := &r.Compared[i]
		f, ok := first[c.Workload]
		if !ok {
			first[c.Workload] = c.Shared
			continue
		}
		for _, l := range c.Shared {
			if v, has := f.Get(l.Factor); (!has || v != l.Value) && !slices.Contains(out[c.Workload], l.Factor) {
				out[c.Workload] = append(out[c.Workload], l.Factor)
			}
		}
	}
	return out
}

// name is the workload, and the levels that tell its strata apart.
func name(r *analyse.Result, c *analyse.Comparison, vary map[string][]string) string {
	s := c.Workload
	for _, l := range c.Shared {
		if l.Factor != "workload" && slices.Contains(vary[c.Workload], l.Factor) {
			s += " " + l.Factor + "=" + r.LevelName(l)
		}
	}
	return s
}
