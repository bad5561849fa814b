package text

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/ordered"
	"tare/plan"
	"tare/record"
	"tare/report/section"
	"tare/report/words"
	"tare/study"
)

// Plan is what a study would do, for `tare plan`.
type Plan struct {
	Study    *study.Study  `json:"study"`
	Skips    []record.Skip `json:"skips"`
	Progress plan.Progress `json:"progress"`
	Order    []plan.Next   `json:"order"` // of the first pass; may be cut short

	// Rehearsal is of a plan on the model; then Skips are what the model does not know.
	Rehearsal *Rehearsal `json:"rehearsal,omitempty"`
	Need      *Need      `json:"need,omitempty"`

	Short *plan.Shortage `json:"short,omitempty"` // of the budget
}

// Need is how many blocks the comparisons take.
type Need struct {
	From  string         `json:"from"`  // folder of the results that the scatter is of
	Width float64        `json:"width"` // wanted relative half-width
	Rows  []analyse.Need `json:"rows"`
	Time  time.Duration  `json:"time"`            // of all rows that have blocks, by the upper ends of their ranges
	Never int            `json:"never,omitempty"` // rows that no number of blocks decides, or of which nothing is known
}

// Rehearsal is how long one takes on this machine, about.
type Rehearsal struct {
	Least time.Duration `json:"least"`
	Most  time.Duration `json:"most"`
}

// WritePlan prints a plan: how much, how long, in which order, and what the host
// cannot do.
func WritePlan(w io.Writer, p Plan, opt Options) error {
	var b strings.Builder
	st := p.Study
	cells := 0
	for i := range st.Strata {
		cells += len(st.Strata[i].Cells)
	}
	can := cells
	for _, s := range p.Skips {
		if (st.Sentinel == nil || s.Cell.Key() != st.Sentinel.Cell.Key()) && !study.IsCounting(s.Cell) {
			can--
		}
	}
	watched := slices.ContainsFunc(p.Order, func(n plan.Next) bool { return n.Sentinel })
	writeAsked(&b, st, cells, opt)
	writeAmount(&b, p, can, watched, opt)
	order := slices.DeleteFunc(slices.Clone(p.Order), func(n plan.Next) bool { return n.Sentinel || n.Counting })
	if len(order) > 0 {
		first := "\nthe first pass:\n"
		if watched {
			first = "\nthe first pass, after the sentinel:\n"
		}
		b.WriteString(first)
		writeTable(&b, orderTable(order), opt)
		if len(order) < can {
			fmt.Fprintf(&b, "... and %d more\n", can-len(order))
		}
	}
	var cellsOnly []record.Skip
	for _, s := range p.Skips {
		if study.IsCounting(s.Cell) {
			b.WriteString("\n" + wrap("calls: "+s.Reason, opt.width(), "    ") + "\n")
		} else {
			cellsOnly = append(cellsOnly, s)
		}
	}
	if p.Need != nil {
		writeNeed(&b, p.Need, st.Stop, opt)
	}
	write(&b, section.Skips(cellsOnly, p.Rehearsal != nil), opt)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeAsked prints what the study compares.
func writeAsked(b *strings.Builder, st *study.Study, cells int, opt Options) {
	title := fmt.Sprintf("%s: %s, %s compared by %s against %s", st.Name, words.Count(cells, "cell"), words.Count(len(st.Workloads), "workload"), st.Compare, st.Baseline)
	b.WriteString(wrap(title, opt.width(), "  ") + "\n")
	if st.About != "" {
		b.WriteString(wrap(st.About, opt.width(), "") + "\n")
	}
	b.WriteString("\n")
	for _, f := range st.Factors {
		b.WriteString(wrap(f.Name+": "+strings.Join(f.Levels, ", "), opt.width(), "    ") + "\n")
	}
	if st.Victim != nil {
		b.WriteString(wrap("victim: "+st.Victim.String(), opt.width(), "    ") + "\n")
	}
}

// writeAmount prints how many trials there are to run, how long they take and what is run beside them.
func writeAmount(b *strings.Builder, p Plan, can int, watched bool, opt Options) {
	st := p.Study
	para := func(s string) { b.WriteString(wrap(s, opt.width(), "    ") + "\n") }
	fmt.Fprintf(b, "\ntrials a pass: %d\n", can)
	r := p.Progress
	if r.Done > 0 {
		fmt.Fprintf(b, "trials done: %d\n", r.Done)
	}
	if r.AtLeast == r.AtMost {
		fmt.Fprintf(b, "trials to run: %d", r.AtMost)
	} else {
		fmt.Fprintf(b, "trials to run: %d to %d, depending on the results", r.AtLeast, r.AtMost)
	}
	if r.Sentinels > 0 {
		fmt.Fprintf(b, ", up to %d of them for the sentinel", r.Sentinels)
	}
	b.WriteString("\n")
	para(expected(r))
	if x := p.Rehearsal; x != nil {
		para("rehearsal: about " + fromTo(words.Duration(x.Least), words.Duration(x.Most)) + " on this machine, longer while it is busy; its figures are modelled")
	}
	for _, w := range append([]string{words.Short(p.Short, st.Budget), st.Stop.Wide(), st.Bare(stat.MinN)}, st.Notes...) {
		if w != "" {
			para("warning: " + w)
		}
	}
	fmt.Fprintf(b, "seed: %d\n", st.Seed)
	if watched {
		para("sentinel: " + st.Sentinel.String())
	} else if st.Sentinel != nil && p.Rehearsal == nil {
		b.WriteString("sentinel: none, because this host cannot run it\n")
	}
	if n := r.Counting; n > 0 {
		para("calls: " + words.Count(n, "trial") + " more " + map[bool]string{true: "counts", false: "count"}[n == 1] + " system calls, each before the first block of a workload variant")
	}
}

// writeNeed prints how many blocks each comparison takes.
func writeNeed(b *strings.Builder, n *Need, study study.Stop, opt Options) {
	width := fmt.Sprintf("%.3g %%", 100*n.Width)
	b.WriteString("\n" + wrap(fmt.Sprintf("blocks needed for an interval of %s either way, from the scatter in %s:", width, n.From), opt.width(), "    ") + "\n")
	t := section.NewTable(1, "cell", "scatter", "of", "last look", "blocks", "time")
	for i := range n.Rows {
		r := &n.Rows[i]
		row := t.Row(r.Cell.String(), "-", "nothing known", "-", "-", "-")
		if r.Scatter > 0 {
			row[1].First, row[2].First = wide(math.Expm1(r.Scatter)), r.From
			if r.Last > 0 {
				row[3].First = wide(r.Last)
			}
			if r.Blocks > 0 {
				row[4].First, row[5].First = strconv.Itoa(r.Blocks), words.Duration(time.Duration(r.Blocks)*r.Block)
				switch {
				case r.Most == 0:
					row[4].First += fmt.Sprintf(" (%d or more)", r.Fewest)
				case r.Fewest < r.Most:
					row[4].First += fmt.Sprintf(" (%d to %d)", r.Fewest, r.Most)
				}
			}
		}
	}
	writeTable(b, t, opt)
	if n.Time > 0 {
		b.WriteString(wrap("all of it takes up to "+words.Duration(n.Time)+", from the upper ends of the ranges, with as many blocks for each workload variant as its noisiest comparison needs. The scatter is that of a ratio from block to block. "+
			"The range contains the number in 80 % of cases, because a few blocks say little about their scatter. \"last look\" is the half-width at the study's last look.", opt.width(), "    ") + "\n")
	}
	if w := study.WideAt(n.Width); w != "" {
		b.WriteString(wrap("warning: "+w, opt.width(), "    ") + "\n")
	}
	if n.Never > 0 {
		b.WriteString(wrap(words.Count(n.Never, "comparison")+" without a number of blocks: the results say nothing about the scatter, or it is too large to measure; the time excludes them", opt.width(), "    ") + "\n")
	}
}

// wide is a relative width in per cent, with two digits or as a whole number.
func wide(x float64) string {
	if x >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*x)
	}
	return fmt.Sprintf("%.2g %%", 100*x)
}

