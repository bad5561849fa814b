package section

import (
	"strings"
	"testing"

	"tare/analyse"
	"tare/record"
)

// TestClaimSteps: a step of claims has a row for each stage that it has, with each verdict once; loads on objects have a table of
// their own.
func TestClaimSteps(t *testing.T) {
	value := func(name string, x float64) analyse.LoadValue {
		return analyse.LoadValue{Name: name, Unit: record.Second, Median: x}
	}
	cell := func(workload string) record.Cell { return record.Cell{{Factor: "workload", Value: workload}} }
	r := &analyse.Result{LoadSteps: []analyse.LoadStep{
		{Cell: cell("pods"), Step: 1, Trials: 1, Bounds: []analyse.LoadBound{{By: "nodes", Trials: 1}}, Values: []analyse.LoadValue{value("pod_start_p50", 3)}},
		{Cell: cell("volumes"), Step: 1, Trials: 2, Bounds: []analyse.LoadBound{{By: "scheduler", Trials: 2}}, Removals: []analyse.LoadBound{{By: "provisioner", Trials: 2}}, Verdict: "the way", Removal: "the removal",
			Values: []analyse.LoadValue{value("bound_p50", 1), value("bound_p95", 2), value("written_p50", 4), value("claim_gone_p50", 5), value("volume_gone_p50", 6)}},
	}}
	s := Steps(r)
	var tables []string
	note := ""
	for _, b := range s.Blocks {
		if b.Table == nil {
			note += b.Note
			continue
		}
		var rows []string
		for _, row := range b.Table.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, c.First)
			}
			rows = append(rows, strings.Join(cells, " "))
		}
		tables = append(tables, strings.Join(rows, "\n"))
	}
	want := "1 bound - - 1.00 s 2.00 s - scheduler 2/2\n" +
		"1 first byte   4.00 s - - \n" +
		"1 claim gone - - 5.00 s - - provisioner 2/2\n" +
		"1 volume gone   6.00 s - - "
	if len(tables) != 2 || !strings.Contains(tables[0], "pods 1 - - - 3.00 s - nodes 1/1") || tables[1] != want {
		t.Errorf("%q", tables)
	}
	if !strings.Contains(note, "the way; the removal.") {
		t.Error(note)
	}
}
