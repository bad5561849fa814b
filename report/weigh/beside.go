package weigh

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"tare/analyse/stat"
	"tare/record"
	"tare/report/terminal"
	"tare/study"
)

// Beside says how several commands compare natively, each with the first, block by block. There is
// nothing to say of one command.
func Beside(rule stat.Rule, rows []Row, trials []record.Trial) []string {
	var out []string
	var base *Row
	for i := range rows {
		w := &rows[i]
		switch {
		case !w.Baseline || w.Failure != "":
		case base == nil:
			base = w
		default:
			f := Figure{Response: w.first().Response}
			f.Estimate = rule.Estimate(stat.Summarise(stat.Pairs(base.values(trials), w.values(trials))), stat.Prior{})
			f.Verdict, _ = rule.Judge(f.Estimate, f.Response.Better)
			f.Estimate.Bound = rule.Bound(f.Estimate, f.Response.Better, f.Verdict)
			f.Called = f.Verdict.Decided() && f.Verdict != stat.Equivalent
			name := []rune(terminal.Line(w.Command))
			if len(name) > 24 {
				name = append(name[:21], '.', '.', '.')
			}
			line := fmt.Sprintf("%s natively, beside the first: %s", string(name), f.Cost())
			if utf8.RuneCountInString(line) > Width { // a closing line says what to do for an interval
				line = strings.TrimSuffix(line, "; "+tooShort)
			}
			out = append(out, cut(line))
		}
	}
	return out
}

// values are those of a row's first figure, by block.
func (w *Row) values(trials []record.Trial) map[int]float64 {
	out := map[int]float64{}
	for i := range trials {
		t := &trials[i]
		sandbox, _ := t.Cell.Get(study.FactorSandbox)
		command, _ := t.Cell.Get("command")
		if v, ok := t.Sample(w.first().Response.Name); ok && t.Status == record.OK && sandbox == w.Sandbox && command == w.Command {
			out[t.Block] = v
		}
	}
	return out
}
