package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
)

// maxCells bounds how many cells a line names.
const maxCells = 3

// maxTreatments bounds how many have a sentence above the table.
const maxTreatments = 6

// writeAnswer says in words what the table says: the headline, and what costs
// most in each treatment. How far the study is stands at the end.
func writeAnswer(b *strings.Builder, res *analyse.Result, opt Options) {
	said := 0
	for _, s := range words.Answer(res, words.Options{Items: 1}) {
		switch {
		case s.About == "" && s.Tone == words.Note && said > 0:
			continue
		case s.About != "":
			if said++; said > maxTreatments {
				continue
			}
			item(b, opt, s.Text)
		default:
			b.WriteString(wrap(s.Text, opt.width(), "  ") + "\n")
		}
	}
	if more := said - maxTreatments; more > 0 {
		item(b, opt, fmt.Sprintf("and %d more in the table", more))
	}
	b.WriteString("\n")
}

// item writes one entry of a list.
func item(b *strings.Builder, opt Options, s string) {
	b.WriteString("  " + wrap(s, opt.width()-2, "    ") + "\n")
}

// maxEntries bounds a list: somebody else's results may have a different reason for each
// of a million trials.
const maxEntries = 100

// list writes entries, up to as many as a person reads.
type list struct {
	b   *strings.Builder
	opt Options
	n   int
}

func (l *list) add(s string) {
	if l.n++; l.n <= maxEntries {
		item(l.b, l.opt, s)
	}
}

func (l *list) end() {
	if more := l.n - maxEntries; more > 0 {
		item(l.b, l.opt, fmt.Sprintf("and %d more; --json has all", more))
	}
}

// writeStops says how many blocks each stratum had and why it stopped, strata
// with the same reason together.
func writeStops(b *strings.Builder, res *analyse.Result, opt Options) {
	var reasons []string
	strata := make(map[string][]string)
	seen := make(map[string]bool)
	fixed := fixedLevels(res)
	for _, row := range res.Rows() {
		c := row[0]
		if seen[c.Stratum] {
			continue // it has several responses
		}
		seen[c.Stratum] = true
		reason := "not stopped yet"
		if e := c.Ending; e != nil {
			reason = strings.TrimSuffix(e.Text, ".")
			if n := words.Count(e.Blocks, "block"); !strings.Contains(reason, n) { // else it is said already
				reason = "after " + n + ", " + reason
			}
		}
		if _, ok := strata[reason]; !ok {
			reasons = append(reasons, reason)
		}
		strata[reason] = append(strata[reason], words.Stratum(res, c.Workload, c.Shared, fixed))
	}
	if len(reasons) == 0 {
		return
	}
	b.WriteString("\nwhy measuring stopped:\n")
	l := list{b: b, opt: opt}
	for _, r := range reasons {
		l.add(someOf(strata[r], len(seen)) + ": " + r)
	}
	l.end()
}

// writeEnds says where each end of the workloads ran, strata alike together. Where
// no workload has two ends there is nothing to say.
func writeEnds(b *strings.Builder, res *analyse.Result, opt Options) {
	names := make(map[string]string)
	fixed := fixedLevels(res)
	for i := range res.Compared {
		c := &res.Compared[i]
		names[c.Stratum] = words.Stratum(res, c.Workload, c.Shared, fixed)
	}
	var texts []string
	strata := make(map[string][]string)
	two := false
	for _, e := range res.Ends {
		two = two || len(e.Ends) > 1
		if strata[e.Text] == nil {
			texts = append(texts, e.Text)
		}
		strata[e.Text] = append(strata[e.Text], names[e.Stratum])
	}
	if !two {
		return
	}
	b.WriteString("\n" + wrap("where each end ran (of process, all natively):", opt.width(), "  ") + "\n")
	for _, t := range texts {
		item(b, opt, t+": "+someOf(strata[t], len(res.Ends)))
	}
}

// someOf names a few strata of all, and counts many.
func someOf(names []string, all int) string {
	switch n := len(names); {
	case n <= 2*maxCells:
		return strings.Join(names, ", ")
	case n == all:
		return fmt.Sprintf("all %d strata", n)
	default:
		return fmt.Sprintf("%d of %d strata (%s and %d more)", n, all, strings.Join(names[:maxCells], ", "), n-maxCells)
	}
}

