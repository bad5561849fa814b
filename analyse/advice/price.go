package advice

import (
	"fmt"
	"math"
	"strings"
)

// measured says how the figures came about.
func (b *builder) measured() string {
	if b.in.Modelled {
		return "modelled"
	}
	return "measured"
}

// unproven says why a gain is not sure, and what would have to be measured.
func (b *builder) unproven(g *group, chosen *trial, f *filler) string {
	switch {
	case chosen != nil && chosen.proven():
		return ""
	case chosen != nil && b.in.Imported:
		return fmt.Sprintf("%s, but not sure: %s", b.measured(), chosen.reason)
	case chosen != nil:
		return fmt.Sprintf("%s, but not sure: %s. More blocks narrow it (four times as many halve the interval): %s%s", b.measured(), chosen.reason, b.run(), chosen.more())
	case len(g.rule.Patches) == 0 && len(g.rule.Set) == 0:
		return "" // nothing is set, so that nothing is to be proven
	case len(g.rule.Set) == 0, b.in.OnCluster && g.rule.sets(factorIOThreads): // pods have no such factor
		return "no factor of a study varies it; run the study before and after, and hold both against each other: tare compare BEFORE AFTER"
	}
	if line := f.run(); line != "" {
		return "not " + b.measured() + "; these cells would tell: " + line
	}
	var flags []string
	for _, l := range f.to {
		flags = append(flags, "--"+l.Value)
	}
	return fmt.Sprintf("not %s; give the study a sandbox of its own that has %s among its args besides, and run it", b.measured(), strings.Join(flags, " "))
}

// price says what the cure costs in CPU: measured where it was, by response, else by the
// rule, and what a unit of work costs today in the costliest cells.
func (b *builder) price(m *merged, trials []*trial, f *filler) string {
	var out []string
	for _, t := range trials {
		if s := b.measuredPrice(t); s != "" {
			out = append(out, s)
		}
	}
	rule := m.whole.rule
	if len(out) == 0 && rule.Price != "" {
		out = append(out, f.text(rule.Price))
	}
	if len(trials) == 0 || len(out) == 0 {
		if p := m.first.list[0].f.Price; p != nil && p.Ratio > 0 && len(rule.Set) > 0 {
			out = append(out, fmt.Sprintf("a %s costs %s × the baseline's CPU today (%s cores used, %s by the baseline)",
				p.Unit, digits(p.Ratio), digits(p.Cores), digits(p.Base)))
		}
	}
	return strings.Join(out, "; ")
}

// measuredPrice compares the CPU a unit of work with a setting to that without.
func (b *builder) measuredPrice(t *trial) string {
	n, with, native, cores, was := 0.0, 0.0, 0.0, 0.0, 0.0
	unit, natives := "", 0.0
	for _, p := range t.pairs {
		from, to := b.cost(p.from), b.cost(p.to)
		if from == nil || to == nil || !(from.Value > 0) || !(to.Value > 0) || !(from.Cores > 0) || !(to.Cores > 0) {
			continue
		}
		n++
		unit = to.Unit
		with += math.Log(to.Value / from.Value)
		cores += math.Log(to.Cores)
		was += math.Log(from.Cores)
		if to.Estimate.Ratio > 0 {
			natives++
			native += math.Log(to.Estimate.Ratio)
		}
	}
	if n == 0 {
		return ""
	}
	mean := func(sum, n float64) string { return digits(math.Exp(sum / n)) }
	s := fmt.Sprintf("%s: a %s takes %s × the CPU that it takes without, %s cores instead of %s", b.measured(), unit, mean(with, n), mean(cores, n), mean(was, n))
	if natives > 0 {
		s += fmt.Sprintf("; %s × the baseline's CPU", mean(native, natives))
	}
	return s
}
