package section

import (
	"fmt"
	"slices"

	"tare/analyse"
	"tare/analyse/tune"
	"tare/record"
	"tare/report/words"
)

// loadTable has what is known about the loads that were measured.
func loadTable(s *Section, t *analyse.Tuned) {
	columns := []string{t.Factor, "met", "missed", "blocks", "bound"}
	late := anyLate(t)
	if late {
		columns = slices.Insert(columns, 3, "generator late")
	}
	table := NewTable(1, columns...)
	for _, l := range t.Levels {
		if l.Blocks == 0 {
			continue
		}
		row := []string{l.Level, fmt.Sprint(l.Met), fmt.Sprint(l.Missed), fmt.Sprint(l.Blocks), string(l.Bound)}
		if late {
			row = slices.Insert(row, 3, fmt.Sprint(l.Late))
		}
		table.Row(row...)
	}
	s.Table(table)
}

// anyLate reports whether the load generator fell behind by itself in a trial at any load.
func anyLate(t *analyse.Tuned) bool {
	return slices.ContainsFunc(t.Levels, func(l analyse.TunedLevel) bool { return l.Late > 0 })
}

// ofGenerator says that the upper bound is the limit of the load generator, where at least half of the trials that missed the objective
// there are its own fault; "" otherwise.
func ofGenerator(t *analyse.Tuned) string {
	for _, l := range t.Levels {
		if l.Level == t.Upper && l.Late > 0 && 2*l.Late >= l.Missed {
			return fmt.Sprintf(" At %s the load generator itself fell behind its schedule in %d of %s that missed the objective: that is the generator's limit, and the sandbox may do more. Give the client processors of its own (cpus: apart).",
				l.Level, l.Late, words.Count(l.Missed, "trial"))
		}
	}
	return ""
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
	out += ofGenerator(t)
	sure := percentOf(min(t.Sure, 0.99))
	if t.Stage != tune.Found {
		return "Not clear yet. With a confidence of " + sure + " so far: " + out + onward(t)
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
func loadNotes(s *Section, late bool) {
	s.Note("met, missed: trials that met the objective and that did not; a trial that failed did not. The first trial at each load only guided the search, and is in neither.")
	if late {
		s.Note("generator late: of the missed ones, those in which the load generator fell behind its schedule because it lacked processor time.")
	}
	s.Note("bound: a load is a lower bound if at most half of its trials miss the objective, whatever the rest of 9 trials shows, and an upper bound if more do (RFC 9971).")
}
