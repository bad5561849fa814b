package text

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/record"
	"tare/report/words"
)

// maxCauses bounds the rows of cells that cost, where no summary table has them.
const maxCauses = 40

// maxGroups bounds the sentences that say by what a cause is known.
const maxGroups = 8

// writeCauses says what bounds the cells whose isolation costs, and what the others.
func writeCauses(b *strings.Builder, res *analyse.Result, opt Options) {
	if len(res.Causes) == 0 {
		return
	}
	b.WriteString("\ncauses:\n")
	if s := words.CausesSentence(res); s != "" {
		b.WriteString(wrap(s, opt.width(), "  ") + "\n")
	}
	for _, s := range words.CausesMissing(res) {
		item(b, opt, s)
	}
	if !words.Known(res) {
		return
	}
	for _, m := range words.TableCauses(res) {
		b.WriteString("\n" + wrap(m.Title+", what bounds each cell:", opt.width(), "  ") + "\n")
		b.WriteString(causeGrid(res, &m).render(opt))
		b.WriteString(wrap("The most frequent cause among those of a cell's strata that cost, and in how many of all; undecided: none is known to cost, and in so many of all nothing is decided; no cost: all are as good as the baseline or better. "+
			"Below it the mean confidence; with ?: below "+percentOf(words.Doubtful)+".", opt.width(), "") + "\n")
	}
	groups := causeGroups(res)
	if len(groups) == 0 {
		return
	}
	if len(res.Tables) == 0 {
		writeCostly(b, res, opt)
	}
	b.WriteString("\n" + wrap("by what each is known (the cell that loses most):", opt.width(), "  ") + "\n")
	for _, g := range groups[:min(len(groups), maxGroups)] {
		item(b, opt, g.text(res))
	}
	if more := len(groups) - maxGroups; more > 0 {
		item(b, opt, fmt.Sprintf("and %d more: --csv --causes has all", more))
	}
}

// causeGrid is a map as a table of words.
func causeGrid(res *analyse.Result, m *words.CauseMap) grid {
	g := grid{keys: 1, header: []string{strings.Join(m.Factors, ", ")}}
	for _, c := range m.Columns {
		if m.Column != "" && !strings.HasPrefix(c, "no ") {
			c = m.Column + " " + c
		}
		g.header = append(g.header, c)
	}
	for i := range m.Rows {
		if m.Rows[i].Baseline {
			continue // it costs nothing beside itself
		}
		row := []gridCell{{first: m.Rows[i].Name}}
		for _, at := range m.Rows[i].Cells {
			row = append(row, causeCell(words.Tally(words.Findings(res, at))))
		}
		g.rows = append(g.rows, row)
	}
	return g
}

func causeCell(t words.CauseTally) gridCell {
	out := gridCell{first: t.Text()}
	switch {
	case t.Costs == 0 && t.Undecided > 0:
		out.colour = text.Colors{text.FgYellow}
	case t.Costs == 0:
	case t.Kind == cause.Unknown, t.Kind == cause.Untold:
		out.colour = text.Colors{text.FgYellow}
	default:
		out.second, out.colour = percentOf(t.Confidence), text.Colors{text.FgRed}
		if t.Confidence < words.Doubtful {
			out.first += " ?"
		}
	}
	return out
}

