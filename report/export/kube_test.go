package export

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

func testOrigin() Origin {
	return Origin{Study: "first", Source: []byte("study: first\n"), Started: time.Date(2026, 11, 20, 9, 59, 0, 0, time.UTC)}
}

// TestOpenSearch: pairs of lines, ids that are the same each time and differ within one export and between results.
func TestOpenSearch(t *testing.T) {
	write := func(o Origin) []map[string]any {
		t.Helper()
		var b bytes.Buffer
		if err := OpenSearch(&b, "tare", o, sequence(testTrials())); err != nil {
			t.Fatal(err)
		}
		var out []map[string]any
		for line := range strings.Lines(b.String()) {
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			out = append(out, v)
		}
		return out
	}
	got := write(testOrigin())
	if len(got) != 6 { // two figures, one failure
		t.Fatalf("%d lines", len(got))
	}
	ids := map[any]bool{}
	for i := 0; i < len(got); i += 2 {
		a := got[i]["index"].(map[string]any)
		if a["_index"] != "tare" {
			t.Errorf("%v", a)
		}
		ids[a["_id"]] = true
	}
	if len(ids) != 3 {
		t.Errorf("ids %v", ids)
	}
	want := map[string]any{"@timestamp": "2026-11-20T10:00:00.000000005Z", "run": got[1]["run"], "study": "first", "seq": 1.0, "block": 1.0, "attempt": 1.0, "status": "ok", "seconds": 1.5,
		"cell": map[string]any{"workload": "net", "sandbox": "vm", "vcpus": "2"}, "response": "latency", "unit": "s", "kind": "value", "value": 1e-5}
	if d := cmp.Diff(want, got[1]); d != "" {
		t.Error(d)
	}
	if _, has := got[3]["value"]; has || got[5]["failure"] == nil || got[5]["response"] != nil {
		t.Errorf("a value that is no number, and a failure: %v, %v", got[3], got[5])
	}
	if d := cmp.Diff(got, write(testOrigin())); d != "" {
		t.Error("a second export differs: " + d)
	}
	other := testOrigin()
	other.Started = other.Started.Add(time.Second)
	if write(other)[0]["index"].(map[string]any)["_id"] == got[0]["index"].(map[string]any)["_id"] {
		t.Error("other results have the same ids")
	}
}

func TestCheckIndex(t *testing.T) {
	for name, good := range map[string]bool{"tare": true, "tare-2026.11": true, "": false, "..": false, "_x": false, "Tare": false, "a b": false, "a*": false, "a\x1b": false, strings.Repeat("a", 256): false} {
		if err := CheckIndex(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestVEP411: the document has the proposal's fields, its provenance, a record for each trial, and the ratios beside.
func TestVEP411(t *testing.T) {
	var b bytes.Buffer
	p := Provenance{Origin: testOrigin(), Version: "1.2", Seed: 7, Nodes: []record.Node{{Name: "n1", Host: record.Host{Kernel: "6.1", Threads: 4, Tools: map[string]string{"kubelet": "v1.34.4"}}}}}
	if err := VEP411(&b, p, testResult(), sequence(testTrials())); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema   string            `json:"schema_version"`
		Tool     map[string]string `json:"tool"`
		Scenario map[string]string `json:"scenario"`
		Time     time.Time         `json:"timestamp"`
		Cluster  struct {
			Kubernetes string           `json:"kubernetes_version"`
			Count      int              `json:"node_count"`
			Nodes      []map[string]any `json:"nodes"`
		} `json:"cluster"`
		Workload, Parameters map[string]any
		Records              []map[string]any
		Aggregate            struct {
			Good        int `json:"operation_success_count"`
			Failed      int `json:"operation_failure_count"`
			Comparisons []map[string]any
		}
		Cleanup map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if got.Schema != "1.0.0" || got.Tool["version"] != "1.2" || got.Scenario["name"] != "tare/first" || !got.Time.Equal(p.Started) ||
		got.Cluster.Kubernetes != "v1.34.4" || got.Cluster.Count != 1 || got.Cluster.Nodes[0]["cpus"] != 4.0 || got.Workload["storage_class"] != "unknown" || got.Cleanup["status"] != "Success" {
		t.Errorf("%+v", got)
	}
	if len(got.Records) != 2 || got.Records[0]["status"] != "Success" || got.Records[0]["latency_seconds"] != 1e-5 || got.Records[1]["status"] != "Failed" || got.Records[1]["error"] != "it <died>" {
		t.Errorf("records %v", got.Records)
	}
	if a := got.Aggregate; a.Good != 1 || a.Failed != 1 || len(a.Comparisons) != 3 || a.Comparisons[1]["ratio"] != 2.0 || a.Comparisons[1]["metric"] != "latency_seconds" {
		t.Errorf("aggregate %v", a)
	}
	res := testResult()
	res.Left.AtLeast = 2
	b.Reset()
	if err := VEP411(&b, p, res, sequence(testTrials())); err != nil || !strings.Contains(b.String(), `"status":"unknown"`) {
		t.Errorf("with trials left: %v, %s", err, b.String())
	}
	for version, want := range map[string]string{"1.2": "unknown", "unknown": "unknown", "(devel)": "unknown", "533e6d5c-dirty": "533e6d5c", "v1.2-5-g533e6d5c": "533e6d5c", "v0.0.0-20261128234856-533e6d5c0a1b+dirty": "533e6d5c0a1b"} {
		if got := commit(version); got != want {
			t.Errorf("%s: commit %s, want %s", version, got, want)
		}
	}
	if got := metricName("fio", "throughput", record.BytesPerSecond); got != "guest_io_throughput_bytes_per_second" {
		t.Error(got)
	}
}
