package analyse

import (
	"math"
	"testing"
	"time"

	"tare/plan"
	"tare/record"
	"tare/study"
)

// TestNeeds: the scatter of an earlier result tells how many blocks each comparison takes;
// what the result does not have is like its workload, else like all others.
func TestNeeds(t *testing.T) {
	st := makeStudy()
	trials := play(st, nil, outcome)
	r := Analyse(st, trials, nil, Describe(describe))
	for i := range trials {
		trials[i].Duration = 2 * time.Second
	}
	more := makeStudy()
	// A sandbox and a workload that were not measured.
	more.Strata[0].Cells = append(more.Strata[0].Cells, record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: "vm"}})
	more.Workloads = append(more.Workloads, study.Workload{Label: "extra", Kind: "net", Responses: []string{"time"}})
	l := record.Level{Factor: "workload", Value: "extra"}
	more.Strata = append(more.Strata, study.Stratum{Key: record.Cell{l}.Key(), Shared: record.Cell{l}, Workload: len(more.Workloads) - 1,
		Cells: []record.Cell{{l, {Factor: "sandbox", Value: "process"}}, {l, {Factor: "sandbox", Value: "runc"}}}})
	got := Needs(more, 0.01, r, trials, func(record.Cell) time.Duration { return 5 * time.Second })
	from := map[string]int{}
	for _, n := range got {
		from[n.From]++
		if n.Blocks < 3 || !(n.Scatter > 0) || !(n.Last > 0) {
			t.Errorf("%+v", n)
		}
		if width := plan.Rule(more).HalfWidth(n.Scatter, n.Blocks); width > 0.01 {
			t.Errorf("%s: %d blocks give an interval of %g", n.Cell, n.Blocks, width)
		}
		want := 6 * time.Second // the baseline and two treatments
		switch n.Workload {
		case "rr":
			want = 11 * time.Second
		case "extra":
			want = 10 * time.Second
		}
		if n.Block != want {
			t.Errorf("%s: a block takes %s, want %s", n.Cell, n.Block, want)
		}
	}
	if from[FromItself] != 6 || from[FromWorkload] != 1 || from[FromAll] != 1 {
		t.Errorf("scatter is from %v", from)
	}
	if sum, never := NeedTime(got); sum < 3*(11+10)*time.Second || never != 0 {
		t.Errorf("%s in all, %d never", sum, never)
	}
	if none := Needs(more, 0.01, &Result{}, nil, func(record.Cell) time.Duration { return time.Second }); none[0].Blocks != 0 || none[0].From != "" || math.IsNaN(none[0].Scatter) {
		t.Errorf("nothing is known: %+v", none[0])
	}
}
