package text

import (
	"bytes"
	"strings"
	"testing"

	"tare/analyse"
	"tare/record"
)

func TestNoSteadyStateIsPrintedOnce(t *testing.T) {
	cell := func(box string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: box}}
	}
	res := &analyse.Result{Study: "s", Compare: "sandbox", Baseline: "process", Trials: 24,
		Compared: []analyse.Comparison{
			{Workload: "rr", Cell: cell("process"), Baseline: true, Response: throughput, Steady: &analyse.Steadiness{Trials: 12, Steady: 10, TooShort: 2}},
			{Workload: "rr", Cell: cell("runc"), Response: throughput,
				Steady: &analyse.Steadiness{Trials: 12, Steady: 9, NotSteady: 3, Why: "still falls by 3.1 % a second at the end"}},
		},
		Warnings: []analyse.Warning{{Code: record.NoSteadyState, Text: "throughput still falls by 3.1 % a second at the end; measure for longer", Trials: 3}}}
	var b bytes.Buffer
	if err := Write(&b, res, nil, Options{Width: 200}); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	want := "within the trials:\n  no steady state in 3 of 12 trials of workload=rr,sandbox=runc: throughput still falls by 3.1 % a second at the end (the first of them)\n"
	if !strings.Contains(out, want) || strings.Count(out, "still falls") != 1 || strings.Contains(out, "warnings:") {
		t.Errorf("want once, and no empty list of warnings:\n%s", out)
	}
	res.Compared[1].Steady = nil
	b.Reset()
	if err := Write(&b, res, nil, Options{}); err != nil || strings.Contains(b.String(), "within the trials") {
		t.Errorf("%v, and with nothing to say:\n%s", err, b.String())
	}
}
