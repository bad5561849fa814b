package advice

import (
	"cmp"
	"math"
	"slices"

	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// Input is what an analysis found.
type Input struct {
	Findings  []cause.Finding
	Compare   string // the compared factor
	Baseline  string // its level
	Factors   []study.Factor
	Sandboxes []study.Sandbox                // the study's own
	Workload  func(string) study.Workload    // of a stratum, by its key; nil: nothing is known
	Costs     []cpucost.Cost                 // CPU a unit of work
	Quotas    []cpucost.Quota                // CPU against the quota
	Rule      stat.Rule                      // of intervals and verdicts
	Measured  func(record.Cell, string) bool // whether a cell has values of a response

	// Mean sums up the ratios of the geometric mean of the others to the base, over the
	// blocks that have all of them.
	Mean func(base record.Cell, others []record.Cell, response string) stat.Summary
}

// builder makes the advice of one study.
type builder struct {
	in     Input
	rules  table
	byCell map[string]*cpucost.Cost
	used   map[string]float64 // cores against a quota, of the end that uses more, by cell
}

// group is what becomes one item.
type group struct {
	rule     *Rule
	order    int // of the rule
	list     []*subject
	computed target
	tried    []*trial // what the study measured of it
}

// Build makes the advice: what helps first, the costliest of it before the others, then
// what was measured and does not help, then where there is nothing to set.
func Build(in Input) []Item {
	b := &builder{in: in, rules: loaded(), byCell: make(map[string]*cpucost.Cost, len(in.Costs)), used: make(map[string]float64, len(in.Quotas))}
	for i := range in.Costs {
		b.byCell[in.Costs[i].Cell.Key()] = &in.Costs[i]
	}
	for i := range in.Quotas {
		k := in.Quotas[i].Cell.Key()
		b.used[k] = max(b.used[k], in.Quotas[i].Cores)
	}
	groups := b.groups()
	var s2, df []float64
	for _, g := range groups {
		g.computed = b.computed(g.rule, g.list)
		g.tried = b.try(g)
		for _, t := range g.tried {
			for _, sum := range t.sums {
				if sum.Undefined == "" && sum.N > 1 {
					s2, df = append(s2, sum.Var), append(df, float64(sum.N-1))
				}
			}
		}
	}
	prior := stat.Moderate(s2, df)
	var out []Item
	for _, g := range groups {
		out = append(out, b.item(g, prior))
	}
	out = append(out, b.unneeded()...)
	slices.SortStableFunc(out, func(x, y Item) int {
		return cmp.Or(cmp.Compare(class(&x), class(&y)), cmp.Compare(y.Weight, x.Weight))
	})
	return out
}

// class orders items: settings, what was tried in vain, cells of no known cause, the rest.
func class(x *Item) int {
	switch {
	case x.Contradicted:
		return 1
	case x.Cause == "":
		return 3
	case x.Cause == string(cause.None), x.Cause == string(cause.Untold), x.Cause == string(cause.Unknown):
		return 2 // nothing is known to be set
	}
	return 0
}

// concerns reports whether a finding is one to advise on: of a cost, or of what a cell
// without a baseline is bounded by.
func concerns(f *cause.Finding) bool {
	if f.Baseline {
		return false
	}
	return f.Costs || f.Ratio == nil && f.Cause != cause.None && f.Cause != cause.Unknown && f.Cause != cause.Untold
}

// groups puts together the findings that one rule speaks of, by treatment and response.
func (b *builder) groups() []*group {
	type key struct {
		rule                int
		treatment, response string
	}
	var out []*group
	at := make(map[key]*group)
	for i := range b.in.Findings {
		if !concerns(&b.in.Findings[i]) {
			continue
		}
		s := b.subject(i)
		for _, r := range b.match(s) {
			k := key{r, s.f.Treatment, s.f.Response.Name}
			g := at[k]
			if g == nil {
				g = &group{rule: &b.rules.Rules[r], order: r}
				at[k] = g
				out = append(out, g)
			}
			g.list = append(g.list, s)
		}
	}
	slices.SortStableFunc(out, func(x, y *group) int { return cmp.Compare(x.order, y.order) })
	return out
}

// item is what a group comes to.
func (b *builder) item(g *group, prior stat.Prior) Item {
	s := g.list[0]
	out := Item{Rule: g.rule.Name, Treatment: s.f.Treatment, Cause: string(s.f.Cause), NotWith: g.rule.NotWith, Weight: weight(g.list)}
	out.Source = sources(g.rule.Source)
	for _, s := range g.list {
		out.Cells = append(out.Cells, s.f.Cell)
	}
	chosen := b.choose(g, prior)
	to := g.computed
	if chosen != nil {
		to = chosen.to
		out.Gain = chosen.gain(s.f.Response.Name)
	}
	out.Sets = b.sets(to)
	f := b.filler(g, to)
	switch {
	case chosen != nil && chosen.against():
		out.Contradicted = true
		out.Text = f.text(g.rule.Does) + ": " + chosen.why(s.f.Response.Name)
	default:
		out.Text, out.Warning = f.text(g.rule.Text), f.text(g.rule.Warning)
		out.Patches = f.patches()
		if chosen != nil && chosen.proven() { // there is nothing left to measure
			out.Patches = slices.DeleteFunc(out.Patches, func(p Patch) bool { return p.For == "study" })
		}
		out.Unproven = b.unproven(g, chosen, f)
	}
	out.Price = b.price(g, chosen, f)
	return out
}

// sets are the levels that a target changes to, where they are levels.
func (b *builder) sets(to target) record.Cell {
	var out record.Cell
	for _, l := range to {
		out = append(out, record.Level{Factor: l.Factor, Value: l.Value})
	}
	return out
}

// weight is what the cells lose together: the summed logarithm of their ratios.
func weight(list []*subject) float64 {
	sum := 0.0
	for _, s := range list {
		if r := s.f.Ratio; s.f.Costs && r != nil && *r > 0 && !math.IsInf(*r, 0) {
			sum += math.Abs(math.Log(*r))
		}
	}
	return sum
}

// unneeded are the treatments of which no cell costs anything.
func (b *builder) unneeded() []Item {
	i := slices.IndexFunc(b.rules.Rules, func(r Rule) bool { return len(r.Causes) == 0 })
	if i < 0 {
		return nil
	}
	rule := &b.rules.Rules[i]
	var out []Item
	at := make(map[string]int)
	costs := make(map[string]bool)
	for i := range b.in.Findings {
		f := &b.in.Findings[i]
		if f.Baseline {
			continue
		}
		costs[f.Treatment] = costs[f.Treatment] || f.Costs
		if f.Ratio == nil {
			continue
		}
		k, ok := at[f.Treatment]
		if !ok {
			k = len(out)
			at[f.Treatment] = k
			out = append(out, Item{Rule: rule.Name, Source: sources(rule.Source), Treatment: f.Treatment, Text: rule.Text})
		}
		out[k].Cells = append(out[k].Cells, f.Cell)
	}
	return slices.DeleteFunc(out, func(x Item) bool { return costs[x.Treatment] })
}

// cost is a cell's CPU a unit of work; nil where there is none.
func (b *builder) cost(c record.Cell) *cpucost.Cost {
	if len(c) == 0 {
		return nil
	}
	return b.byCell[c.Key()]
}
