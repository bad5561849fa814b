// Package text prints results and plans for people at a terminal.
//
// The data path: 1. package section builds the report's sections of a few types of
// blocks; 2. each type is laid out to fit the terminal (render.go), a table in the layout
// that fits (table.go). A verdict is a sign and, where the terminal has it, a colour,
// never a colour alone.
package text

import (
	"io"
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
	_, err := io.WriteString(w, b.String())
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
