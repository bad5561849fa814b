package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
	"tare/report/words"
)

// describe writes title, subtitle, caption and the text for those who do not see
// the picture.
func (b *builder) describe(f *Figure) {
	if f.Kind == CauseMap {
		b.describeCauses(f)
		return
	}
	if f.Summary != "" {
		b.describeTable(f)
		return
	}
	if f.Curve != nil {
		b.describeCurve(f)
		return
	}
	if f.Plateaus {
		b.describePlateaus(f)
		return
	}
	if f.Kind == Grid {
		b.describeGrid(f)
		return
	}
	if f.Kind == Starts {
		b.describeStarts(f)
		return
	}
	var by []string
	for _, a := range []*Axis{&f.X, &f.Colour, &f.Hatch} {
		if a.used() && a.Factor != factorWhat {
			by = append(by, a.Factor)
		}
	}
	what := f.what()
	if f.Value == Cost && f.judged() {
		what = "cost in " + what
	} else if f.Value == Cost {
		what += " as a ratio to " + f.Baseline
	} else if u := f.unit(); u != "" {
		what += " (" + string(u) + ")"
	}
	f.Title = fmt.Sprintf("%s by %s", what, words.List(by))
	if f.Workload != "" {
		f.Title = f.Workload + ": " + f.Title
	}
	var sub []string
	if len(f.Fixed) > 0 {
		sub = append(sub, words.Levels(b.src.Result, f.Fixed, ", "))
	}
	switch better := f.Response.Better; {
	case f.Value == Cost && f.judged():
		sub = append(sub, "more is worse")
	case better != record.Neither && better != "":
		sub = append(sub, string(better)+" is better")
	}
	f.Subtitle = strings.Join(sub, "; ")
	f.Caption = b.caption(f)
	f.Alt = alt(f)
}

// mostListed is how many responses are named; of more the number is said.
const mostListed = 3

