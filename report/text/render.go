package text

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"

	"tare/report/section"
	"tare/report/terminal"
	"tare/report/words"
)

// Bounds of what is printed. Somebody else's results may have a different reason for each
// of a million trials.
const (
	maxEntries = 100 // of a list
	maxRows    = 40  // of a table that says where all of it is
)

// write lays a section out; nothing of an empty one. A blank line stands before it.
func write(b *strings.Builder, s *section.Section, opt Options) {
	if len(s.Blocks) == 0 {
		return
	}
	b.WriteString("\n")
	if s.Title != "" {
		title := s.Title
		if s.About != "" {
			title += " (" + s.About + ")"
		}
		paragraph(b, small(title)+":", opt)
	}
	blocks(b, s, opt)
}

// blocks writes what a section has, its settings numbered.
func blocks(b *strings.Builder, s *section.Section, opt Options) {
	entries := 0
	for i := range s.Blocks {
		if x := s.Blocks[i].Entry; x != nil {
			entries++
			writeEntry(b, entries, x, opt)
			continue
		}
		block(b, &s.Blocks[i], opt)
	}
}

// small begins a heading with a small letter, unless its first word is an abbreviation.
func small(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if second, _ := utf8.DecodeRuneInString(s[n:]); unicode.IsUpper(second) {
		return s
	}
	return string(unicode.ToLower(first)) + s[n:]
}

func paragraph(b *strings.Builder, s string, opt Options) {
	b.WriteString(opt.cut(wrap(s, opt.width(), "  ")) + "\n")
}

// cut leaves the lines that a paragraph may take: whole clauses where one ends in them, else whole
// words, and no part of a figure. Where the rest is, the last lines say.
func (o Options) cut(s string) string {
	lines := strings.Split(s, "\n")
	if o.lines == 0 || len(lines) <= o.lines || strings.Contains(strings.Join(strings.Fields(s), " "), "tare run ") { // part of a command cannot be copied
		return s
	}
	kept := strings.Join(lines[:o.lines], "\n")
	for _, end := range slices.Backward(clauseEnd.FindAllStringIndex(kept, -1)) {
		clauses := kept[:end[0]]
		if strings.Count(clauses, "(") > strings.Count(clauses, ")") {
			continue // a list in brackets would look complete
		}
		if len(clauses) > len(kept)/3 {
			return clauses + "."
		}
		break
	}
	last := []rune(lines[o.lines-1])
	last = last[:min(len(last), o.width()-6)] // an entry of a list is indented
	if i := strings.LastIndex(string(last), " "); i > len(string(last))/2 {
		last = []rune(string(last)[:i])
	}
	lines[o.lines-1] = dangling.ReplaceAllString(string(last), "") + " ..."
	kept = strings.Join(lines[:o.lines], "\n")
	if strings.Count(kept, "(") > strings.Count(kept, ")") {
		kept += ")"
	}
	return kept
}

var (
	clauseEnd = regexp.MustCompile(`[.;]\s`)
	// dangling are the words before a figure, and its parts, at the end of a line.
	dangling = regexp.MustCompile(`([\s,;.:(]+((up to|than|is|and|to|by|of|in|the|×|%)|[(±≤]*[0-9][0-9.,–]*[)]?))*[\s,;.:(]*$`)
)

func block(b *strings.Builder, x *section.Block, opt Options) {
	switch {
	case x.Head != "":
		b.WriteString("\n")
		paragraph(b, x.Head+":", opt)
	case x.Text != "":
		paragraph(b, x.Text, opt)
	case x.Note != "":
		b.WriteString(wrap(x.Note, opt.width(), "") + "\n")
	case x.Signs != nil:
		signs := make([]string, len(x.Signs))
		for i, s := range x.Signs {
			signs[i] = paint(opt, s.Tone, s.Mark) + " " + s.Text
		}
		b.WriteString(wrapItems(signs, opt.width(), "") + "\n")
	case x.List != nil:
		for _, i := range x.List[:min(len(x.List), maxEntries)] {
			item(b, opt, i.String())
		}
		if more := len(x.List) - maxEntries; more > 0 {
			item(b, opt, fmt.Sprintf("and %d more; --json has all", more))
		}
	case x.Table != nil && x.Table.Wide == "":
		writeTable(b, x.Table, opt)
	}
}

// item writes one entry of a list.
func item(b *strings.Builder, opt Options, s string) {
	b.WriteString("  " + opt.cut(wrap(s, opt.width()-2, "    ")) + "\n")
}

// writeTable prints a table, without the columns that only the page has room for, and
// without the rows that are too many. Below a table of modelled figures stands that they
// are.
func writeTable(b *strings.Builder, t *section.Table, opt Options) {
	g := grid{keys: t.Keys, left: t.Words, grouped: t.Grouped, sparing: t.Sparing}
	for _, c := range t.Columns {
		if !c.Wide {
			g.header = append(g.header, shorten(c.Head, maxCell))
		}
	}
	more := 0
	if t.All != "" {
		more = len(t.Rows) - cmp.Or(opt.rows, maxRows)
	}
	for _, row := range t.Rows[:len(t.Rows)-max(0, more)] {
		if row[0].Wide {
			continue
		}
		cells := make([]section.Cell, 0, len(g.header))
		for i, c := range row {
			if !t.Columns[i].Wide {
				c.First, c.Second = shorten(c.First, maxCell), shorten(c.Second, maxCell)
				cells = append(cells, c)
			}
		}
		g.rows = append(g.rows, cells)
	}
	if len(g.rows) == 0 {
		return
	}
	b.WriteString(g.render(opt))
	if opt.modelled && opt.lines == 0 {
		b.WriteString(words.Modelled + "\n")
	}
	if more > 0 {
		item(b, opt, fmt.Sprintf("%d more: %s has all", more, t.All))
	}
}

// writeEntry prints the n-th setting: a line of one of which that is enough, else its
// facts and patches too. Patches stand as they are: they are to be copied.
func writeEntry(b *strings.Builder, n int, e *section.Entry, opt Options) {
	head := fmt.Sprintf("%d. %s", n, e.Head)
	tone := words.Equal // in bold
	if e.Brief {
		tone = e.Tone
		facts := make([]string, len(e.Facts))
		for i, f := range e.Facts {
			facts[i] = strings.ReplaceAll(f.String(), ": ", " ")
		}
		head += " (" + strings.Join(facts, "; ") + ")"
	}
	for line := range strings.SplitSeq(wrap(head, opt.width(), "   "), "\n") {
		b.WriteString(paint(opt, tone, line) + "\n")
	}
	if e.Brief {
		return
	}
	fact := func(s string) { b.WriteString("   " + wrap(s, opt.width()-3, "     ") + "\n") }
	for _, f := range e.Facts {
		fact(f.String())
	}
	for _, p := range e.Patches {
		fact("patch for " + p.For + ", " + p.File + ":")
		for line := range strings.Lines(p.Text) {
			b.WriteString("       " + terminal.Line(strings.TrimRight(line, "\n")) + "\n")
		}
	}
}

// colours go with a sign or a word, which are always there.
func colours(t words.Tone) text.Colors {
	switch t {
	case words.Better:
		return text.Colors{text.FgGreen}
	case words.Worse:
		return text.Colors{text.FgRed}
	case words.Differs:
		return text.Colors{text.FgCyan}
	case words.Bounded:
		return text.Colors{text.FgCyan}
	case words.Equal:
		return text.Colors{text.Bold}
	case words.Undecided:
		return text.Colors{text.FgYellow}
	case words.Note:
	}
	return nil
}