func percentOf(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// causeGroup are the findings of one treatment with one cause.
type causeGroup struct {
	list []*cause.Finding
}

// causeGroups puts those that cost together, what costs most in all first; then those
// that look so, of which nothing is decided.
func causeGroups(res *analyse.Result) []causeGroup {
	at := make(map[[4]string]int)
	var out []causeGroup
	for i := range res.Causes {
		f := &res.Causes[i]
		if !words.Shown(f) || f.Cause == cause.Unknown {
			continue
		}
		key := [4]string{f.Treatment, string(f.Cause), f.Role, words.CauseState(f)}
		k, ok := at[key]
		if !ok {
			k = len(out)
			at[key] = k
			out = append(out, causeGroup{})
		}
		out[k].list = append(out[k].list, f)
	}
	slices.SortStableFunc(out, func(a, b causeGroup) int {
		if a.list[0].Costs != b.list[0].Costs {
			return map[bool]int{true: -1, false: 1}[a.list[0].Costs]
		}
		return cmp.Compare(b.lost(), a.lost())
	})
	return out
}

// loss is the logarithm of what a cell loses.
func loss(f *cause.Finding) float64 {
	if f.Ratio == nil || !(*f.Ratio > 0) {
		return 0
	}
	return math.Abs(math.Log(*f.Ratio))
}

func (g causeGroup) lost() float64 {
	sum := 0.0
	for _, f := range g.list {
		sum += loss(f)
	}
	return sum
}

// text says what decided the costliest of a group.
func (g causeGroup) text(res *analyse.Result) string {
	worst := g.list[0]
	for _, f := range g.list[1:] {
		if loss(f) > loss(worst) {
			worst = f
		}
	}
	work, in := words.CauseWhere(res, worst, fixedCauses(res))
	s := fmt.Sprintf("%s, %s", in, seen(worst))
	if n := len(g.list); n > 1 {
		s += fmt.Sprintf(" (%d cells)", n)
	}
	s += ": " + work
	if worst.Ratio != nil {
		s += fmt.Sprintf(", %s x the %s", words.Ratio(*worst.Ratio), worst.Response.Name)
	}
	if worst.Undecided {
		s += fmt.Sprintf(" after %s", words.Count(worst.Trials, "trial"))
	}
	if c := words.CauseConfidence(worst); c != "-" {
		s += ", confidence " + c
	}
	s += ". " + strings.TrimSuffix(worst.Text, ".") + "."
	if p := words.CausePrice(worst.Price); p != "" {
		s += " It takes " + p + "."
	}
	return s
}

// seen is a finding's cause, and before it that nothing is decided.
func seen(f *cause.Finding) string {
	if f.Undecided {
		return words.NotDecided + ", " + words.Cause(f)
	}
	return words.Cause(f)
}

// writeCostly lists the cells that cost and those that look so, one a row.
func writeCostly(b *strings.Builder, res *analyse.Result, opt Options) {
	g := grid{keys: 1, header: []string{"work", "in", "ratio", "cause, confidence"}, left: true}
	fixed := fixedCauses(res)
	last, more := "", 0
	for i := range res.Causes {
		f := &res.Causes[i]
		if !words.Shown(f) {
			continue
		}
		if len(g.rows) == maxCauses {
			more++
			continue
		}
		work, in := words.CauseWhere(res, f, fixed)
		row := []gridCell{{first: work}, {first: in}, {first: "-"}, {first: seen(f)}}
		if f.Ratio != nil {
			row[2] = gridCell{first: words.Ratio(*f.Ratio), second: f.Response.Name}
		}
		if c := words.CauseConfidence(f); c != "-" {
			row[3].second = c
		}
		if work == last {
			row[0].first = ""
		}
		last = work
		g.rows = append(g.rows, row)
	}
	b.WriteString("\n" + g.render(opt))
	if more > 0 {
		item(b, opt, fmt.Sprintf("%d more: --csv --causes has all", more))
	}
}

// fixedCauses are the levels that every stratum with a finding has.
func fixedCauses(res *analyse.Result) record.Cell {
	return words.Fixed(func(yield func(record.Cell) bool) {
		for i := range res.Causes {
			if !yield(res.Causes[i].Shared) {
				return
			}
		}
	})
}

// writeModelled says that no machine measured this.
func writeModelled(b *strings.Builder, res *analyse.Result, opt Options) {
	if res.Modelled {
		b.WriteString(wrap(strings.ToUpper(words.Modelled[:8])+words.ModelledAbout[8:], opt.width(), "  ") + "\n")
	}
}
