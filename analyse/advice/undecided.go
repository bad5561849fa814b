package advice

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/analyse/cause"
	"tare/study"
)

// leastBlocks is the fewest that are asked for where nothing says how many are needed: with
// fewer an interval is wide whatever the trials say.
const leastBlocks = 8

// mostBlocks is the most that are asked for. A case that needs more is better left open, or
// measured where there is less noise.
const mostBlocks = 100

// mostNamed is how many of such cases are named.
const mostNamed = 4

// unneeded are the treatments of which no cell is known to cost anything: one item for
// those all of whose cells are as good as the baseline or better, one for those of which a
// cell is undecided. Of treatments that do cost, cells join the latter that look worse and
// are not decided. Where a search found its answer, neither is said: it left the levels out
// on purpose that could not be the answer. Where a search is not finished, one item says how
// it goes on: more blocks of all levels would not be that search.
func (b *builder) unneeded() []Item {
	costs, open := make(map[string]bool), make(map[string]bool)
	stopped := func(f *cause.Finding) bool { return b.in.Stopped != nil && b.in.Stopped(f.Stratum) }
	found := func(f *cause.Finding) bool { return b.in.Found != nil && b.in.Found(f.Stratum) || stopped(f) }
	for i := range b.in.Findings {
		if f := &b.in.Findings[i]; !f.Baseline && !found(f) {
			costs[f.Treatment] = costs[f.Treatment] || f.Costs
			open[f.Treatment] = open[f.Treatment] || f.Undecided
		}
	}
	var free, undecided, searched []*cause.Finding
	for i := range b.in.Findings {
		switch f := &b.in.Findings[i]; {
		case stopped(f) && b.wanted(f.Cell):
			searched = append(searched, f)
		case f.Baseline || found(f) || !b.wanted(f.Cell):
		case costs[f.Treatment]:
			if f.Suspect() {
				undecided = append(undecided, f)
			}
		case open[f.Treatment]:
			if f.Undecided || f.Ratio != nil {
				undecided = append(undecided, f)
			}
		case f.Ratio != nil:
			free = append(free, f)
		}
	}
	var out []Item
	if len(searched) > 0 {
		out = append(out, b.continued(searched))
	}
	// Of what has no ratio at all nothing can be said: there was no baseline.
	if slices.ContainsFunc(undecided, func(f *cause.Finding) bool { return f.Ratio != nil }) {
		out = append(out, b.undecided(undecided))
	}
	if len(free) > 0 {
		out = append(out, b.nothing("no-setting", free))
	}
	return out
}

// nothing is an item of a rule that sets nothing.
func (b *builder) nothing(name string, of []*cause.Finding) Item {
	rule := b.rule(name)
	out := Item{Rule: rule.Name, Source: sources(rule.Source), Change: rule.Change, Text: sentence(rule.Change, rule.Why), Brief: true}
	for _, f := range of {
		out.Cells, out.Treatments = append(out.Cells, f.Cell), append(out.Treatments, f.Treatment)
	}
	out.Treatments = unique(out.Treatments)
	out.Treatment = out.Treatments[0]
	return out
}

// Continue is the command that goes on with a search at a site, in texts of advice; whoever knows the results folder completes it.
func Continue(on string) string {
	return strings.Join(strings.Fields("tare tune STUDY "+on+" --budget LARGER"), " ")
}

// continued says how searches that are not finished go on.
func (b *builder) continued(of []*cause.Finding) Item {
	out := b.nothing("search-continue", of)
	out.Brief = false
	out.Text = strings.TrimSuffix(out.Text, ".") + ": " + Continue(b.in.On) + "."
	return out
}

