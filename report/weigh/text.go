package weigh

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"tare/record"
	"tare/report/terminal"
	"tare/report/words"
)

// Width is how many columns the lines have at most.
const Width = 80

// mostLines is how many lines one command has at most: two more say how to go on.
const mostLines = 13

// Text lays the rows out for a person: a table of figures, then a sentence for each sandbox; where
// these are too many lines, the sentences stand in the table. Of several commands each has a line a
// sandbox; starts are said of one command where there is room; beside says how they compare natively, and what else there is to know.
func Text(rows []Row, starts, beside []string, ink terminal.Ink) []string {
	var out []string
	commands := byCommand(rows)
	for _, of := range commands {
		if len(commands) > 1 {
			out = append(out, briefly(of, ink)...)
			continue
		}
		lines := append(table(of), sentences(of, ink)...)
		if len(lines)+len(beside) > mostLines {
			lines = together(of, ink)
		}
		if len(lines)+len(starts)+len(beside) <= mostLines {
			lines = append(lines, starts...)
		}
		out = append(out, lines...)
	}
	return append(out, beside...)
}

// together is a table of the first figure, the start and the sentence of each sandbox.
func together(rows []Row, ink terminal.Ink) []string {
	show := columns(rows)[:1]
	out := []string{cells("", nameWidth(rows), append(mapped(show, head), "start-up")...)}
	for i := range rows {
		w := &rows[i]
		s := cells(w.Sandbox, nameWidth(rows), w.cells(show)...)
		if !w.Baseline || w.Failure != "" {
			s += "  " + terminal.Line(w.Cost())
		}
		if w.Cause != "" {
			s = fitting(s, ": "+w.Cause)
		}
		out = append(out, ink.Paint(cut(s), w.colour()...))
	}
	return out
}

// cells is a line of a table: the name, padded to n columns, and the cells.
func cells(name string, n int, values ...string) string {
	s := fmt.Sprintf("%-*s", n, terminal.Line(name))
	for _, c := range values {
		r := []rune(c)
		s += "  " + fmt.Sprintf("%*s", columnWidth, string(r[:min(len(r), columnWidth)]))
	}
	return s
}

// byCommand cuts rows where the command changes.
func byCommand(rows []Row) [][]Row {
	var out [][]Row
	for i := range rows {
		if i == 0 || rows[i].Command != rows[i-1].Command {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], rows[i])
	}
	return out
}

// columns are the figures that a table shows, by name: those that the user asked for, then those of
// every command, as many as there is room for.
func columns(rows []Row) []string {
	const most = 4
	var own, rest []string
	for _, f := range rows[0].Figures {
		switch name := f.Response.Name; name {
		case Wall, "user", "system", "peak_memory":
			rest = append(rest, name)
		default:
			own = append(own, name)
		}
	}
	own = own[:min(len(own), most-1)]
	if len(own) > 0 { // the time of a run stands beside them
		rest = slices.DeleteFunc(rest, func(name string) bool { return name == "user" || name == "system" })
	}
	return append(own, rest[:min(len(rest), most-len(own))]...)
}

// head names a column as a person does.
func head(name string) string {
	if name == "peak_memory" {
		return "memory"
	}
	return strings.TrimPrefix(name, "latency_") // p99
}

const columnWidth = 9

func table(rows []Row) []string {
	n, show := nameWidth(rows), columns(rows)
	out := []string{cells("", n, append(mapped(show, head), "start-up")...)}
	for i := range rows {
		if w := &rows[i]; w.first().Value > 0 {
			out = append(out, cells(w.Sandbox, n, w.cells(show)...))
		}
	}
	return out
}

func mapped(in []string, f func(string) string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = f(s)
	}
	return out
}

// cells are the values of columns, and how long the sandbox takes to start.
func (w *Row) cells(show []string) []string {
	var out []string
	for _, name := range show {
		s := "-"
		switch f := w.figure(name); {
		case f == nil:
		case f.Value > 0:
			s = words.Value(f.Value, f.Response.Unit)
		case f.BelowTicks && w.first().Value < 0.02: // there were ten runs or more
			s = "<10 ms"
		case f.BelowTicks:
			s = "<100 ms"
		}
		out = append(out, s)
	}
	if w.Start > 0 {
		return append(out, words.Value(w.Start, record.Second))
	}
	return append(out, "-")
}

func nameWidth(rows []Row) int {
	n := 0
	for i := range rows {
		n = max(n, len(rows[i].Sandbox))
	}
	return n
}

