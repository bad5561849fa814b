package main

import (
	"context"
	"io"
)

// turnsSection is about studies with turns: what it brings that the plan chooses their number. The short
// form has the budgets of studies/first.yaml and, for virtual machines, of five times as much.
func turnsSection(ctx context.Context, l *lab, w io.Writer) ([]figure, error) {
	const stop = "{looks: [3, 4, 6, 8, 12, 16], margin: 5%, width: 3%}"
	places := []struct {
		name   string
		turns  turns
		budget string
	}{
		{"containers", turns{starts: [5]float64{0.1, 0.25, 0.15, 1, 1}, turn: 0.35}, "4m"},
		{"machines", turns{starts: [5]float64{0.1, 3.5, 3.5, 3.5, 3.5}, turn: 0.35}, "20m"},
	}
	s := shape{workloads: 8, points: 1, treats: 4}
	var units []unit
	for _, m := range machines() {
		if m.name != "iid" && m.even == 0 {
			continue
		}
		for _, place := range places {
			on := m
			on.name += ", " + place.name
			on.turns = &place.turns
			for _, budget := range []string{place.budget, ""} {
				if budget == "" && !l.long {
					continue
				}
				for _, n := range []string{"2", "auto"} {
					r := rule{"first, turns: " + n, stop + "\nturns: " + n}
					if budget != "" {
						r = rule{"first, " + budget + ", turns: " + n, r.stop + "\nbudget: {time: " + budget + "}"}
					}
					units = append(units, unit{section: "turns", shape: s, rule: r, machine: on, studies: l.enough(s)})
				}
			}
		}
	}
	return l.table(ctx, w, "Studies in turns: the time they take, in per cent of that of 16 fixed blocks in two turns, and rows whose verdict is true or not", units, []column{
		{"time", tookTime, none(), percent, false},
		{"right", rightSaid, none(), percent, false},
		{"wrong", wrongSaid, none(), percent, false},
		{"rows hold the truth", covered, coverage(), percent, false},
		{"A/A rows called", equalCalled, atMost(0.05), percent, false},
		{"blocks", blocks, none(), plain, false},
	})
}
