package export

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/analyse/cpucost"
	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/record"
)

func TestSummaryCSV(t *testing.T) {
	vm := record.Cell{{Factor: "sandbox", Value: "vm"}, {Factor: "vcpus", Value: "2"}}
	res := &analyse.Result{Modelled: true, Accelerators: []analyse.Accelerator{{Sandbox: "vm", Name: "vm (TCG)", Trials: map[string]int{"tcg": 3}}},
		Tables: []summary.Table{{Name: "t", Response: record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}, Factors: []string{"sandbox", "vcpus"},
			Column: "cpu-limit", Columns: []summary.Column{{Level: "none", Combinations: 2}},
			Rows: []summary.Row{{Cell: record.Cell{{Factor: "sandbox", Value: "process"}}, Baseline: true, Cells: []summary.Cell{{Combinations: 2, Estimate: stat.Estimate{Value: 100, N: 6}}}},
				{Cell: vm, Cells: []summary.Cell{{Combinations: 1, Fewer: true, Estimate: stat.Estimate{Value: 50, Base: 100, Ratio: 0.5, Lo: 0.4, Hi: 0.6, N: 3}, Verdict: stat.Slower, Why: "below"}}},
				{Cell: vm[:1], Mean: true, Of: 2, Cells: []summary.Cell{{Why: "it failed"}}}}}},
		CPUCosts: []cpucost.Cost{
			{Workload: "w", Stratum: "workload=w", Treatment: "sandbox=process", Cell: record.Cell{{Factor: "sandbox", Value: "process"}}, Baseline: true,
				Response: record.Response{Name: "rate", Unit: record.PerSecond}, Unit: "request", Ends: []string{"server"}, Source: cpucost.FromRoles,
				Trials: 3, Cores: 1, Rate: 1000, Value: 0.001, Roles: []cpucost.Role{{Role: "workload", Part: 1}}},
			{Workload: "w", Stratum: "workload=w", Treatment: "sandbox=vm,vcpus=2", Cell: vm,
				Response: record.Response{Name: "rate", Unit: record.PerSecond}, Unit: "request", Ends: []string{"server"}, Source: cpucost.FromRoles,
				Trials: 3, Cores: 2, Rate: 500, Value: 0.004, Roles: []cpucost.Role{{Role: "vcpu", Part: 0.75}, {Role: "vhost", Part: 0.25}},
				Estimate: stat.Estimate{Ratio: 4, Base: 0.001, N: 2}, Verdict: stat.Undecided}}}
	read := func(f func(*bytes.Buffer) error) [][]string {
		t.Helper()
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	want := [][]string{
		{"table", "response", "unit", "better", "factor:sandbox", "factor:vcpus", "baseline", "mean", "column_factor", "column", "combinations", "fewer", "value", "base", "ratio", "lo", "hi", "n", "verdict", "why", "accelerator", "modelled"},
		{"t", "throughput", "B/s", "higher", "process", "", "true", "false", "cpu-limit", "none", "2", "false", "100", "", "", "", "", "6", "", "", "", "true"},
		{"t", "throughput", "B/s", "higher", "vm", "2", "false", "false", "cpu-limit", "none", "1", "true", "50", "100", "0.5", "0.4", "0.6", "3", "slower", "below", "tcg", "true"},
		{"t", "throughput", "B/s", "higher", "vm", "", "false", "true", "cpu-limit", "none", "0", "false", "", "", "", "", "", "0", "", "it failed", "tcg", "true"},
	}
	if d := cmp.Diff(want, read(func(b *bytes.Buffer) error { return TablesCSV(b, res) })); d != "" {
		t.Errorf("tables:\n%s", d)
	}
	want = [][]string{
		{"workload", "stratum", "treatment", "baseline", "response", "unit", "work", "ends", "source", "trials", "cores", "rate", "cpu_per_work", "base", "ratio", "lo", "hi", "n", "verdict", "missing", "accelerator", "modelled", "role:vcpu", "role:vhost", "role:workload"},
		{"w", "workload=w", "sandbox=process", "true", "rate", "1/s", "request", "server", "roles", "3", "1", "1000", "0.001", "", "", "", "", "0", "", "", "", "true", "", "", "1"},
		{"w", "workload=w", "sandbox=vm,vcpus=2", "false", "rate", "1/s", "request", "server", "roles", "3", "2", "500", "0.004", "0.001", "4", "", "", "2", "undecided", "", "tcg", "true", "0.75", "0.25", ""},
	}
	if d := cmp.Diff(want, read(func(b *bytes.Buffer) error { return CPUCSV(b, res) })); d != "" {
		t.Errorf("CPU:\n%s", d)
	}
}
