package csv

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"tare/imports"
	"tare/record"
)

// notNegative refuses a negative value if the unit cannot be negative. A difference may be
// negative; its direction is neither.
func (r *reader) notNegative(name, text string, v float64, unit record.Unit) error {
	if v >= 0 || r.m.Better[name] == record.Neither {
		return nil
	}
	var what string
	switch unit {
	case record.Second:
		what = "a time"
	case record.PerSecond, record.BytesPerSecond:
		what = "a rate"
	case record.Byte:
		what = "a size"
	case record.Cores:
		what = "a use of processors"
	default:
		return nil
	}
	return r.bad(roleValue, "%s is %s below 0; correct it, or leave the row out (for a difference, which may be negative, give --better %s=neither)", text, what, name)
}

// repeat records a row that equals an earlier one in every column. Without a column of the
// trial it may be another execution, or the same one twice: only the user knows.
func (r *reader) repeat() {
	line, _ := r.line(0)
	sum := sha256.Sum256([]byte(strings.Join(r.rec, "\x00")))
	switch first, ok := r.rows[sum]; {
	case !ok:
		r.rows[sum] = line
	case r.repeats == 0:
		r.repeated = [2]int{line, first}
		fallthrough
	default:
		r.repeats++
	}
}

// warnings returns doubts about the whole file.
func (r *reader) warnings() []record.Warning {
	if r.repeats == 0 {
		return nil
	}
	what := "1 row is"
	if r.repeats > 1 {
		what = fmt.Sprintf("%d rows are", r.repeats)
	}
	return []record.Warning{{Code: imports.CodeRepeated, Text: fmt.Sprintf("%s the same in every column as an earlier row (line %d as line %d) and count as separate trials: "+
		"an execution that is written twice makes intervals too narrow; name the column of the trial with trial=COLUMN, or leave such rows out", what, r.repeated[0], r.repeated[1])}}
}
