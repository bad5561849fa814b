package analyse

import (
	"math"
	"strings"
	"testing"

	"tare/record"
	"tare/study"
)

// TestOthers: what others used is what the trial and the harness did not use, and a ratio that follows it is told without it.
func TestOthers(t *testing.T) {
	cell := func(sandbox string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "cpu"}, {Factor: "sandbox", Value: sandbox}}
	}
	st := &study.Study{Compare: "sandbox", Baseline: "process", Stop: study.Stop{Fixed: 8, Confidence: 0.95, Margin: 0.03},
		Workloads: []study.Workload{{Label: "cpu", Kind: "cpu", Responses: []string{"events"}}},
		Strata:    []study.Stratum{{Key: "workload=cpu", Shared: cell("")[:1], Cells: []record.Cell{cell("process"), cell("runc")}}}}
	of := func(slope float64) *Result {
		var trials []record.Trial
		for block := 1; block <= 8; block++ {
			for i, c := range st.Strata[0].Cells {
				others := 0.2
				if i == 1 {
					others += 0.15 * float64(block%4) // beside runc they use 0 to 0.45 cores more
				}
				noise := 0.002 * float64((block*7+i*3)%5-2)
				events := 1000 * math.Exp(-slope*others+noise)
				if i == 1 {
					events /= 1.1
				}
				sample := func(name, labels string, v float64) record.Sample {
					return record.Sample{Name: name + "_rate", Labels: record.Labels(labels), Unit: record.Cores, Value: v}
				}
				trials = append(trials, record.Trial{Seq: 2*block + i, Block: block, Attempt: 1, Cell: c, Status: record.OK, Samples: []record.Sample{
					record.NewValue("events", "1/s", events),
					sample("system_cpu", "mode=user", 1+others), sample("system_cpu", "mode=system", 0.1), sample("system_cpu", "mode=softirq", 0.05), sample("system_cpu", "mode=idle", 2.85-others),
					sample("cpu_time", "end=main,role=workload", 1), sample("cgroup_cpu", "end=main", 1.05), sample("cpu_time", "role=harness", 0.05),
				}})
			}
		}
		return Analyse(st, trials, nil)
	}
	r := of(0.5)
	if len(r.Others) != 2 || math.Abs(r.Others[0].Median-0.2) > 1e-6 || math.Abs(r.Others[1].Most-0.65) > 1e-6 || math.Abs(r.Others[1].Processors-4) > 1e-6 || r.Others[1].Trials != 8 {
		t.Errorf("%+v", r.Others)
	}
	if len(r.Following) != 1 {
		t.Fatalf("%+v", r.Following)
	}
	// Of the plain ratio, 1/1.1 times what others cost, the line leaves the sandbox's own part.
	if f := r.Following[0]; f.Blocks != 8 || math.Abs(f.Ratio-1/1.1) > 0.005 || f.Lo > 1/1.1 || f.Hi < 1/1.1 || f.Hi/f.Lo > 1.02 || math.Abs(math.Log(f.PerCore)+0.5) > 0.03 {
		t.Errorf("%+v", f)
	}
	if plain := r.Compared[len(r.Compared)-1].Estimate.Ratio; plain > 0.88 {
		t.Errorf("the plain ratio %v is not disturbed: this shows nothing", plain)
	}
	for _, w := range r.Warnings {
		if w.Code == WarnOthers {
			t.Errorf("others used little: %+v", w)
		}
	}
	if r := of(0); len(r.Following) != 0 {
		t.Errorf("a ratio that follows nothing: %+v", r.Following)
	}
	st.Strata[0].Cells[1] = append(cell("runc"), record.Level{Factor: study.FactorLinkPath, Value: record.PathNodes})
	if r := of(0.5); len(r.Others) != 1 {
		t.Errorf("an end on another machine: %+v", r.Others)
	}
}

// TestOthersWarning: others that use much of a machine are a warning.
func TestOthersWarning(t *testing.T) {
	c := record.Cell{{Factor: "workload", Value: "cpu"}, {Factor: "sandbox", Value: "process"}}
	st := &study.Study{Compare: "sandbox", Baseline: "process", Stop: study.Stop{Fixed: 2},
		Workloads: []study.Workload{{Label: "cpu", Kind: "cpu", Responses: []string{"events"}}},
		Strata:    []study.Stratum{{Key: "workload=cpu", Shared: c[:1], Cells: []record.Cell{c}}}}
	var trials []record.Trial
	for block := 1; block <= 2; block++ {
		trials = append(trials, record.Trial{Seq: block, Block: block, Attempt: 1, Cell: c, Status: record.OK, Samples: []record.Sample{
			{Name: "system_cpu_rate", Labels: "mode=user", Value: 1.5}, {Name: "system_cpu_rate", Labels: "mode=idle", Value: 0.5}, {Name: "cgroup_cpu_rate", Labels: "end=main", Value: 0.5},
		}})
	}
	found := ""
	for _, w := range Analyse(st, trials, nil).Warnings {
		if w.Code == WarnOthers {
			found = w.Text
		}
	}
	if !strings.Contains(found, "2 of 2 trials") || !strings.Contains(found, "1 cores at most") {
		t.Errorf("%q", found)
	}
}
