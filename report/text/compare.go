package text

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/analyse/compare"
	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
	"tare/report/section"
	"tare/report/words"
)

// CompareOptions say which rows of a comparison are printed, and how.
type CompareOptions struct {
	Options
	All      bool             // those that did not change too
	Study    bool             // in the study's order; else the changed ones first, the largest first
	Gates    []string         // that were checked
	Breaches []compare.Breach // what broke them
	Doubts   []compare.Doubt  // what they cannot judge
	Held     []compare.Held   // what those promise that held
}

// maxListed bounds the lists of rows without a ratio.
const maxListed = 12

// WriteCompare prints a comparison of two results.
func WriteCompare(w io.Writer, res *compare.Result, opt CompareOptions) error {
	var b strings.Builder
	for _, s := range comparison(res, opt) {
		write(&b, s, opt.Options)
	}
	_, err := io.WriteString(w, strings.TrimPrefix(b.String(), "\n"))
	return err
}

// comparison lists the sections of a comparison.
func comparison(res *compare.Result, opt CompareOptions) []*section.Section {
	head, differences := &section.Section{}, &section.Section{}
	out := []*section.Section{head, differences}
	head.Text(fmt.Sprintf("%s: B (%s, %s) compared with A (%s, %s)", res.Study, res.B.Name, words.Count(res.B.Trials, "trial"), res.A.Name, words.Count(res.A.Trials, "trial")))
	for _, warning := range res.Warnings {
		head.Item("", warning)
	}
	if len(res.Differences) == 0 {
		head.Text("The descriptions of hosts, tools and studies are the same.")
	}
	listDifferences(res, differences)
	order := rowOrder(res, opt)
	seen := make(map[string]bool)
	for _, q := range []compare.Question{compare.Cost, compare.Level} {
		t := changes(res, order, q, seen)
		if len(t.Rows) == 0 {
			continue
		}
		s := &section.Section{}
		if q == compare.Cost {
			s.Text(fmt.Sprintf("cost: times %s's, in A and in B; level: the same of the value itself", res.Baseline))
		} else {
			s.Text("level: the value, in A and in B; what the machine was like at both times is part of it")
		}
		s.Table(t)
		out = append(out, s)
	}
	sums := &section.Section{}
	sums.Text(counts(res, opt.All))
	out = append(out, changeLegend(res, seen), sums, missing(res))
	return append(out, gates(res, opt)...)
}

// fewLone is how many facts of sandboxes that only one side has are listed with their values.
const fewLone = 3

// listDifferences lists what else is different. Results of which only one was observed have many facts that the other lacks: these share
// a line, because nobody can tell whether they differ.
func listDifferences(res *compare.Result, s *section.Section) {
	lone := map[string][]string{} // facts by the side that has them
	in := func(d compare.Difference) (side, fact string) {
		_, fact, is := strings.Cut(d.Field, ": ")
		switch {
		case !is || !strings.HasPrefix(d.Field, res.Compare+"="):
		case d.B == compare.Unknown:
			return "A", fact
		case d.A == compare.Unknown:
			return "B", fact
		}
		return "", ""
	}
	for _, d := range res.Differences {
		s.Title = "What else is different"
		if side, fact := in(d); side != "" {
			lone[side] = ordered.Add(lone[side], fact)
		}
	}
	for _, d := range res.Differences {
		if side, _ := in(d); len(lone[side]) <= fewLone {
			s.Item(d.Field, d.A+" -> "+d.B)
		}
	}
	for _, side := range []string{"A", "B"} {
		if facts := lone[side]; len(facts) > fewLone {
			s.Item("known only of "+side, strings.Join(facts, ", ")+" (--json has the values)")
		}
	}
}

