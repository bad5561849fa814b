package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/analyse"
	"tare/record"
)

// maxCells bounds how many cells a line names.
const maxCells = 3

// item writes one entry of a list.
func item(b *strings.Builder, opt Options, s string) {
	b.WriteString("  " + wrap(s, opt.width()-2, "    ") + "\n")
}

// writeStops says how many blocks each stratum had and why it stopped, strata
// with the same reason together.
func writeStops(b *strings.Builder, res *analyse.Result, opt Options) {
	var reasons []string
	strata := make(map[string][]string)
	fixed := fixedLevels(res)
	for _, row := range res.Rows() {
		c := row[0]
		reason := "not stopped yet"
		if e := c.Ending; e != nil {
			reason = strings.TrimSuffix(e.Text, ".")
			if n := count(e.Blocks, "block"); !strings.Contains(reason, n) { // else it is said already
				reason = "after " + n + ", " + reason
			}
		}
		if _, ok := strata[reason]; !ok {
			reasons = append(reasons, reason)
		}
		if name := stratumName(c, fixed); !slices.Contains(strata[reason], name) {
			strata[reason] = append(strata[reason], name)
		}
	}
	if len(reasons) == 0 {
		return
	}
	b.WriteString("\nwhy measuring stopped:\n")
	for _, r := range reasons {
		names := strata[r]
		item(b, opt, strings.Join(names, ", ")+": "+r)
	}
}

// writeFailures lists what failed: once for each cell, not for each response.
func writeFailures(b *strings.Builder, res *analyse.Result, opt Options) {
	head := "\nfailed trials:\n"
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
			item(b, opt, fmt.Sprintf("%s: %d, %s: %s", key, f.Count, where, f.Text))
		}
		if c.GaveUp != "" {
			item(b, opt, key+": given up, "+c.GaveUp)
		}
	}
}

func writeWarnings(b *strings.Builder, res *analyse.Result, opt Options) {
	if len(res.Warnings) == 0 {
		return
	}
	b.WriteString("\nwarnings:\n")
	for _, w := range res.Warnings {
		s := w.Code + ": " + w.Text
		if w.Trials > 0 {
			s += " (" + count(w.Trials, "trial")
			if n := len(w.Cells); n > 0 && n <= maxCells {
				s += ": " + strings.Join(w.Cells, "; ")
			} else if n > 0 {
				s += fmt.Sprintf(" of %d cells", n)
			}
			s += ")"
		}
		item(b, opt, s)
	}
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
	for _, o := range res.Overheads {
		row := []gridCell{{first: o.Sandbox}, {first: strconv.Itoa(o.Trials)}, span(o.Trial, true), span(o.Noop, o.NoopTrials > 0)}
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
			row = append(row, gridCell{first: Value(o.Collectors[i].Cores, record.Fraction)})
		}
		g.rows = append(g.rows, row)
	}
	b.WriteString("\n" + wrap("what measuring costs (medians; noop: a whole trial that does nothing; CPU of one core):", opt.width(), "  ") + "\n" + g.render(opt))
}

func span(d time.Duration, known bool) gridCell {
	if !known {
		return gridCell{first: "-"}
	}
	return gridCell{first: Value(d.Seconds(), record.Second)}
}

// ending says whether the study is finished and what can be done next.
func ending(res *analyse.Result, opt Options) string {
	dir := opt.Dir
	if dir == "" {
		dir = "DIR"
	}
	if res.Finished {
		return fmt.Sprintf("Finished: %s. All figures: tare report %s --json", strings.TrimSuffix(res.Reason, "."), dir)
	}
	left := res.Left
	trials := count(left.AtMost, "trial")
	if left.AtLeast != left.AtMost {
		trials = fmt.Sprintf("%d to %d trials", left.AtLeast, left.AtMost)
	}
	s := fmt.Sprintf("Not finished: %s left", trials)
	if left.MostTime > 0 {
		s += ", at most " + Duration(left.MostTime)
	}
	return fmt.Sprintf("%s. Go on: tare run %s. All figures: tare report %s --json", s, dir, dir)
}