// undecided says of how many cells nothing is decided, which of them looks worst, and the
// command that decides more of them. Imported results have none: their source may have more.
func (b *builder) undecided(of []*cause.Finding) Item {
	var open []*cause.Finding
	for _, f := range of {
		if f.Undecided {
			open = append(open, f)
		}
	}
	trials := 0
	var worst *cause.Finding
	for _, f := range open {
		trials = max(trials, f.Trials)
		if f.Suspect() && (worst == nil || math.Abs(math.Log(*f.Ratio)) > math.Abs(math.Log(*worst.Ratio))) {
			worst = f
		}
	}
	out := b.nothing("undecided", open)
	out.Brief = false
	looks := ""
	if worst != nil {
		looks = fmt.Sprintf(" The worst: %s × the baseline's cost in %s, but from %s only.", short(math.Exp(math.Abs(math.Log(*worst.Ratio)))), worst.Response.Name, count(worst.Trials, "block"))
	}
	out.Text = fmt.Sprintf("Whether it costs is not sure in %d of %s: too noisy, or too few blocks.%s", len(open), count(len(of), "case"), looks)
	if b.in.Imported { // nothing can be measured again
		out.Change = "Import more blocks from the source"
		out.Text += " More blocks decide it, if the source has them."
		return out
	}
	near, far, blocks := b.reach(open, max(leastBlocks, 4*trials)) // as more
	switch decided := len(slices.DeleteFunc(slices.Clone(near), func(c needed) bool { return c.blocks > blocks })); {
	case decided == 0:
		out.Change = "Leave it open, or measure with less noise"
	case decided == len(open):
		out.Text += " More blocks decide it: " + b.again(findings(near), blocks) + "."
	default:
		out.Text += fmt.Sprintf(" More blocks decide %d of them: %s.", decided, b.again(findings(near), blocks))
		if rest := len(near) - decided; rest > 0 {
			most := slices.MaxFunc(near, func(x, y needed) int { return x.blocks - y.blocks })
			out.Text += fmt.Sprintf(" To decide %d more, it takes up to %d blocks.", rest, most.blocks)
		}
	}
	if len(far) > 0 {
		out.Text += fmt.Sprintf(" Not decidable in reasonable time, at over %d blocks each: %s.", mostBlocks, b.names(far))
	}
	return out
}

// needed is a case and the blocks that it needs in all.
type needed struct {
	f      *cause.Finding
	blocks int
}

// reach parts cases into those that can be decided and those that need too many blocks. blocks is
// what most of the former need: all of them would have to wait for the noisiest. The numbers are
// those of the report; where it has none for a case, it is counted with those of otherwise.
func (b *builder) reach(open []*cause.Finding, otherwise int) (near, far []needed, blocks int) {
	for _, f := range open {
		n, known := otherwise, false
		if b.in.Needs != nil {
			if more := b.in.Needs(f.Cell); more > 0 {
				n, known = f.Trials+more, true
			}
		}
		if x := (needed{f, n}); known && n > mostBlocks {
			far = append(far, x)
		} else {
			near = append(near, x)
		}
	}
	if len(near) > 0 {
		all := make([]int, len(near))
		for i, x := range near {
			all[i] = x.blocks
		}
		slices.Sort(all)
		blocks = all[len(all)/2] // more than half of them
	}
	return near, far, blocks
}

func findings(of []needed) []*cause.Finding {
	out := make([]*cause.Finding, len(of))
	for i, x := range of {
		out[i] = x.f
	}
	return out
}

// names says which cases they are, by the levels that tell them from one another and what is compared, and
// the blocks that they need. The nearest come first.
func (b *builder) names(of []needed) string {
	of = slices.SortedStableFunc(slices.Values(of), func(x, y needed) int { return x.blocks - y.blocks })
	var out []string
	for _, x := range of[:min(len(of), mostNamed)] {
		name := x.f.Workload
		for _, l := range x.f.Cell {
			differs := slices.ContainsFunc(b.in.Findings, func(o cause.Finding) bool {
				v, ok := o.Cell.Get(l.Factor)
				return ok && v != l.Value
			})
			switch {
			case l.Factor == study.FactorWorkload:
			case l.Factor == b.in.Compare:
				name += " " + l.Value
			case differs:
				name += " " + l.Factor + "=" + l.Value
			}
		}
		out = append(out, fmt.Sprintf("%s (%d)", name, x.blocks))
	}
	if more := len(of) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// again is the command that measures cells with so many blocks.
func (b *builder) again(of []*cause.Finding, blocks int) string {
	levels := func(factor string, first ...string) string {
		for _, f := range of {
			if v, ok := f.Cell.Get(factor); ok {
				first = append(first, v)
			}
		}
		first = unique(first)
		for i := range first {
			first[i] = strings.ReplaceAll(first[i], ",", `\,`)
		}
		return " --set " + quoted(factor+"="+strings.Join(first, ","))
	}
	out := b.run() + levels(b.in.Compare, b.in.Baseline)
	if b.in.Compare != study.FactorWorkload {
		out += levels(study.FactorWorkload)
	}
	return out + " --set stop.fixed=" + strconv.Itoa(blocks)
}

// short writes a ratio with three digits: 74.3, 264, 0.29.
func short(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