// rowOrder chooses the rows and their order.
func rowOrder(res *compare.Result, opt CompareOptions) []int {
	broken := make(map[int]bool)
	for _, x := range opt.Breaches {
		broken[x.Row] = true
	}
	var out []int
	for i := range res.Rows {
		if r := &res.Rows[i]; r.Missing() == "" && (opt.All || broken[i] || r.Change().Changed) {
			out = append(out, i)
		}
	}
	if opt.Study {
		return out
	}
	size := func(i int) float64 { return -math.Abs(math.Log(res.Rows[i].Change().Ratio)) }
	slices.SortStableFunc(out, func(x, y int) int {
		if a, b := res.Rows[x].Change().Changed, res.Rows[y].Change().Changed; a != b {
			if a {
				return -1
			}
			return 1
		}
		return cmp.Compare(size(x), size(y))
	})
	return out
}

func changes(res *compare.Result, order []int, q compare.Question, seen map[string]bool) *section.Table {
	t := section.NewTable(3, "workload", res.Compare, "response", "A", "B", "n", "B costs", "q")
	if q == compare.Cost {
		t.Add("level")
	}
	fixed := fixedIn(res)
	for _, i := range order {
		r := &res.Rows[i]
		if r.Question != q {
			continue
		}
		c := r.Change()
		a, b, n := words.Value(r.A.Level, r.Response.Shown()), words.Value(r.B.Level, r.Response.Shown()), fmt.Sprintf("%d, %d", r.A.N, r.B.N)
		if q == compare.Cost {
			a, b, n = sideCost(r.A, r.Response), sideCost(r.B, r.Response), fmt.Sprintf("%d, %d", r.A.Cost.N, r.B.Cost.N)
		}
		row := t.Row(words.Stratum(nil, r.Workload, r.Shared, fixed), words.Treatment(nil, r.Treatment), r.Response.Name, a, b, n, "", qValue(c))
		row[6] = changeCell(c, r.Response.Better, seen)
		if q == compare.Cost {
			row[8] = levelCell(r.Level, r.Response.Better, seen)
		}
	}
	return t
}

// fixedIn are the levels that all rows have.
func fixedIn(res *compare.Result) record.Cell {
	return words.Fixed(res.Rows, func(x *compare.Row) record.Cell { return x.Shared })
}

// sideCost is what a side says of a cost, as a multiple of its baseline's.
func sideCost(m *compare.Measured, response record.Response) string {
	x, _, _ := m.Cost.Cost(response.Better)
	return words.Ratio(x)
}

// changeMark is the sign of a change's verdict, in brackets where it rests on too few blocks, or
// is not sure enough among so many rows.
func changeMark(c *compare.Change, better record.Better) string {
	s := section.SignOf(stat.Estimate{Ratio: c.Ratio, Lo: c.Lo, Hi: c.Hi}.Shown(c.Verdict, better)).Mark
	if !c.Changed && c.Verdict.Decided() && c.Verdict != stat.Equivalent {
		return "(" + s + ")"
	}
	return s
}

func changeCell(c *compare.Change, better record.Better, seen map[string]bool) section.Cell {
	sign, mark := section.SignOf(c.Verdict), changeMark(c, better)
	seen[mark] = true
	cost, lo, hi := c.Cost(better)
	out := section.Cell{First: words.Times(cost) + " " + mark, Second: words.TooFew}
	if c.Changed || mark == sign.Mark || !c.HasInterval() {
		out.Tone = sign.Tone
	}
	if c.HasInterval() {
		out.Second = words.Ratio(lo) + "–" + words.Ratio(hi)
	}
	return out
}

func levelCell(c *compare.Change, better record.Better, seen map[string]bool) section.Cell {
	if c == nil || c.Undefined != "" {
		return section.Cell{First: "-"}
	}
	mark := changeMark(c, better)
	seen[mark] = true
	cost, _, _ := c.Cost(better)
	return section.Cell{First: words.Times(cost) + " " + mark}
}

func qValue(c *compare.Change) string {
	switch {
	case c.Q == nil:
		return "-"
	case *c.Q < 0.0001:
		return "<0.0001"
	}
	return strconv.FormatFloat(*c.Q, 'g', 2, 64)
}

