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

// TestFailedShort: the short answer has a line for each workload with failed trials, which says how many, and why most of them.
func TestFailedShort(t *testing.T) {
	cell := func(workload, sandbox string) record.Cell {
		return record.Cell{{Factor: "workload", Value: workload}, {Factor: "sandbox", Value: sandbox}}
	}
	reason := func(text string, n int) analyse.Reason {
		return analyse.Reason{Phase: "run", Kind: "died", Text: text, Count: n}
	}
	r := &analyse.Result{Compare: "sandbox",
		Compared: []analyse.Comparison{
			{Cell: cell("net", "runc"), Failures: []analyse.Reason{reason("no answer", 1)}},
			{Cell: cell("net", "vm"), Failures: []analyse.Reason{reason("out of memory", 5)}},
			{Cell: cell("redis", "vm"), Failures: []analyse.Reason{reason("no memory", 1)}},
			{Cell: cell("fio", "vm")},
		},
		Failures: []analyse.FailedTrial{{Cell: cell("late", "runc"), Failure: record.Failure{Kind: "died", Reason: "gone"}}},
	}
	want := []string{"6 trials of net failed: out of memory", "1 trial of redis with sandbox=vm failed: no memory", "1 trial of late with sandbox=runc failed: gone"}
	if d := cmp.Diff(want, failedShort(r)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	var told []string
	for _, b := range Short(r, nil, "")[0].Blocks {
		for _, i := range b.List {
			told = append(told, i.Text)
		}
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Errorf("the short answer (-want +got)\n%s", d)
	}
}