// fromTo is a range, or its one value.
func fromTo(least, most string) string {
	if least == most {
		return least
	}
	return least + " to " + most
}

// expected is a sentence about the time that is left.
func expected(r plan.Progress) string {
	s := "time: " + fromTo(words.Duration(r.LeastTime), words.Duration(r.MostTime)) + words.Past(r)
	if r.Unknown > 0 {
		s += fmt.Sprintf(", and %s of unknown duration", words.Count(r.Unknown, "trial"))
	}
	return s
}

func orderTable(order []plan.Next) *section.Table {
	var factors []string
	for _, n := range order {
		for _, l := range n.Cell {
			factors = ordered.Add(factors, l.Factor)
		}
	}
	// Factors that never change are said above already.
	factors = slices.DeleteFunc(factors, func(f string) bool {
		for _, n := range order {
			first, _ := order[0].Cell.Get(f)
			if v, ok := n.Cell.Get(f); !ok || v != first {
				return false
			}
		}
		return len(order) > 1
	})
	t := section.NewTable(1, append([]string{"trial"}, factors...)...)
	t.Words = true
	for _, n := range order {
		row := []string{strconv.Itoa(n.Seq)}
		for _, f := range factors {
			v, ok := n.Cell.Get(f)
			if !ok {
				v = "-" // the factor does not apply to this cell
			}
			row = append(row, v)
		}
		t.Row(row...)
	}
	return t
}
