package compare

import (
	"testing"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
)

// TestBeside: gates judge one result by its own intervals and verdicts, whichever side of
// a response is better.
func TestBeside(t *testing.T) {
	small := 1e-6
	of := func(name string, better record.Better, lo, hi float64, v stat.Verdict) analyse.Comparison {
		c := analyse.Comparison{Workload: "w1", Treatment: "sandbox=box1", Cell: record.Cell{{Factor: "workload", Value: "w1"}, {Factor: "sandbox", Value: "box1"}},
			Response: record.Response{Name: name, Better: better}, Base: analyse.Level{N: 8}, Level: analyse.Level{N: 8}, Verdict: v,
			Estimate: stat.Estimate{Ratio: (lo + hi) / 2, Lo: lo, Hi: hi, N: 8, SE: 0.02, DF: 7}}
		if lo > 0 {
			c.P, c.Q = &small, &small
		}
		return c
	}
	r := &analyse.Result{Study: "s", Compare: "sandbox", Baseline: "process", Confidence: 0.95, Margin: 0.03, Compared: []analyse.Comparison{
		{Baseline: true}, of("slow", record.Lower, 1.4, 1.6, stat.Slower), of("weak", record.Higher, 0.6, 0.7, stat.Slower), of("same", record.Lower, 0.99, 1.01, stat.Equivalent), of("none", record.Lower, 0, 0, stat.Undecided)}}
	res := Beside(r, "dir")
	for text, want := range map[string][]string{
		"worse than 20%": {"slow", "weak"}, "surely worse than 45%": nil, "worse > 1.52": {"weak"}, "baseline": nil,
	} {
		g, err := NewGate("--gate", text, makeStudy(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		breaches, err := res.Check([]*Gate{g})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range breaches {
			got = append(got, res.Rows[b.Row].Response.Name)
		}
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	g, err := NewGate("--gate", "worse than 20%", makeStudy(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	doubts, err := res.Unjudged([]*Gate{g}, nil, 0.8)
	if err != nil || len(doubts) != 1 || res.Rows[doubts[0].Row].Response.Name != "none" {
		t.Errorf("%v, %+v: the row without an interval cannot be judged", err, doubts)
	}
}