func changeLegend(res *compare.Result, seen map[string]bool) *section.Section {
	s := &section.Section{}
	if len(seen) == 0 {
		return s
	}
	pc := func(x float64) string { return strconv.FormatFloat(100*x, 'g', 4, 64) + " %" }
	s.Note(fmt.Sprintf("n: blocks of A, of B. B costs: times A's, with its %s interval; more is worse. q: a row counts as changed if this is %s or less.", pc(res.Confidence), pc(res.FDR)))
	signs := []section.Sign{}
	for _, v := range section.Verdicts() {
		if _, is := v.Perhaps(); is {
			continue // its mark is explained below
		}
		g := section.SignOf(v)
		if v == stat.Equivalent {
			g.Text += " (within " + pc(res.Margin) + ")"
		}
		if seen[g.Mark] {
			signs = append(signs, g)
		}
		if mark := "(" + g.Mark + ")"; v.Decided() && seen[mark] {
			signs = append(signs, section.Sign{Mark: mark, Text: g.Text + ", but perhaps by chance"})
		}
	}
	s.Blocks = append(s.Blocks, section.Block{Signs: signs})
	return s
}

// counts sums up the rows, those that are not printed as well.
func counts(res *compare.Result, all bool) string {
	n := res.Counts
	s := fmt.Sprintf("%s compared: %d changed, %d equivalent, %d undecided", words.Count(n.Rows, "row"), n.Changed, n.Equivalent, n.Undecided)
	if n.Unsure > 0 {
		s += fmt.Sprintf(", %d different but perhaps by chance", n.Unsure)
	}
	if n.Missing > 0 {
		s += fmt.Sprintf(", %d without a ratio", n.Missing)
	}
	if !all && n.Changed < n.Rows-n.Missing {
		s += "; --all shows them"
	}
	return s + "."
}

// missing names the rows that have no ratio.
func missing(res *compare.Result) *section.Section {
	out := &section.Section{Title: "Without a ratio"}
	var reasons ordered.Groups[string, string]
	for i := range res.Rows {
		r := &res.Rows[i]
		if why := r.Missing(); why != "" {
			reasons.Add(why, name(r))
		}
	}
	for why, rows := range reasons.All() {
		s := strings.Join(rows[:min(len(rows), maxListed)], "; ")
		if len(rows) > maxListed {
			s += fmt.Sprintf("; and %d more", len(rows)-maxListed)
		}
		out.Item(why, s)
	}
	return out
}

// gates says of each gate what broke it and what it cannot judge, and how many held.
func gates(res *compare.Result, opt CompareOptions) []*section.Section {
	end := &section.Section{}
	switch {
	case len(opt.Gates) == 0:
		return nil
	case len(opt.Breaches) == 0 && res.Comparable() == 0:
		end.Text(NothingHeld(res))
		return []*section.Section{end}
	}
	held := make(map[string]bool)
	for _, g := range opt.Gates {
		held[g] = true
	}
	var out []*section.Section
	var s *section.Section
	last, shown := "", 0
	begin := func(what, gate string) {
		delete(held, gate)
		if title := what + ": " + gate; title != last {
			s, last, shown = &section.Section{}, title, 0
			s.Text(title)
			out = append(out, s)
		}
	}
	for _, x := range opt.Breaches {
		begin("gate broken", x.Gate)
		s.Item("", ChangeLine(&res.Rows[x.Row]))
	}
	for i := range opt.Doubts {
		x := &opt.Doubts[i]
		begin("gate cannot judge", x.Gate)
		switch shown++; {
		case shown <= maxListed:
			s.Item(name(&res.Rows[x.Row]), DoubtLine(x))
		case i+1 == len(opt.Doubts) || opt.Doubts[i+1].Gate != x.Gate:
			s.Item("", "and "+words.Count(shown-maxListed, "more row")+"; --json has them all")
		}
	}
	if len(opt.Doubts) > 0 {
		s.Text(Remedy(opt.Doubts, "measure both sides") + ".")
	}
	if n := len(held); n > 0 {
		end.Text(words.Count(n, "gate") + " held.")
	}
	for _, h := range opt.Held {
		if h.Breaks > 1 {
			end.Text(fmt.Sprintf("%s: a true change of %.3g %% or more would break it with a probability of %.0f %% or more, in each row.", h.Gate, 100*(h.Breaks-1), 100*h.Power))
		}
	}
	return append(out, end)
}

