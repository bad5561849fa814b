package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
)

func testResult() *analyse.Result {
	latency := record.Response{Name: "latency", Unit: record.Second, Better: record.Lower}
	cell := func(s string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "net"}, {Factor: "sandbox", Value: s}}
	}
	p, q := 0.001, 0.002
	return &analyse.Result{Study: "first", Compare: "sandbox", Baseline: "process", Compared: []analyse.Comparison{
		{Workload: "net", Stratum: "workload=net", Treatment: "sandbox=process", Cell: cell("process"), Baseline: true, Response: latency,
			Level: analyse.Level{N: 4, Typical: 1e-5, Min: 9e-6, Max: 1.1e-5}, Ending: &plan.Ending{Text: "done", Blocks: 4}},
		{Workload: "net", Stratum: "workload=net", Treatment: "sandbox=runc", Cell: cell("runc"), Response: latency, Verdict: stat.Slower, Why: `above, by "much"`,
			Level: analyse.Level{N: 4, Typical: 2e-5, Min: 2e-5, Max: 2e-5}, Estimate: stat.Estimate{Ratio: 2, Lo: 1.9, Hi: 2.1, N: 4, Base: 1e-5, Shrunk: 1.95}, P: &p, Q: &q},
		{Workload: "net", Stratum: "workload=net", Treatment: "sandbox=crun", Cell: cell("crun"), Response: latency, Verdict: stat.Undecided, Skipped: "no crun"},
	}}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, testResult(), []record.Host{{Hostname: "h1"}}); err != nil {
		t.Fatal(err)
	}
	var doc Document
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != Schema || doc.Hosts[0].Hostname != "h1" {
		t.Errorf("schema %d, hosts %v", doc.Schema, doc.Hosts)
	}
	if d := cmp.Diff(testResult(), doc.Result); d != "" {
		t.Errorf("what is read is not what was written:\n%s", d)
	}
	var fields map[string]any
	if err := json.Unmarshal(b.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"schema", "hosts", "study", "comparisons"} {
		if _, ok := fields[f]; !ok {
			t.Errorf("no field %q at the top", f)
		}
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	res := testResult()
	res.Compared[0].Level.AtLeast, res.Compared[1].Base.AtLeast = true, true
	if err := CSV(&b, res); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"workload", "stratum", "treatment", "baseline", "response", "unit", "better", "n", "value", "min", "max", "base", "ratio", "lo", "hi", "verdict", "why", "blocks", "stopped", "failed", "skipped", "gave_up", "p", "q", "accelerator", "modelled", "shrunk", "at_least", "base_at_least"},
		{"net", "workload=net", "sandbox=process", "true", "latency", "s", "lower", "4", "1e-05", "9e-06", "1.1e-05", "", "", "", "", "", "", "4", "done", "0", "", "", "", "", "", "false", "", "true", "false"},
		{"net", "workload=net", "sandbox=runc", "false", "latency", "s", "lower", "4", "2e-05", "2e-05", "2e-05", "1e-05", "2", "1.9", "2.1", "slower", `above, by "much"`, "", "", "0", "", "", "0.001", "0.002", "", "false", "1.95", "false", "true"},
		{"net", "workload=net", "sandbox=crun", "false", "latency", "s", "lower", "0", "", "", "", "", "", "", "", "undecided", "", "", "", "0", "no crun", "", "", "", "", "false", "", "false", "false"},
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
}

func TestTrialsCSV(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 5, time.UTC)
	trials := []record.Trial{
		{Seq: 1, Block: 1, Attempt: 1, Node: "n1", Status: record.OK, Start: at, Duration: 1500 * time.Millisecond,
			Cell:    record.Cell{{Factor: "workload", Value: "net"}, {Factor: "sandbox", Value: "vm"}, {Factor: "vcpus", Value: "2"}},
			Samples: []record.Sample{{Name: "latency", Unit: record.Second, Value: 1e-5}, {Name: "x", Labels: "cpu=1", Unit: record.Count, Value: math.NaN()}}},
		{Seq: 2, Block: 1, Attempt: 1, Status: record.Failed, Start: at, Cell: record.Cell{{Factor: "workload", Value: "net"}, {Factor: "sandbox", Value: "runc"}},
			Failure: &record.Failure{Reason: "it died"}, Facts: map[string]string{"server.accelerator": "tcg", "client.accelerator": "tcg", "server.where": "vm"}},
	}
	var b bytes.Buffer
	if err := TrialsCSV(&b, sequence(trials)); err != nil {
		t.Fatal(err)
	}
	const want = `seq,block,attempt,status,start,seconds,factor:workload,factor:sandbox,factor:vcpus,response,labels,unit,value,failure,accelerator,node
1,1,1,ok,2026-11-20T10:00:00.000000005Z,1.5,net,vm,2,latency,,s,1e-05,,,n1
1,1,1,ok,2026-11-20T10:00:00.000000005Z,1.5,net,vm,2,x,cpu=1,count,,,,n1
2,1,1,failed,2026-11-20T10:00:00.000000005Z,0,net,runc,,,,,,it died,tcg,
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	for name, err := range map[string]error{
		"JSON":      JSON(full{}, testResult(), nil),
		"CSV":       CSV(full{}, testResult()),
		"TrialsCSV": TrialsCSV(full{}, sequence(nil)),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
