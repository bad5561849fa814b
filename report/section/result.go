package section

import (
	"fmt"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/words"
)

// Doubtful follows the sign of a row that is called different and does not survive
// correction for multiple comparisons.
const Doubtful = "~"

// Unequal follows the sign of a row whose sides differed in more than the compared factor.
const Unequal = "≠"

// SignOf is how a verdict is shown.
func SignOf(v stat.Verdict) Sign {
	switch v { // more memory is not slower
	case stat.Faster:
		return Sign{"▲", "costs less", words.Better}
	case stat.Slower:
		return Sign{"▼", "costs more", words.Worse}
	case stat.Higher:
		return Sign{"↑", "higher", words.Differs}
	case stat.Lower:
		return Sign{"↓", "lower", words.Differs}
	case stat.Equivalent:
		return Sign{"=", "free", words.Equal}
	case stat.Bounded:
		return Sign{"≤", "no cost above this", words.Bounded}
	case stat.TooFew:
		return Sign{"(?)", "too few blocks to say", words.Undecided}
	}
	if of, is := v.Perhaps(); is {
		g := SignOf(of)
		return Sign{"(" + g.Mark + ")", "perhaps " + g.Text + ", too few blocks", words.Undecided}
	}
	return Sign{"?", "too noisy to say", words.Undecided}
}

// Verdicts are all of them, in the order in which legends have them.
func Verdicts() []stat.Verdict {
	sure := []stat.Verdict{stat.Faster, stat.Slower, stat.Higher, stat.Lower, stat.Equivalent, stat.Bounded}
	return append(append(sure, stat.AllPerhaps()...), stat.TooFew, stat.Undecided)
}

// Results is the table of all comparisons: a row for each stratum and response, a column
// for each treatment.
func Results(r *analyse.Result) *Section {
	s := &Section{ID: "results"}
	if len(r.Compared) == 0 {
		s.Text("Nothing has been measured.")
		return s
	}
	fixed := fixedLevels(r)
	s.Text(words.With(r, fixed))
	names, col := treatments(r)
	t := NewTable(3, append([]string{"workload", "response", "n"}, names...)...)
	t.Grouped = true
	for _, row := range r.Rows() {
		n := blocks(row)
		if only := &row[0]; len(row) == 1 && only.Baseline && only.Level.N > 0 { // nothing is compared with it
			n = strconv.Itoa(only.Level.N)
		}
		cells := t.Row(words.Stratum(r, row[0].Workload, row[0].Shared, fixed), row[0].Response.Name, n)
		for i := range row {
			if c, ok := col[row[i].Treatment]; ok {
				cells[3+c] = comparison(r, &row[i])
			}
		}
	}
	s.Table(t)
	return s
}

// Legend explains the table of Results, with the signs that are in it, and says what else
// must be known about its ratios.
func Legend(r *analyse.Result) *Section {
	s := &Section{ID: "legend"}
	if len(r.Compared) == 0 {
		return s
	}
	if alone(r) {
		s.Note("The values are geometric means. n: good trials.")
	} else {
		s.Note(fmt.Sprintf("%s: the value. Others: ratio to it in the same block and its %s %% interval. n: blocks, each a run of all sandboxes.", words.Base(r), perCent(r.Confidence)))
	}
	seen := make(map[stat.Verdict]bool)
	doubts, unequal, late := false, false, false
	for i := range r.Compared {
		c := &r.Compared[i]
		v := c.Estimate.Shown(c.Verdict, c.Response.Better)
		cell := comparison(r, c).First
		late = late || c.Level.AtLeast || c.Base.AtLeast
		if cell, bare := strings.CutSuffix(cell, Unequal); strings.HasSuffix(strings.TrimSuffix(cell, Doubtful), SignOf(v).Mark) {
			seen[v] = true
			doubts, unequal = doubts || strings.HasSuffix(cell, Doubtful), unequal || bare
		}
	}
	var signs []Sign
	for _, v := range Verdicts() {
		if g := SignOf(v); seen[v] {
			if v == stat.Equivalent {
				g.Text += fmt.Sprintf(" (within %s %%)", perCent(r.Margin))
			}
			signs = append(signs, g)
		}
	}
	if doubts {
		signs = append(signs, Sign{Mark: Doubtful, Text: "fails correction for many comparisons"})
	}
	if unequal {
		signs = append(signs, Sign{Mark: Unequal, Text: "differs in more than the " + r.Compare + ", see below"})
	}
	if late {
		signs = append(signs, Sign{Mark: ">", Text: words.TooLate})
	}
	if len(signs) > 0 {
		s.Blocks = append(s.Blocks, Block{Signs: signs})
	}
	s.Text(words.Discoveries(r))
	s.Text(words.Exaggerated(r))
	s.Text(words.Accelerators(r))
	return s
}

func perCent(x float64) string { return strconv.FormatFloat(100*x, 'g', 4, 64) }

// fixedLevels are the levels that every stratum has.
func fixedLevels(r *analyse.Result) record.Cell {
	return words.Fixed(r.Compared, func(x *analyse.Comparison) record.Cell { return x.Shared })
}

// blocks is n of a row: from the least to the most of its comparisons.
func blocks(row []analyse.Comparison) string {
	lo, hi := -1, 0
	for i := range row {
		if c := &row[i]; !c.Baseline && c.Skipped == "" {
			n := c.Estimate.N
			if lo < 0 || n < lo {
				lo = n
			}
			hi = max(hi, n)
		}
	}
	switch {
	case lo < 0:
		return "-"
	case lo == hi:
		return strconv.Itoa(lo)
	}
	return fmt.Sprintf("%d–%d", lo, hi)
}

func comparison(r *analyse.Result, c *analyse.Comparison) Cell {
	switch out := c.Outcome(); out {
	case analyse.Skipped, analyse.BelowNoise, analyse.NoValue:
		return Cell{First: string(out)}
	case analyse.GivenUp, analyse.Failed:
		return Cell{First: string(out), Tone: words.Worse}
	case analyse.Baseline:
		return Cell{First: words.Typical(&c.Level, c.Response.Shown())}
	case analyse.NoRatio:
		level := words.Typical(&c.Level, c.Response.Shown())
		switch {
		case c.Base.BelowNoise > 0:
			return Cell{First: level, Second: "no ratio"}
		case c.Estimate.N == 0:
			return Cell{First: level} // without a baseline there is still something to say
		}
		return Cell{First: level + " ?", Second: "no ratio"}
	}
	out := ratioCell(&c.Estimate, c.Estimate.Shown(c.Verdict, c.Response.Better))
	out.First = words.Bound(c) + out.First
	if c.Doubtful() {
		out.First += Doubtful
	}
	if r.Unequal(c) {
		out.First += Unequal
	}
	return out
}

// ratioCell is a ratio with the sign of a shown verdict, and its interval or how many blocks one needs.
func ratioCell(e *stat.Estimate, shown stat.Verdict) Cell {
	g := SignOf(shown)
	return Cell{First: words.Ratio(e.Ratio) + " " + g.Mark, Second: interval(e), Tone: g.Tone}
}

func interval(e *stat.Estimate) string {
	if !e.HasInterval() {
		return words.TooFew
	}
	return words.Ratio(e.Lo) + "–" + words.Ratio(e.Hi)
}
