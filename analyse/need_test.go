package analyse

import (
	"math"
	"math/rand/v2"
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
	for _, n := range got {
		if n.Fewest > n.Blocks || n.Most < n.Blocks || n.From == FromItself && n.Fewest == n.Most && n.Blocks > 3 {
			t.Errorf("%s: %d blocks, from %d to %d", n.Cell, n.Blocks, n.Fewest, n.Most)
		}
	}
	if sum, never := NeedTime(got); sum < 3*(11+10)*time.Second || never != 0 {
		t.Errorf("%s in all, %d never", sum, never)
	}
	for i := range trials {
		trials[i].Duration = 0 // imported
	}
	for _, n := range Needs(more, 0.01, r, trials, func(record.Cell) time.Duration { return 5 * time.Second }) {
		if want := map[bool]time.Duration{true: 20 * time.Second, false: 15 * time.Second}[n.Workload == "rr"]; n.Workload != "extra" && n.Block != want {
			t.Errorf("%s: a block takes %s, want %s", n.Cell, n.Block, want)
		}
	}
	if none := Needs(more, 0.01, &Result{}, nil, func(record.Cell) time.Duration { return time.Second }); none[0].Blocks != 0 || none[0].From != "" || math.IsNaN(none[0].Scatter) {
		t.Errorf("nothing is known: %+v", none[0])
	}
}

// TestNeedRange: the range of the scatter holds the true one in 80 % of pilots, however few
// their blocks.
func TestNeedRange(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, df := range []float64{2, 4, 15} {
		hits, n := 0, 2000
		for range n {
			chi := 0.0
			for range int(df) {
				z := r.NormFloat64()
				chi += z * z
			}
			if lo, hi := (scatter{math.Sqrt(chi / df), df}).span(); lo <= 1 && 1 <= hi {
				hits++
			}
		}
		if f := float64(hits) / float64(n); math.Abs(f-0.8) > 0.04 {
			t.Errorf("df %g: %.3f", df, f)
		}
	}
}
