package analyse

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/study"
)

// Where the ends ran is read from the trials, failed ones and the baseline's
// left out.
func TestEnds(t *testing.T) {
	st := &study.Study{Compare: "sandbox", Baseline: "process", Traits: native()}
	var trials []record.Trial
	add := func(workload string, boxes map[string]map[string]string) {
		shared := record.Cell{{Factor: "workload", Value: workload}}
		s := study.Stratum{Key: shared.Key(), Shared: shared, Workload: len(st.Workloads)}
		st.Workloads = append(st.Workloads, study.Workload{Label: workload, Kind: workload, Responses: []string{"x"}})
		for _, box := range []string{"process", "runc", "runsc"} {
			cell := append(shared[:1:1], record.Level{Factor: "sandbox", Value: box})
			s.Cells = append(s.Cells, cell)
			tr := record.Trial{Seq: len(trials) + 1, Block: 1, Attempt: 1, Cell: cell, Status: record.OK}
			for _, role := range []string{"server", "client", "main"} {
				if kind, ok := boxes[box][role]; ok {
					tr.Samples = append(tr.Samples, record.Sample{Name: "sandbox_start", Labels: record.MakeLabels("end", role, "sandbox", kind), Unit: record.Second, Value: 0.1})
				}
			}
			if box == "runc" && workload == "failing" {
				tr.Status = record.Failed
			}
			trials = append(trials, tr)
		}
		st.Strata = append(st.Strata, s)
	}
	add("http", map[string]map[string]string{"process": {"server": "process", "client": "process"}, "runc": {"server": "runc", "client": "process"}})
	add("upload", map[string]map[string]string{"runc": {"server": "process", "client": "runc"}})
	add("cpu", map[string]map[string]string{"runc": {"main": "runc"}})
	add("failing", map[string]map[string]string{"runc": {"server": "runc"}, "runsc": {"server": "runsc", "client": "runsc"}})
	add("launched", nil)
	for i := range trials { // its sandboxes are made while it runs: facts alone tell
		if c, _ := trials[i].Cell.Get("workload"); c == "launched" {
			box, _ := trials[i].Cell.Get("sandbox")
			trials[i].Facts = map[string]string{"main.where": map[string]string{"process": "native"}[box], "main.image": "node"}
			if box != "process" {
				trials[i].Facts["main.where"] = box
			}
		}
	}
	add("older", nil) // launched, by a version that had no such facts
	got := Analyse(st, trials, nil).Placements
	want := []Placement{
		{"workload=http", []PlacedRole{{"server", true}, {"client", false}}, "server in the sandbox, client native"},
		{"workload=upload", []PlacedRole{{"server", false}, {"client", true}}, "server native, client in the sandbox"},
		{"workload=cpu", []PlacedRole{{"main", true}}, "in the sandbox"},
		{"workload=failing", []PlacedRole{{"server", true}, {"client", true}}, "server in the sandbox, client in the sandbox"},
		{"workload=launched", []PlacedRole{{"main", true}}, "in the sandbox"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
