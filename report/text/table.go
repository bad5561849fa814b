package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"tare/report/section"
	"tare/report/terminal"
	"tare/report/words"
)

// grid is a table before its layout is chosen. The first keys columns name a
// row and are repeated when the others do not fit beside each other.
type grid struct {
	keys    int
	header  []string
	rows    [][]section.Cell
	left    bool // align words to the left; numbers stand right
	grouped bool // a first cell like that above is left out
	sparing bool // without room, second parts are left out, then the second column, then the last
}

// gap is between two columns.
const gap = 2

// render lays a grid out in width columns: cells on one line; else on two; else
// with the first cells on lines of their own, if it is grouped; else in several tables, each with as many columns as fit. If no column fits beside the
// keys, it is a list.
func (g grid) render(o Options) string {
	if g.sparing && sum(g.widths(false)) > o.width() {
		bare := g.bare(o)
		bare.sparing = false
		out := bare.render(o)
		if more := len(g.header) - 1 - len(bare.header); more > 0 {
			out += fmt.Sprintf("  %d more columns: --full has all\n", more)
		}
		return out
	}
	for _, stacked := range []bool{false, true} {
		if sum(g.widths(stacked)) <= o.width() {
			return g.table(o, stacked, all(len(g.header)))
		}
	}
	for _, stacked := range []bool{false, true} {
		if g.grouped && g.keys > 1 && sum(g.widths(stacked)[1:]) <= o.width() {
			return g.headed(o, stacked)
		}
	}
	w := g.widths(true)
	keys := sum(w[:g.keys])
	var parts []string
	for from := g.keys; from < len(w); {
		cols := all(g.keys)
		used := keys
		for from < len(w) && used+gap+w[from] <= o.width() {
			cols = append(cols, from)
			used += gap + w[from]
			from++
		}
		if len(cols) == g.keys {
			return g.list(o)
		}
		parts = append(parts, g.table(o, true, cols))
	}
	return strings.Join(parts, "\n")
}

// headed draws a table without its first column. The names that stand in it are lines of their own, each above its rows.
func (g grid) headed(o Options, stacked bool) string {
	rest := grid{keys: g.keys - 1, header: g.header[1:], left: g.left, rows: make([][]section.Cell, len(g.rows))}
	names := make(map[int]string) // by the line that each stands before
	line := 2                     // below the header
	for k, r := range g.rows {
		if k == 0 || r[0].First != g.rows[k-1][0].First {
			names[line] = wrap(r[0].First, o.width(), "  ") + "\n"
		}
		rest.rows[k] = r[1:]
		if line++; stacked && slices.ContainsFunc(r, tells) {
			line++
		}
	}
	var out strings.Builder
	for n, text := range strings.Split(strings.TrimSuffix(rest.table(o, stacked, all(len(rest.header))), "\n"), "\n") {
		out.WriteString(names[n] + text + "\n")
	}
	return out.String()
}

