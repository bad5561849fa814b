package words

import (
	"fmt"
	"math"
	"strings"

	"tare/analyse"
	"tare/analyse/summary"
	"tare/record"
)

// TableTitle says what a summary table shows.
func TableTitle(r *analyse.Result, t *summary.Table) string {
	s := t.Name + ": " + t.Response.Name
	if fixed := t.Fixed.Without("workload"); len(t.Fixed) > 0 {
		w, _ := t.Fixed.Get("workload")
		s = t.Name + ": " + strings.TrimSpace(w+" "+t.Response.Name)
		if len(fixed) > 0 {
			s += " with " + Levels(r, fixed, " ")
		}
	}
	if len(t.Over) == 0 {
		return s
	}
	over := make([]string, len(t.Over))
	for i, l := range t.Over {
		levels := make([]string, len(l.Levels))
		for j, v := range l.Levels {
			levels[j] = r.LevelName(record.Level{Factor: l.Factor, Value: v})
		}
		over[i] = l.Factor + " (" + strings.Join(levels, ", ") + ")"
	}
	return s + ", geometric mean over " + List(over)
}

// Column names a column of a summary table; with how many combinations it is over
// where the columns differ in that.
func Column(t *summary.Table, i int, count bool) string {
	c := t.Columns[i]
	s := t.Column + " " + c.Level
	switch {
	case t.Column == "":
		s = t.Response.Name
	case c.Level == "":
		s = "no " + t.Column
	}
	if count {
		s += fmt.Sprintf(" (%d variants)", c.Combinations)
	}
	return s
}

// Row names a row of a summary table: the level of the compared factor and the
// others with their names.
func Row(r *analyse.Result, t *summary.Table, row *summary.Row) string {
	if row.Mean {
		return Treatment(r, row.Cell) + " geometric mean"
	}
	if len(t.Factors) == 2 && len(row.Cell) == 2 { // E1's: the header names both factors
		return r.LevelName(row.Cell[0]) + ", " + r.LevelName(row.Cell[1])
	}
	return Treatment(r, row.Cell)
}

// TableSentence says the geometric means of a table: of each sandbox the mean row,
// or its only one, from the least to the most over the columns.
func TableSentence(r *analyse.Result, t *summary.Table) string {
	many := make(map[string]bool)
	for i := range t.Rows {
		if t.Rows[i].Mean {
			many[t.Rows[i].Cell[0].Value] = true
		}
	}
	var parts []string
	for i := range t.Rows {
		row := &t.Rows[i]
		if row.Baseline || !row.Mean && many[row.Cell[0].Value] {
			continue
		}
		lo, hi := math.Inf(1), 0.0
		var from, to string
		for j := range row.Cells {
			x, _, _ := row.Cells[j].Estimate.Cost(t.Response.Better)
			if !(x > 0) {
				continue
			}
			if x < lo {
				lo, from = x, t.Columns[j].Level
			}
			if x > hi {
				hi, to = x, t.Columns[j].Level
			}
		}
		if hi == 0 {
			continue
		}
		s := fmt.Sprintf("%s %s", r.LevelName(row.Cell[0]), Times(lo))
		if Ratio(lo) != Ratio(hi) {
			s = fmt.Sprintf("%s %s (%s %s) to %s (%s %s)", r.LevelName(row.Cell[0]), Times(lo), t.Column, from, Times(hi), t.Column, to)
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("Cost in %s, in the geometric mean, as a multiple of %s: %s.", t.Response.Name, Base(r), strings.Join(parts, "; "))
}

// Accelerators says what the names of virtual machines' levels mean; "" without any.
func Accelerators(r *analyse.Result) string {
	var emulated, hardware []string
	for i := range r.Accelerators {
		a := &r.Accelerators[i]
		switch {
		case a.Emulated():
			emulated = append(emulated, a.Name)
		case a.Trials[record.AcceleratorKVM] > 0:
			hardware = append(hardware, a.Name)
		}
	}
	switch {
	case len(emulated) > 0:
		return "TCG: the processor is emulated in software. The figures of " + List(emulated) + " are not those of virtual machines with hardware virtualization."
	case len(hardware) > 0:
		return "KVM: hardware virtualization."
	}
	return ""
}
