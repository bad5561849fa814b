package advice

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// little is the summed logarithm of what an item's cells lose, below which a line is
// enough: 3 %, the margin within which a study takes two values to be equal.
const little = 0.03

// merged is what becomes one item: the groups of one rule and one level of the compared
// factor, the costliest first; of a rule that sets no factor, of all levels, or of all of
// one family of sandboxes where it has patches. Those that were tried in vain are one of their own.
type merged struct {
	groups []*group // in the study's order
	first  *group   // the costliest
	whole  *group   // all subjects
	there  int      // subjects left out: they have already what is advised
}

// merge puts groups together.
func (b *builder) merge(groups []*group) []*merged {
	type key struct {
		order         int
		level, role   string
		contradictory bool
	}
	var out []*merged
	at := make(map[key]*merged)
	for _, g := range groups {
		f := g.list[0].f
		k := key{order: g.order, contradictory: g.chosen != nil && g.chosen.against()}
		switch {
		case len(g.rule.Set) > 0 || f.Cause == cause.Untold:
			k.level, _ = f.Cell.Get(b.in.Compare)
		case len(g.rule.Patches) > 0: // they are as the family of sandboxes has them
			k.level = string(g.list[0].family)
		}
		if len(g.rule.Roles) == 0 { // its text may name the thread
			k.role = f.Role
		}
		m := at[k]
		if m == nil {
			m = &merged{whole: &group{rule: g.rule, order: g.order}}
			at[k] = m
			out = append(out, m)
		}
		m.groups = append(m.groups, g)
	}
	for _, m := range out {
		m.settle()
	}
	return out
}

// proven reports whether the study measured that what was chosen helps.
func (g *group) proven() bool { return g.chosen != nil && g.chosen.proven() }

// before reports whether a group goes before another one, nil for none: what is proven first, and then what costs more.
func (g *group) before(o *group) bool {
	return o == nil || g.proven() && !o.proven() || g.proven() == o.proven() && weight(g.list) > weight(o.list)
}

// settle leaves out groups that are where another one's proven setting leads, and that
// nothing proves anything further of: what was measured goes before what would have to be.
// The first is the costliest of those that are proven, else of all.
func (m *merged) settle() {
	there := make(map[string]bool)
	for _, g := range m.groups {
		if g.proven() {
			there[record.Cell(g.chosen.to).Key()] = true
		}
	}
	m.groups = slices.DeleteFunc(m.groups, func(g *group) bool {
		out := len(g.rule.Set) > 0 && !g.proven() && there[g.list[0].from(g.rule).Key()]
		if out {
			m.there += len(g.list)
		}
		return out
	})
	for _, g := range m.groups {
		m.whole.list = append(m.whole.list, g.list...)
		if g.before(m.first) {
			m.first = g
		}
	}
}

// item is what merged groups come to.
func (b *builder) item(m *merged, prior stat.Prior) Item {
	rule := m.whole.rule
	var moves []move
	for _, g := range m.groups {
		moves = append(moves, move{g.list[0].from(rule), g.target(), g.list})
	}
	m.lead(moves)
	s := m.first.list[0]
	out := Item{Rule: rule.Name, Treatment: s.f.Treatment, Cause: string(s.f.Cause), NotWith: rule.NotWith, Weight: weight(m.whole.list), Source: sources(rule.Source)}
	for _, s := range m.whole.list {
		out.Cells, out.Treatments = append(out.Cells, s.f.Cell), append(out.Treatments, s.f.Treatment)
	}
	out.Treatments = unique(out.Treatments)
	out.Brief = nothingKnown(out.Cause) || out.Weight < little && slices.ContainsFunc(m.whole.list, func(s *subject) bool { return s.f.Ratio != nil })
	trials := b.gains(m, prior)
	for _, t := range trials {
		if g := t.gain(t.response); g != nil {
			if slices.ContainsFunc(rule.Set, func(s Setting) bool { return s.Factor == study.FactorCPULimit }) {
				g.Than = "under today's limit" // "without" would be without the limit
			}
			out.Gains = append(out.Gains, *g)
		}
	}
	if len(out.Gains) > 0 {
		out.Gain = &out.Gains[0]
	}
	out.Sets = slices.Clone(record.Cell(m.first.target()))
	words, first := b.filler(m.whole, m.first.target()), b.filler(m.first, m.first.target())
	if len(rule.Set) == 0 {
		first = words
	}
	words.moves = moves
	out.Contradicted = m.first.chosen != nil && m.first.chosen.against()
	if out.Contradicted {
		out.Text = fmt.Sprintf("Leave out %s (%s). The readings point to it, but the study %s it and found %s.", words.text(rule.Does), words.all(), b.measured(), inVain(m))
	} else {
		out.Change, out.Warning = words.text(rule.Change), words.text(rule.Warning)
		out.Text = sentence(out.Change, words.text(rule.Why))
		switch {
		case m.there == 1:
			out.Text += " One more case has that already, and the same cause; --only with its levels says what may help it further."
		case m.there > 1:
			out.Text += fmt.Sprintf(" %d more cases have that already, and the same cause; --only with their levels says what may help them further.", m.there)
		}
		for _, c := range CareOf(out.Sets) {
			out.Warning = strings.TrimSpace(out.Warning + " " + sentence(c, ""))
		}
		if h := b.harms(m, prior); h != "" {
			out.Warning = strings.TrimSpace(out.Warning + " " + h)
		}
		out.Targets = b.targets(m)
		out.Patches = first.patches()
		out.Unproven = b.left(m, &out)
	}
	out.Price = b.price(m, trials, words)
	return out
}

