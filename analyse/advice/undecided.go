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

// leastBlocks is the fewest that more of are asked for: with fewer an interval is wide
// whatever the trials say.
const leastBlocks = 8

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
		looks = fmt.Sprintf(" The worst: %s × the baseline's cost in %s, but from %s only.", short(math.Exp(math.Abs(math.Log(*worst.Ratio)))), worst.Response.Name, count(worst.Trials, "trial"))
	}
	// Four times the blocks halve an interval.
	more := " More blocks decide it: " + b.again(open, max(leastBlocks, 4*trials)) + "."
	if b.in.Imported { // nothing can be measured again
		out.Change, more = "Import more blocks from the source", " More blocks decide it, if the source has them."
	}
	out.Text = fmt.Sprintf("Too noisy or too few to say in %d of %s.%s%s", len(open), count(len(of), "case"), looks, more)
	return out
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
