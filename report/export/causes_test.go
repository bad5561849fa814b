package export

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/record"
)

func TestCausesCSV(t *testing.T) {
	shared := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "size", Value: "1"}}
	cell := func(box string, more ...record.Level) record.Cell {
		return append(append(shared[:2:2], record.Level{Factor: "sandbox", Value: box}), more...)
	}
	rate := record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher}
	half := 0.5
	res := &analyse.Result{Modelled: true, Causes: []cause.Finding{
		{CellKey: record.CellKey{Workload: "w", Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=process", Cell: cell("process"), Baseline: true}, Response: rate, Cause: cause.None, Confidence: 0.9, Trials: 3, Text: "idle"},
		{CellKey: record.CellKey{Workload: "w", Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=vm,vcpus=2", Cell: cell("vm", record.Level{Factor: "vcpus", Value: "2"})}, Response: rate, Ratio: &half, Costs: true,
			Endpoint: "server", Cause: cause.Helper, Role: "vhost", Confidence: 0.97, Trials: 3, Text: `full, by "much"`,
			Readings: []cause.Reading{{About: cause.Helper, Says: cause.Supports}, {About: cause.Quota, Says: cause.Excludes}, {About: cause.Quota, Says: cause.Excludes}, {About: cause.Guest, Says: cause.Excludes}, {About: cause.Link, Says: cause.Silent}},
			Added:    &cause.Fit{Unit: "s", Constant: 3e-5, Lo: 2e-5, Hi: 4e-5}, Factor: &cause.Fit{Unit: "ratio", Constant: 2, Lo: 1, Hi: 3}, Price: &cause.Price{Unit: "GB", Cores: 4.5, Base: 1.8, Ratio: 2.5}},
		{CellKey: record.CellKey{Workload: "w", Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=runc", Cell: cell("runc")}, Response: rate, Undecided: true, Cause: cause.Untold, Among: []cause.Name{cause.Quota, cause.Guest}, Trials: 2, Text: "both"},
		{CellKey: record.CellKey{Workload: "w", Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=runsc", Cell: cell("runsc")}, Response: rate, Undecided: true, Cause: cause.Unknown, Missing: "write collectors: [proc]", Text: "not read"},
	}}
	var b bytes.Buffer
	if err := CausesCSV(&b, res); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"workload", "stratum", "treatment", "baseline", "factor:workload", "factor:size", "factor:sandbox", "factor:vcpus", "response", "ratio", "costs", "undecided", "end", "cause", "role", "among", "confidence", "trials", "text", "missing",
			"supports", "excludes", "added", "added_lo", "added_hi", "added_unit", "times", "times_lo", "times_hi", "price", "price_lo", "price_hi", "price_unit", "cores", "base_cores", "accelerator", "modelled"},
		{"w", "workload=w,size=1", "sandbox=process", "true", "w", "1", "process", "", "rate", "", "false", "false", "", "none", "", "", "0.9", "3", "idle", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "true"},
		{"w", "workload=w,size=1", "sandbox=vm,vcpus=2", "false", "w", "1", "vm", "2", "rate", "0.5", "true", "false", "server", "helper", "vhost", "", "0.97", "3", `full, by "much"`, "",
			"helper", "quota guest", "3e-05", "2e-05", "4e-05", "s", "2", "1", "3", "2.5", "", "", "GB", "4.5", "1.8", "", "true"},
		{"w", "workload=w,size=1", "sandbox=runc", "false", "w", "1", "runc", "", "rate", "", "false", "true", "", "untold", "", "quota guest", "", "2", "both", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "true"},
		{"w", "workload=w,size=1", "sandbox=runsc", "false", "w", "1", "runsc", "", "rate", "", "false", "true", "", "unknown", "", "", "", "0", "not read", "write collectors: [proc]", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "true"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestOpenMetricsModelled: each figure of a model says so.
func TestOpenMetricsModelled(t *testing.T) {
	res := testResult()
	write := func() []byte {
		t.Helper()
		var b bytes.Buffer
		if err := OpenMetrics(&b, res); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if measured := write(); bytes.Contains(measured, []byte("modelled")) {
		t.Errorf("measured: %s", measured)
	}
	res.Modelled = true
	out := write()
	if n, all := bytes.Count(out, []byte(`modelled="true"`)), bytes.Count(out, []byte("{study=")); n != all || n == 0 {
		t.Errorf("%d of %d lines: %s", n, all, out)
	}
}
