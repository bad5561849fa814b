package weigh

import (
	"fmt"
	"strings"

	"tare/record"
	"tare/report/terminal"
	"tare/report/words"
)

// Width is how many columns the lines have at most.
const Width = 80

// Text lays the rows out for a person: a table of figures, then a sentence for each sandbox. With
// more than one command there is such a part for each.
func Text(rows []Row, ink terminal.Ink) []string {
	var out []string
	for _, of := range byCommand(rows) {
		if of[0].Command != "" {
			out = append(out, cut(terminal.Line(of[0].Command)))
		}
		out = append(out, table(of)...)
		out = append(out, sentences(of, ink)...)
	}
	return out
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

const figure = "%-*s  %9s  %9s  %9s  %9s  %9s"

func table(rows []Row) []string {
	n := nameWidth(rows)
	out := []string{strings.TrimRight(fmt.Sprintf(figure, n, "", "wall", "user", "system", "memory", "start-up"), " ")}
	for i := range rows {
		if w := &rows[i]; w.Wall > 0 {
			out = append(out, fmt.Sprintf(figure, n, terminal.Line(w.Sandbox), value(w.Wall, record.Second), value(w.User, record.Second),
				value(w.System, record.Second), value(w.Memory, record.Byte), value(w.Start, record.Second)))
		}
	}
	return out
}

func value(v float64, u record.Unit) string {
	if !(v > 0) {
		return "-"
	}
	return words.Value(v, u)
}

func nameWidth(rows []Row) int {
	n := 0
	for i := range rows {
		n = max(n, len(rows[i].Sandbox))
	}
	return n
}

// sentences say what each sandbox costs. Those that come to the same are said together.
func sentences(rows []Row, ink terminal.Ink) []string {
	var out []string
	n := nameWidth(rows)
	for i := range rows {
		w := &rows[i]
		if w.Baseline && w.Failure == "" {
			continue
		}
		s := w.Cost()
		if w.Cause != "" && n+4+len(s)+len(w.Cause) <= Width {
			s += ": " + w.Cause
		}
		line := cut(fmt.Sprintf("%-*s  %s", n, terminal.Line(w.Sandbox), terminal.Line(s)))
		out = append(out, ink.Paint(line, w.colour()...))
	}
	return out
}

// colour is red for a cost or a failure, green for the opposite, and none for the rest.
func (w *Row) colour() []int {
	const red, green = 31, 32
	switch cost, _, _ := w.worse(); {
	case w.Failure != "", w.Called && cost > 1:
		return []int{red}
	case w.Called:
		return []int{green}
	}
	return nil
}

// Live is one line a row, for as long as the weighing goes on.
func Live(rows []Row) []string {
	n := nameWidth(rows)
	var out []string
	for i := range rows {
		w := &rows[i]
		if i == 0 || w.Command != rows[i-1].Command {
			if w.Command != "" {
				out = append(out, cut(terminal.Line(w.Command)))
			}
		}
		s := w.Cost()
		switch {
		case w.Baseline && w.Failure == "":
			s = "the baseline"
		case w.N == 0 && w.Failure == "":
			s = "..."
		}
		out = append(out, cut(fmt.Sprintf("%-*s  %9s  %s", n, terminal.Line(w.Sandbox), value(w.Wall, record.Second), terminal.Line(s))))
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
	out := []string{"| command | sandbox | wall | user | system | memory | start-up | cost |", "|---|---|--:|--:|--:|--:|--:|---|"}
	for i := range rows {
		w := &rows[i]
		cost := w.Cost()
		if w.Baseline && w.Failure == "" {
			cost = ""
		}
		if w.Cause != "" {
			cost += ": " + w.Cause
		}
		cells := []string{code(w.Command), w.Sandbox, value(w.Wall, record.Second), value(w.User, record.Second), value(w.System, record.Second),
			value(w.Memory, record.Byte), value(w.Start, record.Second), escape(cost)}
		out = append(out, "| "+strings.Join(cells, " | ")+" |")
	}
	return out
}

// code is a command as Markdown shows it, word for word.
func code(s string) string {
	if s == "" {
		return ""
	}
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
