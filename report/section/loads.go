package section

import (
	"fmt"

	"tare/analyse"
	"tare/analyse/tune"
	"tare/record"
	"tare/report/words"
)

// loadTable has what is known about the loads that were measured.
func loadTable(s *Section, t *analyse.Tuned) {
	table := NewTable(1, t.Factor, "met", "missed", "blocks", "bound")
	for _, l := range t.Levels {
		if l.Blocks > 0 {
			table.Row(l.Level, fmt.Sprint(l.Met), fmt.Sprint(l.Missed), fmt.Sprint(l.Blocks), string(l.Bound))
		}
	}
	s.Table(table)
}

// loadAnswer is the highest load that meets an objective in words, or how far the search is.
func loadAnswer(t *analyse.Tuned) string {
	var out string
	switch {
	case t.Answer == "" && t.Upper == "":
		return "Not known yet: no trial was made."
	case t.Answer == "":
		out = fmt.Sprintf("No %s meets %s: the lowest, %s, is an upper bound.", t.Factor, t.Objective, t.Upper)
	case t.Upper == "":
		out = fmt.Sprintf("Every %s up to the highest, %s, meets %s. There is no upper bound.", t.Factor, t.Answer, t.Objective)
	default:
		out = fmt.Sprintf("The highest %s that meets %s is %s (Relevant Lower Bound); %s does not meet it (Relevant Upper Bound).", t.Factor, t.Objective, t.Answer, t.Upper)
	}
	sure := percentOf(min(t.Sure, 0.99))
	if t.Stage != tune.Found {
		return "Not clear yet. With a confidence of " + sure + " so far: " + out + " Run more blocks."
	}
	out += " Confidence: " + sure + "."
	if t.Throughput > 0 {
		out += " Conditional Throughput: " + words.Value(t.Throughput, record.PerSecond) + "."
	}
	if saved := t.Whole - t.Trials; saved > 0 {
		out += fmt.Sprintf(" That took %s; as many blocks with every load take %d.", words.Count(t.Trials, "trial"), t.Whole)
	}
	return out
}

// loadNotes explain the table.
func loadNotes(s *Section) {
	s.Note("met, missed: trials that met the objective and that did not; a trial that failed did not. The first trial at each load only guided the search, and is in neither.")
	s.Note("bound: a load is a lower bound if at most half of its trials miss the objective, whatever the rest of 9 trials shows, and an upper bound if more do (RFC 9971).")
}