// DoubtLine says why a gate cannot judge a row, and what would do.
func DoubtLine(d *compare.Doubt) string {
	switch {
	case d.Blocks > 0:
		return fmt.Sprintf("%s; it takes %s a side", d.Why, words.Count(d.Blocks, "block"))
	case d.Results > 0:
		return fmt.Sprintf("%s; it takes %s a side", d.Why, words.Count(d.Results, "result"))
	}
	return d.Why
}

// Remedy says what would let gates judge all rows.
func Remedy(doubts []compare.Doubt, measure string) string {
	blocks, results, width, none, far, any := 0, 0, 1.0, false, false, false
	for i := range doubts {
		d := &doubts[i]
		blocks, results = max(blocks, d.Blocks), max(results, d.Results)
		switch {
		case d.Blocks > 0:
			width = math.Min(width, d.Width) // 0 where no width asks for so many
		case d.Limit == 0:
			none = true
		case d.Limit == 1:
			any = true
		case d.Results == 0:
			far = true
		}
	}
	var do []string
	if blocks > 0 {
		s := fmt.Sprintf("%s with `fixed: %d`", measure, blocks)
		if width > 0 {
			s += fmt.Sprintf(", or `width: %.2g%%` and looks up to %d", 100*width, blocks)
		}
		do = append(do, s)
	}
	if results > 0 {
		do = append(do, fmt.Sprintf("give %d results a side", results))
	}
	if far {
		do = append(do, "some rows are too noisy for any number of blocks: leave them out with --only or --responses")
	}
	if any {
		do = append(do, "this gate is broken by any change, however small; give it a limit")
	}
	if none {
		do = append(do, "find out why rows have no interval, or leave them out with --only or --responses")
	}
	if blocks > 0 || results > 0 || far {
		do = append(do, "or ask for less with a wider limit or a lower --power")
	}
	return strings.Join(do, "; ")
}

// NothingHeld says why gates that nothing broke are not held either: no row has
// an interval.
func NothingHeld(res *compare.Result) string {
	missing := 0
	for i := range res.Rows {
		if res.Rows[i].Missing() != "" {
			missing++
		}
	}
	s := fmt.Sprintf("no gate can judge: nothing was compared, because none of %s has an interval", words.Count(len(res.Rows), "row"))
	if missing > 0 {
		s += fmt.Sprintf(" (%d have no ratio)", missing)
	}
	return s + fmt.Sprintf("; it takes %d blocks on both sides", stat.MinN)
}

func name(r *compare.Row) string { return r.Cell.Key() + " " + r.Response.Name }

// ChangeLine says in one line what a row of a comparison comes to.
func ChangeLine(r *compare.Row) string {
	if why := r.Missing(); why != "" {
		return name(r) + ": no ratio: " + why
	}
	c := r.Change()
	cost, lo, hi := c.Cost(r.Response.Better)
	s := fmt.Sprintf("%s: %s %s", name(r), r.Question, words.Times(cost))
	if c.HasInterval() {
		s += fmt.Sprintf(" (%s–%s), q %s", words.Ratio(lo), words.Ratio(hi), qValue(c))
	}
	switch s += ", " + string(c.Verdict); {
	case c.Verdict == stat.Undecided:
		return s + ": " + c.Why
	case c.Verdict != stat.Equivalent && !c.Changed:
		return s + ", but perhaps by chance among so many"
	}
	return s
}
