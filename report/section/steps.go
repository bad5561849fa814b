package section

import (
	"fmt"
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
	figures := []string{"objects", "rate", "api_latency_p99", "pod_start_p50", "pod_start_p99"}
	t := NewTable(2, append([]string{"of", "step"}, append(figures, "bound by")...)...)
	before := ""
	for i := range r.LoadSteps {
		x := &r.LoadSteps[i]
		of := x.Cell.String()
		row := []string{of, strconv.Itoa(x.Step)}
		if of == before {
			row[0] = ""
		}
		before = of
		for _, name := range figures {
			text := "-"
			if v, ok := x.Value(name); ok {
				text = words.Value(v.Median, v.Unit)
			}
			row = append(row, text)
		}
		var bounds []string
		for _, b := range x.Bounds {
			bounds = append(bounds, fmt.Sprintf("%s (%d of %d)", b.By, b.Trials, x.Trials))
		}
		t.Row(append(row, strings.Join(bounds, ", "))...)
	}
	s.Table(t)
	for i := range r.LoadSteps {
		x := &r.LoadSteps[i]
		if last := i+1 == len(r.LoadSteps) || r.LoadSteps[i+1].Cell.String() != x.Cell.String(); last && x.Verdict != "" {
			s.Note(fmt.Sprintf("%s, step %d, last trial: %s.", x.Cell, x.Step, x.Verdict))
		}
	}
	return s
}
