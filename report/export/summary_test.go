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
			{CellKey: record.CellKey{Workload: "w", Stratum: "workload=w", Treatment: "sandbox=process", Cell: record.Cell{{Factor: "sandbox", Value: "process"}}, Baseline: true},
				Response: record.Response{Name: "rate", Unit: record.PerSecond}, Unit: "request", Endpoints: []string{"server"}, Source: cpucost.FromRoles,
				Trials: 3, Cores: 1, Rate: 1000, Value: 0.001, Roles: []cpucost.Role{{Role: "workload", Part: 1}}},
			{CellKey: record.CellKey{Workload: "w", Stratum: "workload=w", Treatment: "sandbox=vm,vcpus=2", Cell: vm},
				Response: record.Response{Name: "rate", Unit: record.PerSecond}, Unit: "request", Endpoints: []string{"server"}, Source: cpucost.FromRoles,
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

// TestCSVForgesNoLine: each record is one line, whatever its fields hold.
func TestCSVForgesNoLine(t *testing.T) {
	var b bytes.Buffer
	if err := writeAll(&b, [][]string{{"a", "x\n1,forged"}, {"b\r\n2,forged", "c\rd"}}); err != nil {
		t.Fatal(err)
	}
	if want := "a,\"x\\n1,forged\"\n\"b\\r\\n2,forged\",c\\rd\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestCPUCSVOfQuotas: each end with a quota has its columns, in the row of its own treatment
// and workload; an end without one has them empty.
func TestCPUCSVOfQuotas(t *testing.T) {
	cost := func(workload, treatment string) cpucost.Cost {
		return cpucost.Cost{CellKey: record.CellKey{Workload: workload, Stratum: "workload=" + workload, Treatment: treatment}}
	}
	quota := func(workload, treatment, end string, throttled float64) cpucost.Quota {
		return cpucost.Quota{CellKey: record.CellKey{Workload: workload, Stratum: "workload=" + workload, Treatment: treatment}, Endpoint: end, Quota: 1.25, Cores: 1.2, Throttled: throttled, Time: 0.5}
	}
	res := &analyse.Result{
		CPUCosts: []cpucost.Cost{cost("v", "vm"), cost("w", "process"), cost("w", "vm")},
		Quotas:   []cpucost.Quota{quota("w", "vm", "server", 0.75), quota("w", "vm", "client", 0.25), quota("w", "process", "server", 0)},
	}
	var b bytes.Buffer
	if err := CPUCSV(&b, res); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	first := len(rows[0]) - 8
	var got [][]string
	for _, r := range rows {
		got = append(got, r[first:])
	}
	want := [][]string{
		{"quota:client", "used:client", "throttled:client", "held_back:client", "quota:server", "used:server", "throttled:server", "held_back:server"},
		{"", "", "", "", "", "", "", ""},
		{"", "", "", "", "1.25", "1.2", "0", "0.5"},
		{"1.25", "1.2", "0.25", "0.5", "1.25", "1.2", "0.75", "0.5"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