// bare leaves out what does not fit into the width, at last the last columns.
func (g grid) bare(o Options) grid {
	rows := make([][]section.Cell, len(g.rows))
	for i, r := range g.rows {
		rows[i] = once(r)
	}
	g.rows = rows
	if sum(g.widths(false)) > o.width() {
		g.header = slices.Delete(slices.Clone(g.header), 1, 2)
		for i := range g.rows {
			g.rows[i] = slices.Delete(g.rows[i], 1, 2)
		}
	}
	for len(g.header) > g.keys+1 && sum(g.widths(false)) > o.width() {
		g.header = g.header[:len(g.header)-1]
		for i := range g.rows {
			g.rows[i] = g.rows[i][:len(g.header)]
		}
	}
	return g
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func sum(w []int) int {
	n := gap * max(0, len(w)-1)
	for _, x := range w {
		n += x
	}
	return n
}

// widths are those of the columns.
func (g grid) widths(stacked bool) []int {
	w := make([]int, len(g.header))
	for i, h := range g.header {
		w[i] = text.StringWidthWithoutEscSequences(h)
	}
	for _, r := range g.rows {
		for i, c := range r {
			a, b := text.StringWidthWithoutEscSequences(c.First), text.StringWidthWithoutEscSequences(c.Second)
			n := max(a, b)
			if !stacked && b > 0 {
				n = a + 1 + b
			}
			w[i] = max(w[i], n)
		}
	}
	return w
}

// table draws the chosen columns.
func (g grid) table(o Options, stacked bool, cols []int) string {
	t := table.NewWriter()
	st := table.StyleDefault
	st.Options = table.Options{SeparateHeader: true}
	st.Box = table.BoxStyle{MiddleHorizontal: "-", MiddleSeparator: strings.Repeat("-", gap), MiddleVertical: strings.Repeat(" ", gap)}
	st.Options.SeparateColumns = true
	st.Format.Header = text.FormatDefault
	t.SetStyle(st)
	head := make(table.Row, len(cols))
	conf := make([]table.ColumnConfig, len(cols))
	for i, c := range cols {
		head[i] = g.header[c]
		conf[i] = table.ColumnConfig{Number: i + 1}
		if c >= g.keys && !g.left {
			conf[i].Align, conf[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(conf)
	for k, r := range g.rows {
		row := make(table.Row, len(cols))
		if stacked && !slices.ContainsFunc(r, tells) {
			r = once(r)
		}
		for i, c := range cols {
			row[i] = cellText(&r[c], o, stacked)
		}
		if g.grouped && k > 0 && r[0].First == g.rows[k-1][0].First {
			row[0] = ""
		}
		t.AppendRow(row)
	}
	return trimLines(t.Render()) + "\n"
}

// tells reports whether a cell's second line has more than the legend of the cell's sign.
func tells(c section.Cell) bool { return c.Second != "" && c.Second != words.TooFew }

// once is a row without second lines.
func once(row []section.Cell) []section.Cell {
	row = slices.Clone(row)
	for i := range row {
		row[i].Second = ""
	}
	return row
}

func cellText(c *section.Cell, o Options, stacked bool) string {
	switch {
	case c.Second == "":
		return paint(o, c.Tone, c.First)
	case stacked:
		return paint(o, c.Tone, c.First) + "\n" + paint(o, c.Tone, c.Second)
	}
	return paint(o, c.Tone, c.First+" "+c.Second)
}

// paint colours s, which has no newline, if the caller wants colours.
func paint(o Options, tone words.Tone, s string) string {
	var codes []int
	for _, c := range colours(tone) {
		codes = append(codes, int(c))
	}
	return o.Ink.Paint(s, codes...)
}

// list writes one line for each cell: the layout of last resort.
func (g grid) list(o Options) string {
	var b strings.Builder
	for _, r := range g.rows {
		var names []string
		for _, c := range r[:g.keys] {
			names = append(names, c.First)
		}
		b.WriteString(strings.Join(names, " ") + "\n")
		for i := g.keys; i < len(r); i++ {
			if v := cellText(&r[i], o, false); v != "" {
				b.WriteString("  " + g.header[i] + ": " + v + "\n")
			}
		}
	}
	return b.String()
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// Bounds on how much of one text is shown, in bytes. A level has at most 1 KiB, and a cell
// may name several; somebody else's results may hold anything.
const (
	maxCell      = 4 << 10
	maxParagraph = 16 << 10
)

// shorten cuts a piece of data to fit a table or a paragraph.
func shorten(s string, most int) string { return terminal.Line(terminal.Cut(s, most)) }

// wrap breaks text into lines of at most width columns, the second and later
// ones indented.
func wrap(s string, width int, indent string) string {
	return wrapItems(strings.Fields(shorten(s, maxParagraph)), width, indent)
}

// wrapItems does so with items that may have spaces in them.
func wrapItems(items []string, width int, indent string) string {
	var lines []string
	line := ""
	for _, w := range items {
		switch {
		case line == "":
			line = w
		case text.StringWidthWithoutEscSequences(line)+1+text.StringWidthWithoutEscSequences(w) > width:
			lines = append(lines, line)
			line = indent + w
		default:
			line += " " + w
		}
	}
	return strings.Join(append(lines, line), "\n")
}
