package text

import (
	"io"
	"strings"

	"tare/analyse"
	"tare/record"
	"tare/report/section"
	"tare/report/terminal"
)

// WriteMarkdown prints the answer that fits a screen, and the tables of figures of merit, as
// Markdown of GitHub's flavour.
func WriteMarkdown(w io.Writer, res *analyse.Result, hosts []record.Host, opt Options) error {
	return writeMarkdown(w, append(section.Short(res, hosts, opt.Dir), section.Figures(res)...))
}

// WriteTablesMarkdown prints the study's own tables alone as Markdown.
func WriteTablesMarkdown(w io.Writer, res *analyse.Result) error {
	return writeMarkdown(w, tables(res))
}

func writeMarkdown(w io.Writer, sections []*section.Section) error {
	var b strings.Builder
	for _, s := range sections {
		if len(s.Blocks) == 0 {
			continue
		}
		if s.Title != "" {
			b.WriteString("### " + markdown(s.Title) + "\n\n")
		}
		for k := range s.Blocks {
			x := &s.Blocks[k]
			if k == 0 && s.ID == "head" {
				b.WriteString("## ")
			}
			mark(&b, x)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mark writes one block; the short answer has no others.
func mark(b *strings.Builder, x *section.Block) {
	switch {
	case x.Text != "" || x.Note != "":
		b.WriteString(markdown(x.Text+x.Note) + "\n")
	case x.Signs != nil:
		signs := make([]string, len(x.Signs))
		for i, s := range x.Signs {
			signs[i] = markdown(s.Mark + " " + s.Text)
		}
		b.WriteString(strings.Join(signs, ", ") + "\n")
	case x.List != nil:
		for _, i := range x.List {
			lead := ""
			if i.Lead != "" {
				lead = "**" + markdown(i.Lead) + "**: "
			}
			b.WriteString("- " + lead + markdown(i.Text) + "\n")
		}
	case x.Table != nil:
		var head, line []string
		for i, c := range x.Table.Columns {
			head = append(head, markdown(c.Head))
			if i < x.Table.Keys {
				line = append(line, "---")
			} else {
				line = append(line, "---:")
			}
		}
		rows := [][]string{head, line}
		for _, r := range x.Table.Rows {
			cells := make([]string, len(r))
			for i, c := range r {
				cells[i] = markdown(strings.TrimSpace(c.First + " " + c.Second))
			}
			rows = append(rows, cells)
		}
		for _, r := range rows {
			b.WriteString("| " + strings.Join(r, " | ") + " |\n")
		}
	}
	b.WriteString("\n")
}

// markdown writes data so that nothing in it is markup: it comes from others.
func markdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "~", `\~`, "#", `\#`, "@", "@\u200b").Replace(terminal.Line(shorten(s, maxCell)))
}
