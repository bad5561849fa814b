package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// both says, of each sandbox whose cells show it, that more vCPUs at boot and a CPU limit
// are not to be set together: without a limit more of them are surely better than the
// fewest, and under a limit surely worse. It looks at what was measured, and at no cause.
func (b *builder) both(prior stat.Prior) []Item {
	if b.in.Mean == nil || b.in.Measured == nil {
		return nil
	}
	near := b.near()
	var order []string
	by := make(map[string]map[string][]*subject) // by level of the compared factor and response
	native := make(map[string]record.Cell)       // the baseline's cell, by stratum
	for i := range b.in.Findings {
		f := &b.in.Findings[i]
		if f.Baseline {
			native[f.Stratum] = f.Cell
			continue
		}
		level, _ := f.Cell.Get(b.in.Compare)
		if _, ok := f.Cell.Get(factorVCPUs); !ok {
			continue
		}
		if _, ok := f.Cell.Get(study.FactorCPULimit); !ok {
			continue
		}
		if near != nil && !near[unsized(f.Cell)] {
			continue
		}
		if by[level] == nil {
			order = append(order, level)
			by[level] = make(map[string][]*subject)
		}
		by[level][f.Response.Name] = append(by[level][f.Response.Name], b.subject(i))
	}
	var out []Item
	for _, level := range order {
		if x := b.bothOf(by[level], native, prior); x != nil {
			out = append(out, *x)
		}
	}
	return out
}

// bothOf is the item of one sandbox, from its cells by response; nil where they do not
// show both ends of the rule.
func (b *builder) bothOf(cells map[string][]*subject, native map[string]record.Cell, prior stat.Prior) *Item {
	rule := b.rule("vcpus-or-limit")
	out := Item{Rule: rule.Name, Source: sources(rule.Source), Weight: 0}
	g := &group{rule: rule}
	f := b.filler(g, nil)
	type story struct {
		worth float64
		gains []Gain
	}
	var stories []story
	for _, r := range slices.Sorted(maps.Keys(cells)) {
		list := cells[r]
		free := b.raised(list, none, prior)
		if free == nil || !free.chosen.proven() {
			continue
		}
		var worst *trial
		var lost []*subject
		at := ""
		for _, limit := range b.levels(study.FactorCPULimit) {
			u := b.raised(list, limit, prior)
			if limit == none || u == nil {
				continue
			}
			for _, t := range u.tried {
				if t.verdict != stat.Slower {
					continue
				}
				lost = append(lost, having(list, limit, t.to[0].Value)...)
				if worst == nil || t.worth < worst.worth {
					worst, at = t, limit
				}
			}
		}
		if worst == nil {
			continue
		}
		g.list = append(g.list, lost...)
		best := free.chosen.to[0].Value
		f.moves = append(f.moves, move{nil, free.chosen.to, nil})
		beside := &trial{response: r, better: free.chosen.better}
		for _, s := range having(list, none, best) {
			if c := native[s.f.Stratum]; c != nil && b.in.Measured(c, r) && b.in.Measured(s.f.Cell, r) {
				beside.pairs = append(beside.pairs, pair{c, s.f.Cell})
			}
		}
		beside.sum(b, r)
		b.judge(beside, prior, len(free.tried))
		stories = append(stories, story{free.chosen.worth, told(free, beside, worst, at)})
	}
	g.list = slices.DeleteFunc(g.list, func(s *subject) bool { return !b.wanted(s.f.Cell) })
	if len(stories) == 0 || len(g.list) == 0 { // or it was measured, and nothing says of what
		return nil
	}
	slices.SortStableFunc(stories, func(x, y story) int { return cmp.Compare(y.worth, x.worth) })
	for _, s := range stories {
		out.Gains = append(out.Gains, s.gains...)
	}
	if len(out.Gains) > 0 {
		out.Gain = &out.Gains[0]
	}
	for _, s := range g.list {
		out.Cells, out.Treatments = append(out.Cells, s.f.Cell), append(out.Treatments, s.f.Treatment)
	}
	out.Treatments = unique(out.Treatments)
	out.Treatment, out.Weight = out.Treatments[0], weight(g.list)
	slices.SortStableFunc(g.list, func(x, y *subject) int { return byNumber(x.level(study.FactorCPULimit), y.level(study.FactorCPULimit)) })
	out.Change, out.Price = f.text(rule.Change), f.text(rule.Price)
	out.Text = sentence(out.Change, f.text(rule.Why))
	return &out
}