// lead puts first, where the text names a level to start with, the costliest of the groups that lead to this level: patches set the level
// that the text names.
func (m *merged) lead(moves []move) {
	for _, set := range m.whole.rule.Set {
		begin := (&filler{moves: moves}).start(set.Factor)
		if set.To != toFewest || begin == nil {
			continue
		}
		var first *group
		for _, g := range m.groups {
			if level, _ := g.target().level(set.Factor); level == begin.Level && g.before(first) {
				first = g
			}
		}
		m.first = first
	}
}

// target is what a group should have: what was measured to serve best, else what the
// rule's arithmetic gives.
func (g *group) target() target {
	if g.chosen != nil {
		return g.chosen.to
	}
	return g.computed
}

// gains holds what was chosen of all groups together, for each response: the geometric
// mean over their pairs of cells, the best first. Its level is that of the group for
// which the most was tried.
func (b *builder) gains(m *merged, prior stat.Prior) []*trial {
	var out []*trial
	most := make(map[string]int)
	for _, g := range m.groups {
		if g.chosen == nil {
			continue
		}
		r := g.list[0].f.Response
		i := slices.IndexFunc(out, func(t *trial) bool { return t.response == r.Name })
		if i < 0 {
			i = len(out)
			out = append(out, &trial{response: r.Name, better: r.Better})
		}
		out[i].pairs = append(out[i].pairs, g.chosen.pairs...)
		most[r.Name] = max(most[r.Name], len(g.tried))
	}
	for _, t := range out {
		t.sum(b, t.response)
		b.judge(t, prior, most[t.response])
	}
	slices.SortStableFunc(out, func(x, y *trial) int { return cmp.Compare(y.worth, x.worth) })
	return out
}

// targets are the moves of an item, the same of several groups as one: what the item sets, and then the costliest
// first. None of a rule that sets no factor of studies.
func (b *builder) targets(m *merged) []Target {
	if len(m.whole.rule.Set) == 0 {
		return nil
	}
	var out []Target
	at := make(map[string]int)
	groups := slices.Clone(m.groups)
	slices.SortStableFunc(groups, func(x, y *group) int {
		switch { // the first is what the item sets
		case x == m.first && y != m.first:
			return -1
		case y == m.first && x != m.first:
			return 1
		}
		return cmp.Compare(weight(y.list), weight(x.list))
	})
	for _, g := range groups {
		s := g.list[0]
		x := Target{From: s.from(g.rule), To: record.Cell(g.target())}
		k := x.From.Key() + "\n" + x.To.Key()
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			x.Patches = slices.DeleteFunc(b.filler(g, g.target()).patches(), func(p Patch) bool { return p.For == "study" })
			out = append(out, x)
		}
		out[i].Treatments = unique(append(out[i].Treatments, s.f.Treatment))
		out[i].Responses = unique(append(out[i].Responses, s.f.Response.Name))
		out[i].Weight += weight(g.list)
		for _, s := range g.list {
			out[i].Cells = append(out[i].Cells, s.f.Cell)
		}
	}
	slices.SortStableFunc(out[1:], func(x, y Target) int { return cmp.Compare(y.Weight, x.Weight) })
	return out
}

// left says what of an item is not proven, and keeps the patch that measures only where
// something is left to measure.
func (b *builder) left(m *merged, x *Item) string {
	var worst *group
	cells := 0
	for _, g := range m.groups {
		if g.proven() {
			continue
		}
		cells += len(g.list)
		if worst == nil || weight(g.list) > weight(worst.list) {
			worst = g
		}
	}
	x.Patches = slices.DeleteFunc(x.Patches, func(p Patch) bool { return p.For == "study" })
	if worst == nil {
		return ""
	}
	f := b.filler(worst, worst.target())
	for _, p := range f.patches() {
		if p.For == "study" {
			if worst.chosen != nil { // measured, and not sure
				p.Text = strings.TrimRight(p.Text, "\n") + worst.chosen.more() + "\n"
			}
			x.Patches = append(x.Patches, p)
		}
	}
	why := b.unproven(worst, worst.chosen, f)
	if why != "" && cells < len(m.whole.list) {
		why = fmt.Sprintf("of %d of its %d cells; %s", cells, len(m.whole.list), why)
	}
	return why
}

// inVain says what was measured against a rule.
func inVain(m *merged) string {
	loss, same := false, false
	for _, g := range m.groups {
		loss = loss || g.chosen.verdict == stat.Slower
		same = same || g.chosen.verdict == stat.Equivalent
	}
	switch {
	case loss && same:
		return "no gain or a loss"
	case loss:
		return "a loss"
	}
	return "no gain"
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
