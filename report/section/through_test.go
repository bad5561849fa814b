package section

import (
	"fmt"
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/record"
)

// TestThrough: what bounds a load on others' pods is shown of each cell, with the busiest thread of each part.
func TestThrough(t *testing.T) {
	thread := func(end string, v float64) cause.Reading {
		return cause.Reading{Name: "busiest thread of the workload, share of a core", Endpoint: end, Value: v}
	}
	f := cause.Finding{Through: true, Cause: cause.GuestOne, Role: "controller", Endpoint: "controller-2", Confidence: 0.95, Text: "A thread is full.",
		Readings: []cause.Reading{thread("client", 0.31), thread("controller", 0.5), thread("controller-2", 0.97), thread("backend", 0), {Name: "host's processors in use", Endpoint: "controller", Value: 0.6}}}
	f.Baseline, f.Treatment, f.Workload = true, "targets=plain", "kept"
	other := cause.Finding{Through: true, Cause: cause.Unknown, Missing: "readings of the controller's pods"}
	s := Causes(&analyse.Result{Causes: []cause.Finding{f, other}, Compare: "targets", Treatments: []analyse.Treatment{{Key: "targets=plain", Cell: record.Cell{{Factor: "targets", Value: "plain"}}, Baseline: true}}})
	got := fmt.Sprintf("%+v", s)
	var row []string
	for _, b := range s.Blocks {
		if b.Table != nil {
			for _, c := range b.Table.Rows[0] {
				row = append(row, c.First)
			}
			if len(b.Table.Rows) != 1 {
				t.Errorf("%d rows: %+v", len(b.Table.Rows), b.Table.Rows)
			}
		}
	}
	if all := strings.Join(row, "|"); all != "kept|plain|controller: thread full|31 %|97 %|-|60 %" {
		t.Errorf("%s", all)
	}
	if !strings.Contains(got, "kept. A thread is full.") || !strings.Contains(got, "readings of the controller's pods") {
		t.Errorf("%s", got)
	}
}