// what are the responses of a figure, in words.
func (f *Figure) what() string {
	var names []string
	for i := range f.Marks {
		if n := f.Marks[i].Response.Name; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	switch {
	case f.Response.Name != "":
		return f.Response.Name
	case len(names) > mostListed:
		return words.Count(len(names), "response")
	}
	return words.List(names)
}

// judged reports whether a response of the figure has a better side, so that its
// ratios are costs.
func (f *Figure) judged() bool {
	return slices.ContainsFunc(f.Marks, func(m Mark) bool { return m.judged() })
}

func (m *Mark) judged() bool {
	return m.Response.Better == record.Higher || m.Response.Better == record.Lower
}

// times says what a figure's costs are multiples of.
func (f *Figure) times() string {
	if f.judged() {
		return "times " + f.Baseline + "'s cost"
	}
	return "ratio to " + f.Baseline
}

// overview reports whether the figure is that of all costs.
func (f *Figure) overview() bool { return f.X.Factor == factorWhat || f.Colour.Factor == factorWhat }

func (b *builder) caption(f *Figure) string {
	res := b.src.Result
	lo, hi, few, gaps, late, whiskers, cut := 0, 0, 0, 0, 0, false, false
	for i := range f.Marks {
		m := &f.Marks[i]
		if m.Gap != "" {
			gaps++
			continue
		}
		if m.single() {
			few++
		}
		if m.Bound != "" {
			late++
		}
		if lo == 0 || m.N < lo {
			lo = m.N
		}
		hi = max(hi, m.N)
		whiskers = whiskers || m.HasInterval()
	}
	var parts []string
	switch {
	case hi == 0:
	case lo == hi:
		parts = append(parts, "n = "+words.Count(hi, "block"))
	default:
		parts = append(parts, fmt.Sprintf("n = %d to %d blocks", lo, hi))
	}
	of := "the geometric mean over blocks"
	if f.Value == Cost {
		of = "the cost within blocks"
	}
	if whiskers && f.Kind == Heat && f.Value == Level {
		whiskers = false
	}
	if whiskers {
		sign := "whiskers: "
		if f.Kind == Heat {
			sign = "a–b: "
		}
		parts = append(parts, fmt.Sprintf("%s%s %% interval of %s", sign, strconv.FormatFloat(100*res.Level, 'g', 4, 64), of))
	}
	if f.Kind != Heat && f.Kind != Grid {
		if s := newScale(f, false); s.cut {
			cut = true
		}
	}
	if cut {
		parts = append(parts, "an arrow: it goes on")
	}
	if few > 0 {
		parts = append(parts, fmt.Sprintf("%s with fewer than %d blocks: single blocks, no interval", cells(few), stat.MinN))
	}
	if late > 0 {
		parts = append(parts, fmt.Sprintf("%s with > or <: %s", cells(late), words.TooLate))
	}
	if gaps > 0 {
		parts = append(parts, fmt.Sprintf("%s without a value: %s", cells(gaps), reasons(f)))
	}
	if f.Value == Cost && f.Kind != Heat {
		parts = append(parts, fmt.Sprintf("band: free, within %s %%", strconv.FormatFloat(100*f.Margin, 'g', 3, 64)))
	}
	return b.withTail(f, parts)
}

// withTail ends a caption with what holds for all figures of a study.
func (b *builder) withTail(f *Figure, parts []string) string {
	res := b.src.Result
	tail := []string{"baseline " + res.Baseline, "study " + res.Study}
	if !res.Finished {
		tail = append(tail, "not finished")
	}
	machine := func(m Mark) bool { return res.Accelerated(m.Cell) != "" }
	if note := strings.TrimSuffix(words.Accelerators(res), "."); note != "" && slices.ContainsFunc(f.Marks, machine) {
		tail = append(tail, note)
	}
	tail = append(tail, hosts(b.src.Hosts)...)
	if b.src.Tare != "" {
		tail = append(tail, "tare "+b.src.Tare)
	}
	out := strings.Join(tail, "; ")
	if len(parts) > 0 {
		out = strings.Join(parts, "; ") + ". " + strings.ToUpper(out[:1]) + out[1:]
	}
	return out
}

// reasons counts the gaps by their word.
func reasons(f *Figure) string {
	n := make(map[string]int)
	var gaps []string
	for i := range f.Marks {
		if g := f.Marks[i].Gap; g != "" {
			if n[g] == 0 {
				gaps = append(gaps, g)
			}
			n[g]++
		}
	}
	slices.Sort(gaps)
	for i, w := range gaps {
		gaps[i] = fmt.Sprintf("%d %s", n[w], w)
	}
	return strings.Join(gaps, ", ")
}

func hosts(hs []record.Host) []string {
	var out []string
	for _, h := range hs {
		var parts []string
		if h.CPUModel != "" {
			parts = append(parts, h.CPUModel)
		}
		if h.Threads > 0 {
			parts = append(parts, fmt.Sprintf("%d threads", h.Threads))
		}
		s := cmp.Or(strings.Join(parts, ", "), "an unknown processor")
		if h.Hostname != "" {
			s = "host " + h.Hostname + ": " + s
		}
		out = ordered.Add(out, s)
	}
	if len(out) > 2 {
		out = append(out[:2], fmt.Sprintf("and %d other hosts", len(out)-2))
	}
	return out
}

// mostSpoken bounds the cells that an alternative text reads out; the index has
// all of them in a table.
const mostSpoken = 40

func alt(f *Figure) string {
	kind := map[Graph]string{Bar: "Bar graph", Line: "Line graph", Heat: "Heat map", Dot: "Dot graph", CauseMap: "Cause map", Grid: "Grid of line graphs", Starts: "Bars of steps"}[f.Kind]
	var b strings.Builder
	fmt.Fprintf(&b, "%s. %s.", kind, f.Title)
	if f.Subtitle != "" {
		fmt.Fprintf(&b, " %s.", f.Subtitle)
	}
	for i := range f.Marks {
		if i == mostSpoken {
			fmt.Fprintf(&b, " And %d more cells, in the table.", len(f.Marks)-i)
			break
		}
		fmt.Fprintf(&b, " %s: %s.", f.place(&f.Marks[i]), f.spoken(&f.Marks[i]))
	}
	return clean(b.String())
}

// place is where a mark stands, in words: its levels.
func (f *Figure) place(m *Mark) string {
	var out []string
	for _, p := range []struct {
		a *Axis
		i int
	}{{&f.X, m.X}, {&f.Colour, m.Colour}, {&f.Hatch, m.Hatch}} {
		if p.a.used() {
			out = append(out, strings.ReplaceAll(p.a.label(p.i), "\n", " "))
		}
	}
	return strings.Join(out, ", ")
}

// spoken is a mark's value in words.
func (f *Figure) spoken(m *Mark) string {
	if m.Gap != "" {
		return m.Gap + ", " + m.Why
	}
	if m.Cause != nil {
		return spokenCause(m.Cause)
	}
	write := func(v float64) string { return words.Value(v, m.Response.Shown()) }
	out := m.Bound + write(m.Value)
	if f.Value == Cost {
		write = words.Ratio
		if out = m.Bound + words.Times(m.Value); m.judged() {
			out += " the cost"
		}
	}
	if m.Level > 0 {
		value, _ := m.summaryText(true)
		if m.Baseline {
			return value + ", the baseline"
		}
		out = value + ", " + out
	}
	if m.HasInterval() {
		out += " (" + write(m.Lo) + " to " + write(m.Hi) + ")"
	} else {
		out += fmt.Sprintf(" (no interval, n %d)", m.N)
	}
	if m.Verdict != "" {
		out += ", " + string(m.Verdict)
	}
	return out
}
