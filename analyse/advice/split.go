package advice

import (
	"slices"

	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// split parts from each group the cells that the group's setting surely makes worse,
// however good it is for all of them together: a VM whose limit plugs vCPUs in loses
// those with the limit, and others like it gain. They are a group of their own, which
// chooses for itself.
func (b *builder) split(groups []*group, prior stat.Prior) []*group {
	var out []*group
	for len(groups) > 0 {
		g := groups[0]
		groups = groups[1:]
		if lost := b.losers(g, prior); len(lost) > 0 && len(lost) < len(g.list) {
			rest := slices.DeleteFunc(slices.Clone(g.list), func(s *subject) bool { return slices.Contains(lost, s) })
			groups = slices.Insert(groups, 0, b.part(g, rest, prior), b.part(g, lost, prior))
			continue
		}
		out = append(out, g)
	}
	return out
}

// serves reports whether the study measured that more processors surely serve a cell
// better: more vCPUs at boot or, where a limit holds all that are full, a higher limit.
func (b *builder) serves(s *subject) bool {
	factor, set := factorVCPUs, toDouble
	switch {
	case b.in.Mean == nil || b.in.Measured == nil || s.f.Cause != cause.Guest && (s.f.Cause != cause.Helper || s.limit > 0):
		return false
	case s.limit > 0:
		factor, set = study.FactorCPULimit, toMore
	case s.family != record.FamilyVM:
		return false
	}
	unbound := *s
	unbound.workers = 0
	levels := b.rising(Setting{factor, set}, []*subject{&unbound}, false)
	for _, v := range levels {
		c := swap(s.f.Cell, factor, v)
		if r := s.f.Response; c != nil && b.in.Measured(c, r.Name) {
			t := &trial{better: r.Better, pairs: []pair{{s.f.Cell, c}}}
			t.sum(b, r.Name)
			if b.judge(t, stat.Prior{}, len(levels)); t.proven() {
				return true
			}
		}
	}
	return false
}

// part is a group of some of a group's subjects.
func (b *builder) part(g *group, list []*subject, prior stat.Prior) *group {
	out := &group{rule: g.rule, order: g.order, list: list, computed: b.computed(g.rule, list)}
	out.tried = b.try(out)
	out.chosen = b.choose(out, prior)
	return out
}

// losers are a group's subjects whose own cell was measured with the chosen setting, and
// is surely worse with it. A group that nobody is advised to change has no losers.
func (b *builder) losers(g *group, prior stat.Prior) []*subject {
	if g.chosen == nil || g.chosen.against() {
		return nil
	}
	var out []*subject
	for _, s := range g.list {
		c := g.chosen.to.moved(s.f.Cell)
		if c == nil || !slices.ContainsFunc(g.chosen.pairs, func(p pair) bool { return p.from.Key() == s.f.Cell.Key() }) {
			continue
		}
		own := &trial{to: g.chosen.to, better: g.chosen.better, pairs: []pair{{s.f.Cell, c}}}
		own.sum(b, g.list[0].f.Response.Name)
		if b.judge(own, prior, 1); own.verdict == stat.Slower {
			out = append(out, s)
		}
	}
	return out
}
