package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

func ownRule() rule { return rule{"default", ""} }
func fixed(n string) rule {
	return rule{"fixed " + n, "{fixed: " + n + "}"}
}

// designs are those that rows and tables are promised for, from one comparison to 300 strata.
func designs() []shape {
	return []shape{
		{workloads: 1, points: 1, treats: 1},
		{workloads: 4, points: 1, treats: 1},
		{workloads: 9, points: 1, treats: 1},
		{workloads: 16, points: 1, treats: 1},
		{workloads: 8, points: 5, treats: 1},
		{workloads: 10, points: 10, treats: 1},
		{workloads: 10, points: 30, treats: 1},
		{workloads: 6, points: 1, treats: 4},
		{workloads: 9, points: 1, treats: 4},
		{workloads: 16, points: 1, treats: 4},
		{workloads: 9, points: 1, treats: 4, second: true},
		{workloads: 3, points: 4, treats: 2, nested: 3},
		{workloads: 2, points: 60, treats: 3, nested: 9}, // of studies/kata-network.yaml
	}
}

// enough is how many studies of a shape tell 95 % from 93.
func (l *lab) enough(s shape) int {
	cells := s.strata() * (s.treatments() + 1)
	if l.long {
		return min(max(150_000/cells, 1000), 6000)
	}
	return min(max(10_000/cells, 120), 600)
}

// cases are all designs under all rules on all machines in the long form; in the short form,
// those on which rules are known to differ.
func (l *lab) cases() []unit {
	var out []unit
	rules := append(usualRules(), l.shipped...)
	for _, s := range designs() {
		for _, r := range rules {
			for _, m := range machines() {
				if m.loud > 0 && s.workloads < 2 {
					continue
				}
				u := unit{section: "rows", shape: s, rule: r, machine: m, studies: l.enough(s), promised: true}
				if l.long || l.brief(&u) {
					out = append(out, u)
				}
			}
		}
	}
	return out
}

// brief reports whether a case is in the short form.
func (l *lab) brief(u *unit) bool {
	large := u.shape.strata() > 16
	switch {
	case u.rule.name == adaptive().name:
		// All machines, in one design; and the designs that have means of most rows.
		return u.shape.strata() == 16 && u.shape.treatments() == 1 || u.machine.name == "even 2 %" && u.shape.strata() >= 9 && u.shape.points < 30 && u.shape.nested == 0
	case u.shape.second:
		return u.rule.name == "default" && (u.machine.name == "iid" || u.machine.loud > 0)
	case u.shape.nested > 3:
		return u.machine.name == "iid" && (strings.Contains(u.rule.name, "kata-network") || u.rule.name == "fixed 5")
	case u.machine.name == "iid":
		return u.rule.name == "default" || u.rule.name == "fixed 5" || !large && u.shape.strata() >= 9
	case u.machine.even > 0:
		return u.rule.name == "default" || u.rule.name == "fixed 5" && large
	case u.rule.name != "default":
		return u.machine.name == "loud" && u.rule.name == "fixed 3" && !large
	}
	return !large && (u.shape.treatments() != 4 || u.shape.strata() == 9) && u.shape.strata() != 4
}

// rowsSection is about rows and tables of the same studies.
func rowsSection(ctx context.Context, l *lab, w io.Writer) ([]figure, error) {
	units, totals, err := l.all(ctx, l.cases())
	if err != nil || len(units) == 0 {
		return nil, err
	}
	return l.printAll(w, units, totals)
}

