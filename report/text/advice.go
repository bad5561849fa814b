package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/record"
	"tare/report/terminal"
	"tare/report/words"
	"tare/study"
)

// maxAdvice bounds the items in a report; `tare advise` prints all of them.
const maxAdvice = 6

// maxGains bounds an item's there: of a setting in two responses, or of one with what it
// loses elsewhere.
const maxGains = 3

// writeAdvice says what to set, in short and without the patches. That no cause is known
// is said where the causes are.
func writeAdvice(b *strings.Builder, res *analyse.Result, opt Options) {
	var items []advice.Item
	for _, x := range res.Advice {
		if x.Cause != string(cause.Unknown) {
			items = append(items, x)
		}
	}
	if len(items) == 0 {
		return
	}
	b.WriteString("\nadvice:\n")
	for i := range items[:min(len(items), maxAdvice)] {
		x := &items[i]
		s := words.AdviceFor(res, x) + ": " + x.Text
		if x.Brief {
			s = words.AdviceFor(res, x) + ": " + words.AdviceBrief(x)
		} else if gains := words.AdviceGains(res, x); len(gains) > 0 && !x.Contradicted {
			s += " " + strings.Join(gains[:min(len(gains), maxGains)], " ")
		}
		item(b, opt, s)
	}
	dir := "DIR"
	if opt.Dir != "" {
		dir = words.Path(opt.Dir)
	}
	s := "All of it, with cells, prices, sources and patches: tare advise " + dir
	if more := len(items) - maxAdvice; more > 0 {
		s = fmt.Sprintf("And %d more. ", more) + s
	}
	b.WriteString(wrap(s, opt.width(), "  ") + "\n")
}

