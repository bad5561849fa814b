package analyse

import (
	"testing"

	"tare/record"
	"tare/study"
)

// TestLoadSteps: steps are those of good trials, in the order of their numbers, with medians and the most frequent verdict first.
func TestLoadSteps(t *testing.T) {
	c := record.Cell{{Factor: "workload", Value: "pods"}, {Factor: "sandbox", Value: "process"}}
	a := &analysis{study: &study.Study{Strata: []study.Stratum{{Cells: []record.Cell{c}}}}}
	for i, by := range []string{"store", "nodes", "nodes"} {
		var rd record.Reading
		for _, step := range []string{"2", "1"} {
			rd.Value("rate", record.PerSecond, float64(10+i), "step", step)
			rd.Value("server_p50", record.Second, 0.1, "step", step, "verb", "create", "resource", "pods")
			rd.Value("server_p99", record.Second, float64(i), "step", step, "verb", "create", "resource", "pods")
			rd.Value("pod_start_p99", record.Second, 15, "step", step)
			if i > 0 || step == "1" { // in two trials of three, and in all
				rd.Value("late", record.Count, 2, "step", step, "figure", "pod_start_p99")
			} else if i == 0 {
				rd.Value("late", record.Count, 2, "step", step, "figure", "rate")
			}
			rd.Samples = append(rd.Samples, record.Sample{Name: record.RemovalBound, Labels: record.MakeLabels("step", step, "by", "provisioner"), Original: "removal of " + step})
			rd.Samples = append(rd.Samples, record.Sample{Name: record.StepBound, Labels: record.MakeLabels("step", step, "by", by), Original: by + " of " + step})
		}
		a.trials = append(a.trials, &record.Trial{Cell: c, Status: record.OK, Samples: rd.Samples})
	}
	a.trials = append(a.trials, &record.Trial{Cell: c, Status: record.Failed, Samples: a.trials[0].Samples})
	got := a.loadSteps()
	if len(got) != 2 || got[0].Step != 1 || got[1].Step != 2 {
		t.Fatalf("%+v", got)
	}
	v, ok := got[0].Value("rate")
	if b := got[0].Bounds; !ok || v.Median != 11 || got[0].Trials != 3 || len(b) != 2 || b[0] != (LoadBound{"nodes", 2}) || got[0].Verdict != "nodes of 1" || len(got[0].Values) != 2 {
		t.Errorf("%+v", got[0])
	}
	for _, x := range got {
		if v, _ := x.Value("pod_start_p99"); v.Median != 15 || !v.AtLeast {
			t.Errorf("step %d: %+v", x.Step, v)
		}
		if v, _ := x.Value("rate"); v.AtLeast { // in one trial of three
			t.Errorf("step %d: %+v", x.Step, v)
		}
		if c := x.Calls; len(c) != 1 || c[0].Verb != "create" || c[0].Resource != "pods" || c[0].P50 != 0.1 || c[0].P99 != 1 {
			t.Errorf("step %d: %+v", x.Step, c)
		}
	}
	if b := got[1].Removals; len(b) != 1 || b[0] != (LoadBound{"provisioner", 3}) || got[1].Removal != "removal of 2" {
		t.Errorf("%+v", got[1])
	}
}
