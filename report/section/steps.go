package section

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/report/words"
)

// Steps shows the steps of loads that grow within a trial, and what bound each.
func Steps(r *analyse.Result) *Section {
	s := &Section{ID: "steps", Title: "Steps of the load", About: "medians; bound by: what took most of the time, and in how many trials"}
	if len(r.LoadSteps) == 0 {
		return s
	}
	var plain, claims []*analyse.LoadStep
	for i := range r.LoadSteps {
		x := &r.LoadSteps[i]
		if _, ok := x.Value("bound_p50"); ok {
			claims = append(claims, x)
		} else {
			plain = append(plain, x)
		}
	}
	if len(plain) > 0 {
		s.Table(objectSteps(plain))
	}
	if len(claims) > 0 {
		s.Table(claimSteps(claims))
		s.Note("until: from when a claim was to be submitted; of what is gone or detached, from when it was to be deleted")
	}
	for i := range r.LoadSteps {
		x := &r.LoadSteps[i]
		if last := i+1 == len(r.LoadSteps) || r.LoadSteps[i+1].Cell.String() != x.Cell.String(); last && x.Verdict != "" {
			text := x.Verdict
			if x.Removal != "" {
				text += "; " + x.Removal
			}
			s.Note(fmt.Sprintf("%s, step %d, last trial: %s.", x.Cell, x.Step, text))
		}
	}
	return s
}

// objectSteps is the table of loads on objects.
func objectSteps(steps []*analyse.LoadStep) *Table {
	figures := []string{"objects", "rate", "api_latency_p99", "pod_start_p50", "pod_start_p99"}
	t := NewTable(2, append([]string{"of", "step"}, append(figures, "bound by")...)...)
	before := ""
	for _, x := range steps {
		row := []string{first(&before, x), strconv.Itoa(x.Step)}
		for _, name := range figures {
			row = append(row, stepFigure(x, name))
		}
		t.Row(append(row, boundBy(x.Bounds, x.Trials))...)
	}
	return t
}

// claimSteps is the table of loads on claims: a row for each stage of each step. The verdict on the way of claims is in their first
// row, that on their removal in the first row of what is gone.
func claimSteps(steps []*analyse.LoadStep) *Table {
	t := NewTable(2, "of", "step", "claims", "a second", "until", "p50", "p95", "p99", "bound by")
	before := ""
	for _, x := range steps {
		lead := []string{first(&before, x), strconv.Itoa(x.Step), stepFigure(x, "objects")}
		part := func(rate string, bounds []analyse.LoadBound, stages ...[2]string) {
			by := []string{stepFigure(x, rate), boundBy(bounds, x.Trials)}
			for _, stage := range stages {
				if _, ok := x.Value(stage[0] + "_p50"); !ok {
					continue
				}
				row := slices.Concat(lead, []string{by[0], stage[1]})
				for _, q := range []string{"_p50", "_p95", "_p99"} {
					row = append(row, stepFigure(x, stage[0]+q))
				}
				t.Row(append(row, by[1])...)
				lead, by = []string{"", "", ""}, []string{"", ""}
			}
		}
		part("rate", x.Bounds, [2]string{"bound", "bound"}, [2]string{"attached", "attached"}, [2]string{"mounted", "mounted"}, [2]string{"written", "first byte"})
		part("removal_rate", x.Removals, [2]string{"claim_gone", "claim gone"}, [2]string{"detached", "detached"}, [2]string{"volume_gone", "volume gone"})
	}
	return t
}

// first is the name of a step's cell, if it differs from the one before.
func first(before *string, x *analyse.LoadStep) string {
	of := x.Cell.String()
	if of == *before {
		return ""
	}
	*before = of
	return of
}

func stepFigure(x *analyse.LoadStep, name string) string {
	if v, ok := x.Value(name); ok {
		return words.Value(v.Median, v.Unit)
	}
	return "-"
}

func boundBy(bounds []analyse.LoadBound, trials int) string {
	var out []string
	for _, b := range bounds {
		out = append(out, fmt.Sprintf("%s (%d of %d)", b.By, b.Trials, trials))
	}
	return strings.Join(out, ", ")
}
