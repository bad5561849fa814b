package advice

import (
	"cmp"
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
	Imported  bool   // by another tool: nothing can be measured again
	Factors   []study.Factor
	Traits    map[string]record.Traits       // of the sandboxes, by name
	Workload  func(string) study.Workload    // of a stratum, by its key; nil: nothing is known
	Costs     []cpucost.Cost                 // CPU a unit of work
	Quotas    []cpucost.Quota                // CPU against the quota
	Rule      stat.Rule                      // of intervals and verdicts
	Responses func(string) []record.Response // that a stratum's trials have, by its key; nil: the findings' alone
	Found     func(string) bool              // whether a search found its answer in a stratum, by its key; nil: none was made
	Stopped   func(string) bool              // whether a search there is not finished, and can go on; nil: none was made
	Measured  func(record.Cell, string) bool // whether a cell has values of a response
	Needs     func(record.Cell) int          // more blocks until an undecided cell is decided, as the report says; 0: not known. nil: of none
	Only      func(record.Cell) bool         // cells to advise on; nil: all. Others still tell what a setting is worth
	Modelled  bool                           // a model made the figures, and texts say so
	OnCluster bool                           // the trials ran in a cluster's pods
	On        string                         // the flag of the site that the figures are of; "" for a host

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
	wants  map[string]float64 // the same with what its threads were held back; no entry where that was not read
}

// group is the findings of one rule, treatment and response that have the same levels of
// what the rule sets.
type group struct {
	rule     *Rule
	order    int // of the rule
	list     []*subject
	computed target
	tried    []*trial // what the study measured of it
	chosen   *trial   // of these; nil: none
}

// Build makes the advice: what helps first, of it what was measured to help, and the costliest
// before the others; then what was measured and does not help, then where there is nothing to set.
func Build(in Input) []Item {
	b := &builder{in: in, rules: loaded(), byCell: make(map[string]*cpucost.Cost, len(in.Costs)), used: make(map[string]float64, len(in.Quotas)), wants: make(map[string]float64, len(in.Quotas))}
	for i := range in.Costs {
		b.byCell[in.Costs[i].Cell.Key()] = &in.Costs[i]
	}
	for i := range in.Quotas {
		k := in.Quotas[i].Cell.Key()
		q := &in.Quotas[i]
		b.used[k] = max(b.used[k], q.Cores)
		if !q.Unread {
			b.wants[k] = max(b.wants[k], q.Cores+q.Time)
		}
	}
	groups := b.groups()
	var variances []stat.Variance
	for _, g := range groups {
		g.computed = b.computed(g.rule, g.list)
		g.tried = b.try(g)
		for _, t := range g.tried {
			for _, sum := range t.sums {
				variances = append(variances, stat.Of(sum, ""))
			}
		}
	}
	prior := stat.Predict(variances, "")
	for _, g := range groups {
		g.chosen = b.choose(g, prior)
	}
	groups = b.split(groups, prior)
	var out []Item
	for _, m := range b.merge(groups) {
		out = append(out, b.item(m, prior))
	}
	out = append(out, b.unneeded()...)
	slices.SortStableFunc(out, func(x, y Item) int {
		return cmp.Or(cmp.Compare(class(&x), class(&y)), cmp.Compare(unproven(&x), unproven(&y)), cmp.Compare(y.Weight, x.Weight))
	})
	return append(b.both(prior), out...)
}

// class orders items: settings, what was tried in vain, what little is lost by, cells of
// no known cause, the rest.
func class(x *Item) int {
	switch {
	case x.Cause == "":
		return 4
	case nothingKnown(x.Cause):
		return 3
	case x.Brief:
		return 2
	case x.Contradicted:
		return 1
	}
	return 0
}

// unproven is 0 for what surely gains by what the study measured, so that it goes before what may gain.
func unproven(x *Item) int {
	if slices.ContainsFunc(x.Gains, func(g Gain) bool { return g.Better == record.Lower && g.Hi < 1 || g.Better != record.Lower && g.Lo > 1 }) {
		return 0
	}
	return 1
}

// nothingKnown reports whether no setting can be known for a cause.
func nothingKnown(k string) bool {
	return k == string(cause.None) || k == string(cause.Untold) || k == string(cause.Unknown)
}

// wanted reports whether advice on a cell was asked for.
func (b *builder) wanted(c record.Cell) bool { return b.in.Only == nil || b.in.Only(c) }

// concerns reports whether a finding is one to advise on: of a cost, or of what a cell
// without a baseline is bounded by.
func concerns(f *cause.Finding) bool {
	if f.Baseline || f.Through { // what it names is not the study's to set
		return false
	}
	return f.Costs || f.Ratio == nil && f.Cause != cause.None && f.Cause != cause.Unknown && f.Cause != cause.Untold
}

// groups puts together the findings that one rule speaks of, by treatment, response,
// the levels of what it sets, and the fewest that serve best where the study measured that.
func (b *builder) groups() []*group {
	type key struct {
		rule                int
		treatment, response string
		from, fewest        string
	}
	var out []*group
	at := make(map[key]*group)
	for i := range b.in.Findings {
		if !concerns(&b.in.Findings[i]) || !b.wanted(b.in.Findings[i].Cell) {
			continue
		}
		s := b.subject(i)
		for _, r := range b.match(s) {
			fewest, enough := b.enoughOf(&b.rules.Rules[r], s)
			if enough {
				continue
			}
			k := key{r, s.f.Treatment, s.f.Response.Name, s.from(&b.rules.Rules[r]).Key(), fewest}
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

// rule is that of a name; an empty one where there is none.
func (b *builder) rule(name string) *Rule {
	if i := slices.IndexFunc(b.rules.Rules, func(r Rule) bool { return r.Name == name }); i >= 0 {
		return &b.rules.Rules[i]
	}
	return &Rule{}
}

// cost is a cell's CPU a unit of work; nil where there is none.
func (b *builder) cost(c record.Cell) *cpucost.Cost {
	if len(c) == 0 {
		return nil
	}
	return b.byCell[c.Key()]
}