// near are the cells asked for, whatever their sizes: only cells that differ from one of
// them in vCPUs and limit say something of it. nil: all.
func (b *builder) near() map[string]bool {
	if b.in.Only == nil {
		return nil
	}
	out := make(map[string]bool)
	for i := range b.in.Findings {
		if c := b.in.Findings[i].Cell; b.in.Only(c) {
			out[unsized(c)] = true
		}
	}
	return out
}

// unsized is the key of a cell whatever its vCPUs and limit.
func unsized(c record.Cell) string {
	return target{{Factor: factorVCPUs}, {Factor: study.FactorCPULimit}}.moved(c).Key()
}

// told are the gains of one response: of the best number without a limit to the fewest,
// of it to the baseline, and what the worst loses under a limit.
func told(free *group, beside, worst *trial, limit string) []Gain {
	fewest, best := free.list[0].level(factorVCPUs), free.chosen.to[0].Value
	var out []Gain
	for _, x := range []struct {
		t          *trial
		with, than string
	}{
		{free.chosen, fmt.Sprintf("default_vcpus=%s and no limit", best), "with default_vcpus=" + fewest},
		{beside, fmt.Sprintf("default_vcpus=%s and no limit", best), "the baseline's"},
		{worst, fmt.Sprintf("cpu-limit=%s and default_vcpus=%s", limit, worst.to[0].Value), "with default_vcpus=" + fewest},
	} {
		if g := x.t.gain(x.t.response); g != nil {
			g.With, g.Than = x.with, x.than
			out = append(out, *g)
		}
	}
	return out
}

// raised holds more vCPUs at boot against the fewest, under one limit; nil where it was
// not measured. Only those numbers are tried that the most cells have.
func (b *builder) raised(list []*subject, limit string, prior stat.Prior) *group {
	levels := slices.DeleteFunc(slices.Clone(b.levels(factorVCPUs)), func(v string) bool { return !(number(v) > 0) })
	slices.SortFunc(levels, byNumber)
	if len(levels) < 2 {
		return nil
	}
	g := &group{list: having(list, limit, levels[0])}
	if len(g.list) == 0 {
		return nil
	}
	r := g.list[0].f.Response.Name
	most := 1
	for _, v := range levels[1:] {
		t := &trial{to: target{{Factor: factorVCPUs, Value: v}}}
		for _, s := range g.list {
			if c := t.to.moved(s.f.Cell); b.in.Measured(s.f.Cell, r) && b.in.Measured(c, r) {
				t.pairs = append(t.pairs, pair{s.f.Cell, c})
			}
		}
		if len(t.pairs) >= most {
			most = len(t.pairs)
			t.sum(b, r)
			g.tried = append(g.tried, t)
		}
	}
	g.tried = slices.DeleteFunc(g.tried, func(t *trial) bool { return len(t.pairs) < most })
	if g.chosen = b.choose(g, prior); g.chosen == nil {
		return nil
	}
	return g
}

// having are the subjects with a limit and a number of vCPUs at boot.
func having(list []*subject, limit, vcpus string) []*subject {
	var out []*subject
	for _, s := range list {
		if s.level(study.FactorCPULimit) == limit && s.level(factorVCPUs) == vcpus {
			out = append(out, s)
		}
	}
	return out
}
