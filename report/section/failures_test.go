package section

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/record"
)

// TestFailuresOfNoCell: the list has each trial that the head counts, those too that failed by no fault of their cell, or whose
// cell is not compared.
func TestFailuresOfNoCell(t *testing.T) {
	cell := func(sandbox string) record.Cell { return record.Cell{{Factor: "sandbox", Value: sandbox}} }
	failed := func(sandbox, phase, kind, reason string) analyse.FailedTrial {
		return analyse.FailedTrial{Cell: cell(sandbox), Failure: record.Failure{Phase: phase, Kind: kind, Reason: reason}}
	}
	died := analyse.Reason{Phase: "run", Kind: "died", Text: "out of memory", Count: 1}
	r := &analyse.Result{
		Compared: []analyse.Comparison{{Cell: cell("runc"), Failed: 1, Failures: []analyse.Reason{died}}, {Cell: cell("runc"), Failed: 1, Failures: []analyse.Reason{died}}},
		Failures: []analyse.FailedTrial{
			failed("runc", "run", "died", "out of memory"), failed("runc", "start", record.NodeLost, "node n1 is gone"), failed("runc", "start", record.NodeLost, "node n1 is gone"),
			failed("runc", "", record.Interrupted, "Ctrl-C"), failed("crun", "start", "start", "no such file"), {Cell: cell("crun")},
		},
	}
	want := []Item{
		{Lead: "sandbox=runc", Text: "1, died in run: out of memory"},
		{Lead: "sandbox=runc", Text: "2, node-lost in start: node n1 is gone"},
		{Lead: "sandbox=runc", Text: "1, interrupted: Ctrl-C"},
		{Lead: "sandbox=crun", Text: "1, start in start: no such file"},
		{Lead: "sandbox=crun", Text: "1, other: no reason is on record"},
	}
	var got []Item
	for _, b := range Failures(r).Blocks {
		got = append(got, b.List...)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
