package analyse

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/plan"
	"tare/record"
)

// within makes a trial's words about a response, as package run writes them.
// from < 0: no steady state; ess <= 0: too short to tell.
func within(response string, points, ess, from, change float64) []record.Sample {
	l := record.MakeLabels(record.LabelResponse, response)
	out := []record.Sample{{Name: record.SteadyPoints, Labels: l, Unit: record.Count, Value: points}}
	if ess <= 0 {
		return out
	}
	out = append(out, record.Sample{Name: record.EffectiveSamples, Labels: l, Unit: record.Count, Value: ess})
	if from < 0 {
		return out
	}
	return append(out, record.Sample{Name: record.SteadyFrom, Labels: l, Unit: record.Second, Value: from},
		record.Sample{Name: record.SteadyChange, Labels: l, Unit: record.Fraction, Value: change})
}

func TestSteadinessCountsGoodTrials(t *testing.T) {
	st := makeStudy()
	cell := st.Strata[0].Cells[0]
	trial := func(block, attempt int, status record.Status, s []record.Sample, why string) record.Trial {
		x := outcome(plan.Next{Cell: cell, Seq: 10*block + attempt, Block: block, Attempt: attempt})
		x.Status, x.Samples = status, append(x.Samples, s...)
		if why != "" {
			x.Warnings = append(x.Warnings, record.Warning{Code: record.NoSteadyState, Text: why})
		}
		return x
	}
	trials := []record.Trial{
		trial(1, 1, record.Failed, within("p50", 99, 99, 0, 1), ""), // not a good one
		trial(1, 2, record.OK, within("p50", 40, 30, 0, 1), ""),
		trial(2, 1, record.OK, within("p50", 40, 20, 0.5, 1.2), ""),
		trial(3, 1, record.OK, within("p50", 38, 10, -1, 0), "p50 still falls by 3.1 % a second at the end; measure for longer"),
		trial(4, 1, record.OK, within("p50", 5, 0, 0, 0), ""),
		trial(5, 1, record.OK, nil, ""), // of an older tare
	}
	res := Analyse(st, trials, nil, Describe(describe))
	got := findCell(t, res, "rr", "p50", "process").Steady
	want := &Steadiness{Trials: 4, Steady: 2, NotSteady: 1, TooShort: 1, Late: 1, From: 0.25, Change: 1.1, Effective: 20, Points: 39,
		Why: "still falls by 3.1 % a second at the end"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if s := findCell(t, res, "rr", "p99", "process").Steady; s != nil {
		t.Errorf("no series follows p99, and yet %+v", s)
	}
	// Whoever leaves out the labels that Analyse does not read must not lose these.
	if !slices.Contains(LabelNames(), record.LabelResponse) {
		t.Error("samples about responses are not loaded for an analysis")
	}
	// How many independent values a trial is worth is never n.
	if n := findCell(t, res, "rr", "p50", "process").Level.N; n != 5 {
		t.Errorf("n is %d, want the 5 good trials", n)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil || m["effective_samples"] != 20.0 {
		t.Errorf("JSON %s, %v", b, err)
	}
}

// What is in a database may be anything.
func TestSteadinessTakesNoNaN(t *testing.T) {
	st := makeStudy()
	x := outcome(plan.Next{Cell: st.Strata[0].Cells[0], Seq: 1, Block: 1, Attempt: 1})
	x.Samples = append(x.Samples, within("p50", 20, math.NaN(), math.Inf(1), math.NaN())...)
	res := Analyse(st, []record.Trial{x}, nil, Describe(describe))
	if _, err := json.Marshal(res); err != nil {
		t.Error(err)
	}
}

func findCell(t *testing.T, res *Result, workload, response, sandbox string) *Comparison {
	t.Helper()
	for i := range res.Compared {
		c := &res.Compared[i]
		if box, _ := c.Cell.Get("sandbox"); c.Workload == workload && c.Response.Name == response && box == sandbox {
			return c
		}
	}
	t.Fatalf("no comparison of %s %s in %s", workload, response, sandbox)
	return nil
}
