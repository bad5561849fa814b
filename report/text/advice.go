package text

import (
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
	"tare/report/words"
	"tare/study"
)

// maxAdvice bounds the items in a report; `tare advise` prints all of them.
const maxAdvice = 6

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
		s := adviceOf(res, x) + ": " + x.Text
		if g := adviceGain(res, x); g != "" && !x.Contradicted {
			s += " " + g
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
		if i > 0 {
			b.WriteString("\n")
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

func writeItem(b *strings.Builder, res *analyse.Result, x *advice.Item, n int, opt Options) {
	head := fmt.Sprintf("%d. %s: ", n, adviceOf(res, x))
	body := wrap(head+x.Text, opt.width(), "   ")
	if opt.Colour {
		colour := text.Colors{text.Bold}
		if x.Contradicted {
			colour = text.Colors{text.FgYellow}
		}
		lines := strings.Split(body, "\n")
		for i := range lines {
			lines[i] = paint(colour, lines[i])
		}
		body = strings.Join(lines, "\n")
	}
	b.WriteString(body + "\n")
	about := words.Count(len(x.Cells), "cell")
	if x.Cause != "" {
		about = "cause " + x.Cause + ", " + about
	}
	rows := []struct{ name, text string }{
		{"for", adviceCells(res, x) + " (" + about + ")"}, {"gain", adviceGain(res, x)}, {"not proven", x.Unproven},
		{"price", x.Price}, {"take care", x.Warning}, {"rule", x.Rule + ", from: " + x.Source},
	}
	for _, r := range rows {
		if r.text != "" {
			b.WriteString("   " + wrap(r.name+": "+r.text, opt.width()-3, "     ") + "\n")
		}
	}
	for _, p := range x.Patches {
		b.WriteString("   " + wrap("patch for "+p.For+", "+p.File+":", opt.width()-3, "     ") + "\n")
		for line := range strings.Lines(p.Text) { // as it is: it is to be copied
			b.WriteString("       " + clean(strings.TrimRight(line, "\n")) + "\n")
		}
	}
}

// adviceOf names the treatment that an item is about.
func adviceOf(res *analyse.Result, x *advice.Item) string {
	return words.TreatmentOf(res, x.Treatment, record.Cell{{Factor: res.Compare, Value: x.Treatment}})
}

// adviceGain says what a setting is worth where it was measured.
func adviceGain(res *analyse.Result, x *advice.Item) string {
	g := x.Gain
	if g == nil {
		return ""
	}
	verb := "Measured"
	if res.Modelled {
		verb = "Modelled"
	}
	s := fmt.Sprintf("%s: %s %s (%s–%s) times that without, %s", verb, g.Response, words.Ratio(g.Ratio), words.Ratio(g.Lo), words.Ratio(g.Hi), words.Count(g.Pairs, "block"))
	if g.Cells > 1 {
		return fmt.Sprintf("%s of %d pairs of cells.", s, g.Cells)
	}
	return s + "."
}

// adviceCells lists an item's cells compactly: the workloads, then each factor with the
// levels that occur. What all cells of the study have alike is left out, and what the
// treatment's name says.
func adviceCells(res *analyse.Result, x *advice.Item) string {
	said := fixedLevels(res)
	if i := slices.IndexFunc(res.Treatments, func(t analyse.Treatment) bool { return t.Key == x.Treatment }); i >= 0 {
		said = append(slices.Clone(said), res.Treatments[i].Cell...)
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
	var out []string
	for _, f := range factors {
		combinations *= len(levels[f])
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
	case combinations > len(x.Cells):
		s += ", " + strconv.Itoa(len(x.Cells)) + " of these combinations"
	}
	return s
}

// WriteDocuments prints patches ready to be saved: nothing but them and comments, the
// same sign in all that they are written in.
func WriteDocuments(w io.Writer, docs []advice.Document) error {
	var b strings.Builder
	for i, d := range docs {
		if i > 0 && d.YAML {
			b.WriteString("---\n")
		} else if i > 0 {
			b.WriteString("\n")
		}
		for _, about := range append([]string{d.File}, d.About...) {
			b.WriteString("# " + clean(about) + "\n")
		}
		for line := range strings.Lines(d.Text) {
			b.WriteString(clean(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