// writeFailures lists what failed: once for each cell, not for each response.
func writeFailures(b *strings.Builder, res *analyse.Result, opt Options) {
	head := "\nfailed trials:\n"
	l := list{b: b, opt: opt}
	seen := make(map[string]bool)
	for i := range res.Compared {
		c := &res.Compared[i]
		key := c.Cell.Key()
		if seen[key] || c.Failed == 0 && c.GaveUp == "" {
			continue
		}
		seen[key] = true
		b.WriteString(head)
		head = ""
		for _, f := range c.Failures {
			where := f.Kind
			if f.Phase != "" {
				where += " in " + f.Phase
			}
			l.add(fmt.Sprintf("%s: %d, %s: %s", key, f.Count, where, f.Text))
		}
		if c.GaveUp != "" {
			l.add(key + ": given up, " + c.GaveUp)
		}
	}
	l.end()
}

func writeWarnings(b *strings.Builder, res *analyse.Result, opt Options) {
	head := "\nwarnings:\n"
	l := list{b: b, opt: opt}
	for _, w := range res.Warnings {
		if told(w.Code) {
			continue
		}
		b.WriteString(head)
		head = ""
		s := w.Code + ": " + w.Text
		if w.Trials > 0 {
			s += " (" + words.Count(w.Trials, "trial")
			if n := len(w.Cells); n > 0 && n <= maxCells {
				s += ": " + strings.Join(w.Cells, "; ")
			} else if n > 0 {
				s += fmt.Sprintf(" of %d cells", n)
			}
			s += ")"
		}
		l.add(s)
	}
	l.end()
}

// writeOverheads shows what measuring costs beside the workloads.
func writeOverheads(b *strings.Builder, res *analyse.Result, opt Options) {
	if len(res.Overheads) == 0 {
		return
	}
	g := grid{keys: 1, header: []string{res.Compare, "trials", "trial", "noop"}}
	var phases, collectors []string
	for _, o := range res.Overheads {
		for _, p := range o.Phases {
			if !slices.Contains(phases, p.Name) {
				phases = append(phases, p.Name)
			}
		}
		for _, c := range o.Collectors {
			if !slices.Contains(collectors, c.Name) {
				collectors = append(collectors, c.Name)
			}
		}
	}
	g.header = append(g.header, phases...)
	for _, c := range collectors {
		g.header = append(g.header, c+" CPU")
	}
	guests := slices.ContainsFunc(res.Overheads, func(o analyse.Overhead) bool { return o.Agent != nil })
	title := "what measuring costs (medians; noop: a whole trial that does nothing; CPU of one core):"
	if guests {
		g.header = append(g.header, "agent in guest")
		title = "what measuring costs (medians; noop: a whole trial that does nothing; CPU of one core, on the host but for the agent in a guest, as the guest counts it):"
	}
	for _, o := range res.Overheads {
		row := []gridCell{{first: res.LevelName(record.Level{Factor: res.Compare, Value: o.Sandbox})}, {first: strconv.Itoa(o.Trials)}, span(o.Trial, true), span(o.Noop, o.NoopTrials > 0)}
		for _, name := range phases {
			i := slices.IndexFunc(o.Phases, func(p analyse.PhaseTime) bool { return p.Name == name })
			if i < 0 {
				row = append(row, gridCell{first: "-"})
				continue
			}
			row = append(row, span(o.Phases[i].Median, true))
		}
		for _, name := range collectors {
			i := slices.IndexFunc(o.Collectors, func(c analyse.CollectorCost) bool { return c.Name == name })
			if i < 0 {
				row = append(row, gridCell{first: "-"})
				continue
			}
			row = append(row, gridCell{first: words.Value(o.Collectors[i].Cores, record.Fraction)})
		}
		switch {
		case o.Agent != nil:
			row = append(row, gridCell{first: words.Value(*o.Agent, record.Fraction)})
		case guests:
			row = append(row, gridCell{first: "-"})
		}
		g.rows = append(g.rows, row)
	}
	b.WriteString("\n" + wrap(title, opt.width(), "  ") + "\n" + g.render(opt))
}

func span(d time.Duration, known bool) gridCell {
	if !known {
		return gridCell{first: "-"}
	}
	return gridCell{first: words.Value(d.Seconds(), record.Second)}
}

// ending says whether the study is finished and what can be done next.
func ending(res *analyse.Result, opt Options) string {
	dir := "DIR"
	if opt.Dir != "" {
		dir = words.Path(opt.Dir)
	}
	if res.Finished {
		return fmt.Sprintf("Finished: %s. All figures: tare report %s --json", strings.TrimSuffix(res.Reason, "."), dir)
	}
	left := res.Left
	trials := words.Count(left.AtMost, "trial")
	if left.AtLeast != left.AtMost {
		trials = fmt.Sprintf("%d to %d trials", left.AtLeast, left.AtMost)
	}
	s := fmt.Sprintf("Not finished: %s left", trials)
	if left.MostTime > 0 {
		s += ", at most " + words.Duration(left.MostTime)
	}
	return fmt.Sprintf("%s. Go on: tare run %s. All figures: tare report %s --json", s, dir, dir)
}
