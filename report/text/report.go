// Package text prints results and plans for people at a terminal.
//
// The data path: 1. package section builds the report's sections of a few types of
// blocks; 2. each type is laid out to fit the terminal (render.go), a table in the layout
// that fits (table.go). A verdict is a sign and, where the terminal has it, a colour,
// never a colour alone.
package text

import (
	"io"
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/record"
	"tare/report/section"
	"tare/report/terminal"
	"tare/report/words"
)

// Options of the output.
type Options struct {
	Width int          // columns of the terminal; 0: 80; at least 40 are used
	Ink   terminal.Ink // of the Writer that receives the text; zero for no colours
	Dir   string       // the results folder, named in the next steps; "" for none

	modelled bool // tables say so below
	lines    int  // that a paragraph or an entry of a list may take; 0: all
	rows     int  // that a table may take; 0: those of it that a terminal shows
}

func (o Options) width() int {
	if o.Width <= 0 {
		return 80
	}
	return max(o.Width, 40) // narrower than that no table can be read
}

// Write prints a result. The hosts are those of the sessions that measured;
// one that comes again is printed once.
func Write(w io.Writer, res *analyse.Result, hosts []record.Host, opt Options) error {
	var b strings.Builder
	opt.modelled = res.Modelled
	for _, s := range section.Report(res, hosts, opt.Dir) {
		write(&b, s, opt)
	}
	_, err := io.WriteString(w, strings.TrimPrefix(b.String(), "\n"))
	return err
}

// screen is how many lines the short answer has at most, at 80 columns or more. It leaves
// room for the line of `tare run` that names the page.
const screen = 39

// WriteShort prints the answer that fits a screen of 40 lines of 80 columns, and the steps of a load besides. The study's own
// tables are in it if they fit, and named otherwise.
func WriteShort(w io.Writer, res *analyse.Result, hosts []record.Host, opt Options) error {
	opt.Width = min(opt.width(), 80)
	sections := section.Short(res, hosts, opt.Dir)
	if tables := section.OwnTables(res); len(tables) > 0 { // what the study asks for comes first
		if text, fits := short(slices.Insert(slices.Clone(sections), 1, tables...), opt); fits {
			_, err := io.WriteString(w, text)
			return err
		}
		sections = slices.Insert(sections, 1, section.OwnTablesNamed(res, opt.Dir))
	}
	text, _ := short(sections, opt)
	_, err := io.WriteString(w, text)
	return err
}

// short lays sections out with ever less of each until they fit a screen. It reports whether they do.
func short(sections []*section.Section, opt Options) (text string, fits bool) {
	for _, tight := range []struct{ answer, head, advice, rows int }{{4, 3, 3, 12}, {3, 3, 3, 12}, {2, 2, 2, 12}, {2, 1, 2, 12}, {2, 1, 2, 8}, {2, 1, 1, 8}, {1, 1, 2, 8}, {1, 1, 2, 4}} {
		var b strings.Builder
		opt.rows = tight.rows
		steps := 0 // lines of a load's steps, which are the answer of a study that has them, however many there are
		for _, s := range sections {
			lines := max(tight.advice, 2)
			switch s.ID {
			case "advice":
				lines = tight.advice
			case "answer":
				lines = tight.answer
			case "head":
				lines = tight.head
			}
			opt.lines = (80*lines + opt.Width - 1) / opt.Width
			at := b.Len()
			if write(&b, s, opt); s.ID == "steps" {
				steps = strings.Count(b.String()[at:], "\n")
			}
		}
		if text = strings.TrimPrefix(b.String(), "\n"); strings.Count(text, "\n")-steps <= screen {
			return text, true
		}
	}
	return text, false
}

// WriteAdvice prints items of a result's advice at length, with their patches.
func WriteAdvice(w io.Writer, res *analyse.Result, items []advice.Item, opt Options) error {
	var b strings.Builder
	if res.Modelled {
		b.WriteString(wrap(words.ModelledAbout, opt.width(), "") + "\n\n")
	}
	s := section.Entries(res, items)
	for i := range s.Blocks {
		x := s.Blocks[i].Entry
		if x == nil {
			block(&b, &s.Blocks[i], opt)
			continue
		}
		if i > 0 && (!x.Brief || !s.Blocks[i-1].Entry.Brief) {
			b.WriteString("\n")
		}
		writeEntry(&b, i+1, x, opt)
	}
	for i, x := range section.TunedEntries(res) {
		b.WriteString("\n")
		writeEntry(&b, len(items)+i+1, x, opt)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteSection prints one section of a result at length, settings with their patches.
func WriteSection(w io.Writer, s *section.Section, res *analyse.Result, opt Options) error {
	var b strings.Builder
	if res.Modelled {
		b.WriteString(wrap(words.ModelledAbout, opt.width(), "") + "\n\n")
	}
	blocks(&b, s, opt)
	_, err := io.WriteString(w, strings.TrimPrefix(b.String(), "\n"))
	return err
}

// tables are the study's own, after a line that says so if a model has made them.
func tables(res *analyse.Result) []*section.Section {
	about := &section.Section{ID: "about"}
	if res.Modelled {
		about.Text(words.ModelledAbout)
	}
	return append([]*section.Section{about}, section.OwnTables(res)...)
}

// WriteTables prints the study's own tables alone.
func WriteTables(w io.Writer, res *analyse.Result, opt Options) error {
	var b strings.Builder
	for _, s := range tables(res) {
		write(&b, s, opt)
	}
	_, err := io.WriteString(w, strings.TrimPrefix(b.String(), "\n"))
	return err
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