// sentences say what each sandbox costs: the first figure, then as many others as there is room
// for, and the cause.
func sentences(rows []Row, ink terminal.Ink) []string {
	var out []string
	n := nameWidth(rows)
	for i := range rows {
		w := &rows[i]
		if w.Baseline && w.Failure == "" {
			continue
		}
		s := fmt.Sprintf("%-*s  %s", n, terminal.Line(w.Sandbox), terminal.Line(w.Cost()))
		if w.Cause != "" {
			s = fitting(s, ": "+w.Cause)
		}
		if w.Said != "" && utf8.RuneCountInString(s) > Width { // the last words matter most
			s = fmt.Sprintf("%-*s  %s:", n, terminal.Line(w.Sandbox), terminal.Line(w.broken()))
			out = append(out, ink.Paint(cut(s), w.colour()...))
			s = "  " + terminal.Line(w.Said)
		}
		out = append(out, ink.Paint(cut(s), w.colour()...))
	}
	return out
}

// fitting adds more to a line if there is room.
func fitting(line, more string) string {
	if utf8.RuneCountInString(line+more) > Width {
		return line
	}
	return line + more
}

// colour is red for a cost or a failure, green for the opposite, and none for the rest.
func (w *Row) colour() []int {
	const red, green = 31, 32
	f := w.first()
	switch cost, _, _ := f.Estimate.Cost(f.Response.Better); {
	case w.Failure != "", f.Called && cost > 1:
		return []int{red}
	case f.Called:
		return []int{green}
	}
	return nil
}

// Live is one line a row, for as long as the weighing goes on.
func Live(rows []Row) []string {
	var out []string
	for _, of := range byCommand(rows) {
		out = append(out, briefly(of, terminal.Ink{})...)
	}
	return out
}

// briefly is one line for each sandbox of a command.
func briefly(rows []Row, ink terminal.Ink) []string {
	n := nameWidth(rows)
	var out []string
	if c := rows[0].Command; c != "" {
		out = append(out, cut(terminal.Line(c)))
	}
	for i := range rows {
		w := &rows[i]
		s := w.Cost()
		switch {
		case w.Baseline && w.Failure == "":
			s = "natively"
		case w.first().Estimate.N == 0 && w.Failure == "":
			s = "..." // the baseline of its block, or it itself, is still to come
		}
		f := w.first()
		value := "-"
		if f.Value > 0 {
			value = words.Value(f.Value, f.Response.Unit)
		}
		out = append(out, ink.Paint(cut(cells(w.Sandbox, n, value)+"  "+terminal.Line(s)), w.colour()...))
	}
	return out
}

// cut shortens a line to the width.
func cut(s string) string {
	r := []rune(s)
	if len(r) <= Width {
		return s
	}
	return string(r[:Width-3]) + "..."
}

// Markdown is a table for an issue or a chat.
func Markdown(rows []Row) []string {
	if len(rows) == 0 {
		return nil
	}
	show := columns(rows)
	heads := append(append([]string{"command", "sandbox"}, mapped(show, head)...), "start-up", "cost")
	rules := []string{"---", "---"}
	for range len(show) + 1 {
		rules = append(rules, "--:")
	}
	out := []string{bar(heads), bar(append(rules, "---"))}
	if rows[0].Command == "" {
		out = []string{bar(heads[1:]), bar(append(rules[1:], "---"))}
	}
	for i := range rows {
		w := &rows[i]
		cost := w.Cost()
		if w.Baseline && w.Failure == "" {
			cost = ""
		}
		if w.Cause != "" {
			cost += ": " + w.Cause
		}
		cells := append([]string{w.Sandbox}, append(w.cells(show), escape(cost))...)
		if w.Command != "" {
			cells = append([]string{code(w.Command)}, cells...)
		}
		out = append(out, bar(cells))
	}
	return out
}

// MarkdownNotes is a list of what else there is to know, to follow the table.
func MarkdownNotes(beside []string) []string {
	if len(beside) == 0 {
		return nil
	}
	out := []string{""}
	for _, s := range beside {
		out = append(out, "- "+code(strings.TrimSpace(s)))
	}
	return out
}

func bar(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

// code is a command as Markdown shows it, word for word.
func code(s string) string {
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		s = " " + s + " "
	}
	return fence + escape(s) + fence
}

func escape(s string) string { return strings.ReplaceAll(terminal.Line(s), "|", `\|`) }
