package section

import (
	"slices"
	"strings"
	"testing"

	"tare/analyse"
	"tare/record"
)

// TestClaimSteps: a step of claims has a row for each of its stages. Its verdicts have a table of their own, because a stage is called
// bound. Loads on objects and pipelines have separate tables.
func TestClaimSteps(t *testing.T) {
	value := func(name string, x float64) analyse.LoadValue {
		return analyse.LoadValue{Name: name, Unit: record.Second, Median: x}
	}
	cell := func(workload string) record.Cell { return record.Cell{{Factor: "workload", Value: workload}} }
	r := &analyse.Result{LoadSteps: []analyse.LoadStep{
		{Cell: cell("pods"), Step: 1, Trials: 1, Bounds: []analyse.LoadBound{{By: "nodes", Trials: 1}}, Values: []analyse.LoadValue{value("pod_start_p50", 3)}},
		{Cell: cell("pipeline"), Step: 1, Trials: 1, Bounds: []analyse.LoadBound{{By: "push", Trials: 1}}, Values: []analyse.LoadValue{value("pushed_p50", 7)}},
		{Cell: cell("volumes"), Step: 1, Trials: 2, Bounds: []analyse.LoadBound{{By: "scheduler", Trials: 2}}, Removals: []analyse.LoadBound{{By: "provisioner", Trials: 2}}, Verdict: "the way", Removal: "the removal.",
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
	want := []string{"pods 1 3.00 s nodes 1/1", "pipeline 1 7.00 s push 1/1", "1 bound - - 1.00 s 2.00 s -\n" +
		"1 first byte   4.00 s - -\n" +
		"1 claim gone - - 5.00 s - -\n" +
		"1 volume gone   6.00 s - -", "1 scheduler 2/2 provisioner 2/2"}
	if !slices.Equal(tables, want) {
		t.Errorf("%q", tables)
	}
	if !strings.Contains(note, "the way; the removal.") {
		t.Error(note)
	}
}

// text is all that a section says, a row of a table in a line.
func text(s *Section) string {
	var out strings.Builder
	for _, b := range s.Blocks {
		out.WriteString(b.Head + b.Text + b.Note + "\n")
		if b.Table != nil {
			for _, row := range b.Table.Rows {
				for _, c := range row {
					out.WriteString(c.First + "|")
				}
				out.WriteString("\n")
			}
		}
	}
	return out.String()
}

// TestStepsLate: the time of pods that did not run by the deadline is a lower bound, and the section says so.
func TestStepsLate(t *testing.T) {
	for _, late := range []bool{false, true} {
		got := text(Steps(&analyse.Result{LoadSteps: []analyse.LoadStep{{Step: 1, Trials: 1, Values: []analyse.LoadValue{{Name: "pod_start_p99", Unit: record.Second, Median: 15, AtLeast: late}}}}}))
		if strings.Contains(got, "|> 15.0 s|") != late || strings.Contains(got, "lower bound") != late {
			t.Errorf("late %t: %s", late, got)
		}
	}
}

// TestCalls: the table of the API has the step with the greatest p99 of each verb and resource, beside the objective.
func TestCalls(t *testing.T) {
	call := func(verb string, p99 float64) analyse.LoadCall {
		return analyse.LoadCall{Verb: verb, Resource: "pods", P50: p99 / 10, P99: p99}
	}
	r := &analyse.Result{LoadSteps: []analyse.LoadStep{{Step: 1, Trials: 1, Calls: []analyse.LoadCall{call("create", 0.5), call("list", 20)}}, {Step: 2, Trials: 1, Calls: []analyse.LoadCall{call("create", 2), call("list", 10)}}}}
	if got, want := text(Steps(r)), "|create|pods|2|200 ms|2.00 s|1.00 s|not met|\n|list|pods|1|2.00 s|20.0 s|30.0 s|met|\n"; !strings.Contains(got, want) {
		t.Errorf("%s\nlacks %s", got, want)
	}
}

// TestPlateaus: loads that read their node have a second table, which says what it had at each plateau; others do not.
func TestPlateaus(t *testing.T) {
	step := func(class string, values ...analyse.LoadValue) analyse.LoadStep {
		return analyse.LoadStep{Cell: record.Cell{{Factor: "class", Value: class}}, Step: 1, Trials: 3, Verdict: "nodes", Bounds: []analyse.LoadBound{{By: "nodes", Trials: 3}}, Values: values}
	}
	r := &analyse.Result{LoadSteps: []analyse.LoadStep{step("runc", analyse.LoadValue{Name: "pods", Unit: record.Count, Median: 5})}}
	tables := func() (out []*Table) {
		for _, b := range Steps(r).Blocks {
			if b.Table != nil {
				out = append(out, b.Table)
			}
		}
		return out
	}
	if got := tables(); len(got) != 1 {
		t.Fatalf("%d tables of a load that does not read its node", len(got))
	}
	r.LoadSteps = append(r.LoadSteps, step("native", analyse.LoadValue{Name: "pods", Unit: record.Count, Median: 5}, analyse.LoadValue{Name: "node_memory", Unit: record.Byte, Median: 5 << 20},
		analyse.LoadValue{Name: "node_page_cache", Unit: record.Byte, Median: 300 << 20}))
	got := tables()
	if len(got) != 2 || len(got[1].Rows) != 1 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []string{"class=native", "1", "5", "5.00 MiB", "300 MiB"} {
		if text := got[1].Rows[0][i].First; text != want {
			t.Errorf("%s is %q, want %q", got[1].Columns[i].Head, text, want)
		}
	}
	if strings.Contains(text(Steps(r)), "negative") {
		t.Error("a negative figure is explained that there is not")
	}
	r.LoadSteps = append(r.LoadSteps, step("runc", analyse.LoadValue{Name: "node_memory", Unit: record.Byte, Median: -5 << 20}))
	if got := text(Steps(r)); !strings.Contains(got, "a negative figure: other programs on the node") {
		t.Error(got)
	}
}

// TestServer: each load has what the API server did at each plateau, with pods and without. The short answer says in a sentence whether
// the API met its objectives. Without readings, the report says so.
func TestServer(t *testing.T) {
	step := func(workload string, values ...analyse.LoadValue) analyse.LoadStep {
		return analyse.LoadStep{Cell: record.Cell{{Factor: "workload", Value: workload}}, Step: 1, Trials: 3, Values: append(values, analyse.LoadValue{Name: "api_latency_p99", Unit: record.Second, Median: 0.1})}
	}
	cpu := analyse.LoadValue{Name: "server_cpu", Unit: record.Cores, Median: 0.5}
	etcd := analyse.LoadValue{Name: "store_mean", Unit: record.Second, Median: 0.004}
	r := &analyse.Result{LoadSteps: []analyse.LoadStep{step("pods", cpu, etcd, analyse.LoadValue{Name: "pod_start_p50", Unit: record.Second, Median: 2}), step("maps", cpu),
		step("claims", cpu, analyse.LoadValue{Name: "bound_p50", Unit: record.Second, Median: 2})}}
	full := text(Steps(r))
	for _, want := range []string{"The API server at each plateau\npods|1|0.500 cores|4.00 ms|\nmaps|1|0.500 cores|-|\nclaims|1|0.500 cores|-|\n", "the CPU and memory of etcd, scheduler and controller manager are not known."} {
		if !strings.Contains(strings.ReplaceAll(full, "plateau\n\n", "plateau\n"), want) {
			t.Errorf("%s\nlacks %s", full, want)
		}
	}
	r.LoadSteps[1].Values = append(r.LoadSteps[1].Values, analyse.LoadValue{Name: "etcd_cpu", Unit: record.Cores, Median: 0.25}, analyse.LoadValue{Name: "scheduler_memory", Unit: record.Byte, Median: 64 << 20})
	full = strings.ReplaceAll(text(Steps(r)), "plateau\n\n", "plateau\n")
	if want := "The rest of the control plane at each plateau\nmaps|1|0.250 cores|64.0 MiB|\n"; !strings.Contains(full, want) || strings.Contains(full, "controller manager are not known") {
		t.Errorf("%s\nlacks %s", full, want)
	}
	r.LoadSteps[0].Calls = []analyse.LoadCall{{Verb: "create", Resource: "pods", P99: 0.5}, {Verb: "delete", Resource: "pods", P99: 2}}
	if short := text(steps(r, true)); strings.Contains(short, "The API server at") || !strings.Contains(short, "these did not meet the objective of Kubernetes, a p99 of 1 s, or of 30 s for lists: pods delete pods (p99 2.00 s)") {
		t.Error(short)
	}
	r = &analyse.Result{LoadSteps: []analyse.LoadStep{step("maps")}}
	if got := text(Steps(r)); !strings.Contains(got, "its /metrics could not be read") {
		t.Error(got)
	}
}
