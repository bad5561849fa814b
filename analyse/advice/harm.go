package advice

import (
	"fmt"
	"slices"
	"strings"

	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// harms says what an item's measured settings surely make worse: other responses of
// the same cells, and other workloads in the same sandbox at the same levels. More
// vCPUs that let bytes through may cost each round trip. "" where nothing is, or where
// nothing was measured.
func (b *builder) harms(m *merged, prior stat.Prior) string {
	if b.in.Mean == nil || b.in.Measured == nil {
		return ""
	}
	type what struct{ workload, response string }
	var order []what
	by := make(map[what]*trial)
	seen := make(map[string]bool)
	for _, g := range m.groups {
		if g.chosen == nil || !g.chosen.proven() {
			continue
		}
		served := make(map[string]bool) // cells and responses that it is advised for
		for _, s := range g.list {
			served[s.f.Cell.Key()+"\n"+s.f.Response.Name] = true
		}
		for i := range b.in.Findings {
			f := &b.in.Findings[i]
			to := b.moved(g, f)
			if to == nil {
				continue
			}
			for _, r := range b.responses(f) {
				k := f.Cell.Key() + "\n" + r.Name
				if served[k] || seen[k+"\n"+to.Key()] || !b.in.Measured(f.Cell, r.Name) || !b.in.Measured(to, r.Name) {
					continue
				}
				seen[k+"\n"+to.Key()] = true
				w := what{f.Workload, r.Name}
				if by[w] == nil {
					order = append(order, w)
					by[w] = &trial{response: r.Name, better: r.Better}
				}
				by[w].pairs = append(by[w].pairs, pair{f.Cell, to})
			}
		}
	}
	var out []string
	for _, w := range order {
		t := by[w]
		t.sum(b, w.response)
		// As many were looked at: the more, the surer each has to be (Bonferroni).
		if b.judge(t, prior, len(order)); t.verdict == stat.Slower {
			e := t.estimate
			out = append(out, fmt.Sprintf("%s of %s is %s (%s–%s) times that without it", w.response, w.workload, digits(e.Ratio), digits(e.Lo), digits(e.Hi)))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "It costs elsewhere, as " + b.measured() + ": " + strings.Join(out, "; ") + "."
}

// moved is the cell that a group's setting would lead a finding's to; nil where it is the
// baseline, another sandbox, or not at the levels that the group starts from.
func (b *builder) moved(g *group, f *cause.Finding) record.Cell {
	first := g.list[0]
	if f.Baseline || sandboxOf(f) != sandboxOf(first.f) {
		return nil
	}
	for _, l := range first.from(g.rule) {
		if v, ok := f.Cell.Get(l.Factor); !ok || v != l.Value {
			return nil
		}
	}
	to := g.chosen.to.moved(f.Cell)
	if to == nil || to.Key() == f.Cell.Key() {
		return nil
	}
	return to
}

func sandboxOf(f *cause.Finding) string {
	v, _ := f.Cell.Get(study.FactorSandbox)
	return v
}

// responses are those of a finding's workload that are better one way.
func (b *builder) responses(f *cause.Finding) []record.Response {
	all := []record.Response{f.Response}
	if b.in.Responses != nil {
		for _, r := range b.in.Responses(f.Stratum) {
			if r.Name != f.Response.Name {
				all = append(all, r)
			}
		}
	}
	return slices.DeleteFunc(all, func(r record.Response) bool { return r.Better != record.Higher && r.Better != record.Lower })
}