// WriteAdvice prints items of a result's advice at length, with their patches.
func WriteAdvice(w io.Writer, res *analyse.Result, items []advice.Item, opt Options) error {
	var b strings.Builder
	if res.Modelled {
		b.WriteString(wrap(words.ModelledAbout, opt.width(), "") + "\n\n")
	}
	if len(items) == 0 {
		b.WriteString(wrap(noAdvice(res), opt.width(), "") + "\n")
	}
	for i := range items {
		if i > 0 && (!inBrief(&items[i]) || !inBrief(&items[i-1])) {
			b.WriteString("\n")
		}
		if inBrief(&items[i]) {
			writeBrief(&b, res, &items[i], i+1, opt)
			continue
		}
		writeItem(&b, res, &items[i], i+1, opt)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// noAdvice says why there is none.
func noAdvice(res *analyse.Result) string {
	switch {
	case len(res.Compared) == 0:
		return "Nothing has been measured, so there is nothing to advise on."
	case len(res.Causes) == 0:
		return "No cause was looked for in these results, so there is nothing to advise on."
	case len(res.Advice) > 0:
		return "No advice is about such cells."
	}
	return "Nothing is known to cost, and nothing was compared with a baseline: there is nothing to set."
}

// inBrief reports whether a line says enough of an item: what was tried in vain has its
// figures in its text.
func inBrief(x *advice.Item) bool { return x.Brief || x.Contradicted }

// writeBrief writes an item of which a line is enough.
func writeBrief(b *strings.Builder, res *analyse.Result, x *advice.Item, n int, opt Options) {
	s := fmt.Sprintf("%d. %s: %s (%s; rule %s)", n, words.AdviceFor(res, x), words.AdviceBrief(x), adviceCells(res, x), x.Rule)
	s = wrap(s, opt.width(), "   ")
	if x.Contradicted {
		s = painted(opt, text.FgYellow, s)
	}
	b.WriteString(s + "\n")
}

// painted colours each line.
func painted(opt Options, c text.Color, s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = paint(opt, text.Colors{c}, lines[i])
	}
	return strings.Join(lines, "\n")
}

func writeItem(b *strings.Builder, res *analyse.Result, x *advice.Item, n int, opt Options) {
	head := fmt.Sprintf("%d. %s: ", n, words.AdviceFor(res, x))
	b.WriteString(painted(opt, text.Bold, wrap(head+x.Text, opt.width(), "   ")) + "\n")
	about := words.Count(len(x.Cells), "cell")
	if x.Cause != "" {
		about = "cause " + x.Cause + ", " + about
	}
	type row struct{ name, text string }
	rows := []row{{"for", adviceCells(res, x) + " (" + about + ")"}}
	for _, g := range words.AdviceGains(res, x) {
		rows = append(rows, row{"gain", g})
	}
	rows = append(rows, row{"not proven", x.Unproven}, row{"price", x.Price}, row{"take care", x.Warning}, row{"rule", x.Rule + ", from: " + x.Source})
	if n := len(x.Targets); n > 1 && len(x.Patches) > 0 {
		t := &x.Targets[0]
		rows = append(rows, row{"patches", fmt.Sprintf("from %s to %s, the costliest of %d targets; --json has all", words.Levels(res, t.From, " "), words.Levels(res, t.To, " "), n)})
	}
	for _, r := range rows {
		if r.text != "" {
			b.WriteString("   " + wrap(r.name+": "+r.text, opt.width()-3, "     ") + "\n")
		}
	}
	for _, p := range x.Patches {
		b.WriteString("   " + wrap("patch for "+p.For+", "+p.File+":", opt.width()-3, "     ") + "\n")
		for line := range strings.Lines(p.Text) { // as it is: it is to be copied
			b.WriteString("       " + terminal.Line(strings.TrimRight(line, "\n")) + "\n")
		}
	}
}

// adviceCells lists an item's cells compactly: the workloads, then each factor with the
// levels that occur. What all cells of the study have alike is left out, and what the
// treatment's name says.
func adviceCells(res *analyse.Result, x *advice.Item) string {
	said := fixedLevels(res)
	for i := range res.Treatments {
		if t := &res.Treatments[i]; t.Key == x.Treatment || slices.Contains(x.Treatments, t.Key) {
			said = append(slices.Clone(said), t.Cell...)
		}
	}
	var factors []string
	levels := make(map[string][]string)
	combinations := 1
	for _, c := range x.Cells {
		for _, l := range c {
			if slices.Contains(said, l) {
				continue
			}
			if levels[l.Factor] == nil {
				factors = append(factors, l.Factor)
			}
			if v := res.LevelName(l); !slices.Contains(levels[l.Factor], v) {
				levels[l.Factor] = append(levels[l.Factor], v)
			}
		}
	}
	order := levelOrder(res)
	var out []string
	for _, f := range factors {
		combinations *= len(levels[f])
		slices.SortStableFunc(levels[f], func(x, y string) int {
			return cmp.Compare(order[record.Level{Factor: f, Value: x}], order[record.Level{Factor: f, Value: y}])
		})
		s := strings.Join(levels[f], "|")
		if f != study.FactorWorkload {
			s = f + "=" + s
		}
		out = append(out, s)
	}
	s := strings.Join(out, " ")
	switch {
	case s == "":
		return "all its cells"
	case combinations*max(1, len(x.Treatments)) > len(x.Cells): // each in every treatment
		s += ", " + strconv.Itoa(len(x.Cells)) + " of these combinations"
	}
	return s
}

// levelOrder is the place of each level, as shown, among those of its factor: the study's order.
func levelOrder(res *analyse.Result) map[record.Level]int {
	out := make(map[record.Level]int)
	for i := range res.Causes {
		for _, l := range res.Causes[i].Cell {
			shown := record.Level{Factor: l.Factor, Value: res.LevelName(l)}
			if _, ok := out[shown]; !ok {
				out[shown] = len(out)
			}
		}
	}
	return out
}

// WriteDocuments prints patches ready to be saved: nothing but them and comments, the
// same sign in all that they are written in.
func WriteDocuments(w io.Writer, docs []advice.Document, modelled bool) error {
	var b strings.Builder
	for i, d := range docs {
		if i > 0 && d.YAML {
			b.WriteString("---\n")
		} else if i > 0 {
			b.WriteString("\n")
		}
		if modelled {
			b.WriteString(words.ModelledPatch + "\n")
		}
		for _, about := range append([]string{d.File}, d.About...) {
			b.WriteString("# " + terminal.Line(about) + "\n")
		}
		for line := range strings.Lines(d.Text) {
			b.WriteString(terminal.Line(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