// printAll prints what is said of the cases in four tables.
func (l *lab) printAll(w io.Writer, units []unit, totals []*total) ([]figure, error) {
	var all []figure
	for _, t := range []struct {
		title   string
		columns []column
	}{
		{"Intervals that contain the truth, in per cent (the noisiest and the quietest quarter of a study's rows; cells of geometric means), and their half-width divided by that of an interval that knows the scatter", []column{
			{"rows", covered, coverage(), percent, false},
			{"that differ", coveredOther, coverage(), percent, false},
			{"noisiest", coveredNoisy, coverage(), percent, false},
			{"quietest", coveredQuiet, coverage(), percent, false},
			{"tables", coveredTable, coverage(), percent, false},
			{"with effects", coveredTableOther, coverage(), percent, false},
			{"tables by workload", coveredColumn, coverage(), percent, false},
			{"means of rows", coveredMean, coverage(), percent, false},
			{"width", width, none(), times, false},
			{"width, tables", widthTable, none(), times, false},
			{"no interval", noInterval, none(), percent, false},
			{"blocks", blocks, none(), plain, false},
		}},
		{"Equal things called different, and discoveries (q <= 5 %), in per cent", []column{
			{"A/A rows called", equalCalled, atMost(0.05), percent, false},
			{"A/A tables called", equalTable, atMost(0.05), percent, false},
			{"A/A studies with a discovery", studiesFound, atMost(0.05), percent, false},
			{"false discoveries", falseFound, atMost(0.05), percent, false},
			{"equal: equivalent", equivalentSaid, none(), percent, false},
			{"equal: undecided", undecidedSaid, none(), percent, false},
		}},
		{"Differences of 5 and 10 % found, in per cent (best: a test that knows the scatter, with as many blocks), and by how many hundredths of its logarithm called rows overstate a difference", []column{
			{"5 %", power5, none(), percent, false},
			{"best", power5Best, none(), percent, false},
			{"of best", power5Of, atLeast(0.90), percent, true},
			{"10 %", power10, none(), percent, false},
			{"best", power10Best, none(), percent, false},
			{"of best", power10Of, atLeast(0.90), percent, true},
			{"overstated", overstated, none(), plain, false},
			{"at 5 %", overstated5, none(), plain, false},
			{"corrected", corrected, none(), plain, false},
			{"at 5 %", corrected5, none(), plain, false},
		}},
	} {
		figures, err := l.print(w, t.title, units, totals, t.columns)
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	return all, nil
}

// looksSection has studies that are never precise enough. Where a rule ends at a clear result,
// the error rates of all looks add up.
func looksSection(ctx context.Context, l *lab, w io.Writer) ([]figure, error) {
	var units []unit
	for _, looks := range []string{"[3, 4, 6, 8, 12, 16]", "[3, 4, 6, 8]", "[3, 4, 6]"} {
		for _, n := range []int{1, 9, 16} {
			for _, m := range machines() {
				if m.name != "iid" && m.name != "even 8 %" && !l.long || m.loud > 0 {
					continue
				}
				s := shape{workloads: n, points: 1, treats: 1}
				units = append(units, unit{section: "looks", shape: s, machine: m, studies: 2 * l.enough(s), promised: true,
					rule: rule{looks, "{looks: " + looks + ", width: 0.01%, margin: 0.02%}"}})
			}
		}
	}
	return l.table(ctx, w, "Looks alone, in per cent: with a width and a margin close to zero, studies go on to the last look unless the rule ends them at a clear result", units, []column{
		{"A/A rows called", equalCalled, atMost(0.05), percent, false},
		{"A/A studies with a discovery", studiesFound, atMost(0.05), percent, false},
		{"rows hold the truth", covered, coverage(), percent, false},
		{"width", width, none(), times, false},
		{"blocks", blocks, none(), plain, false},
	})
}

// knownSection has studies whose scatter and effect are the same everywhere: what a user who
// knows both may expect.
func knownSection(ctx context.Context, l *lab, w io.Writer) ([]figure, error) {
	var units []unit
	for _, scatter := range []float64{0.02, 0.04, 0.08, 0.16} {
		for _, effect := range []float64{0.05, 0.10} {
			for _, r := range []rule{ownRule(), fixed("5"), fixed("16")} {
				if r.name == "fixed 16" && !l.long && effect > 0.05 {
					continue
				}
				s := shape{workloads: 9, points: 1, treats: 1}
				units = append(units, unit{section: "known", shape: s, rule: r, only: effect, studies: l.enough(s), promised: true,
					machine: machine{name: knownName(scatter, effect), even: scatter}})
			}
		}
	}
	return l.table(ctx, w, "The same scatter for all cells, and the same slowdown for all treatments (in every second study none), in per cent", units, []column{
		{"rows hold the truth", covered, coverage(), percent, false},
		{"5 % found", power5, none(), percent, false},
		{"of best", power5Of, atLeast(0.90), percent, true},
		{"10 % found", power10, none(), percent, false},
		{"of best", power10Of, atLeast(0.90), percent, true},
		{"A/A rows called", equalCalled, atMost(0.05), percent, false},
		{"equal: equivalent", equivalentSaid, none(), percent, false},
		{"equal: undecided", undecidedSaid, none(), percent, false},
		{"overstated", overstated, none(), plain, false},
		{"corrected", corrected, none(), plain, false},
		{"tables", coveredTable, coverage(), percent, false},
		{"with effects", coveredTableOther, coverage(), percent, false},
		{"blocks", blocks, none(), plain, false},
	})
}

// sparedSection is what a rule saves of the trials of 16 fixed blocks, and what it says less or wrongly for that.
func sparedSection(ctx context.Context, l *lab, w io.Writer) ([]figure, error) {
	rules := []rule{fixed("16"), ownRule()}
	for _, r := range l.shipped {
		if r.name == "first" {
			rules = append(rules, r, rule{"first, 4 min", r.stop + "\nbudget: {time: 4m}"})
		}
	}
	var units []unit
	for _, s := range []shape{{workloads: 1, points: 1, treats: 1}, {workloads: 11, points: 1, treats: 4}} {
		for _, r := range rules {
			for _, m := range machines() {
				if m.name == "busy" || m.name == "iid" || m.name == "even 2 %" {
					if r.name == "first, 4 min" && s.workloads == 1 {
						continue
					}
					units = append(units, unit{section: "spared", shape: s, rule: r, machine: m, studies: l.enough(s)})
				}
			}
		}
	}
	return l.table(ctx, w, "Trials made, in per cent of those of 16 fixed blocks, and rows whose verdict is true or not", units, []column{
		{"trials", madeTrials, none(), percent, false},
		{"right", rightSaid, none(), percent, false},
		{"wrong", wrongSaid, none(), percent, false},
		{"blocks", blocks, none(), plain, false},
	})
}

func knownName(scatter, effect float64) string {
	return fmt.Sprintf("scatter %g %%, effect %g %%", 100*scatter, 100*effect)
}
