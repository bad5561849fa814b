package text

import (
	"bytes"
	"fmt"
	"testing"

	"tare/analyse"
	"tare/record"
)

// testLoads is a study of loads in one sandbox: pods on a node, objects without pods, a pipeline, and claims.
func testLoads() *analyse.Result {
	units := map[string]record.Unit{"objects": record.Count, "pods": record.Count, "server_rejected": record.Count, "rate": record.PerSecond, "removal_rate": record.PerSecond, "server_cpu": record.Cores, "server_memory": record.Byte,
		"node_memory": record.Byte, "node_page_cache": record.Byte, "node_disk_used": record.Byte, "node_disk_written": record.Byte, "node_disk_read": record.Byte}
	common := []string{"rate", "api_latency_p99", "server_cpu", "server_memory", "store_mean", "server_queued", "server_rejected"}
	r := &analyse.Result{Study: "loads", Compare: "sandbox", Baseline: "process", Trials: 12, Finished: true, Reason: "all 3 blocks that were asked for", Confidence: 0.95, Margin: 0.03,
		Treatments: []analyse.Treatment{{Key: "sandbox=process", Cell: record.Cell{{Factor: "sandbox", Value: "process"}}, Baseline: true}}}
	for _, l := range []struct {
		workload string
		figures  []string
	}{
		{"pods-of-one-image", []string{"objects", "pods", "pod_start_p50", "pod_start_p99", "node_memory", "node_page_cache", "node_disk_used", "node_disk_written", "node_disk_read"}},
		{"configmaps", []string{"objects"}},
		{"pipeline", []string{"objects", "waited_p50", "built_p50", "pushed_p50", "pulled_p50", "pod_start_p50", "pod_start_p99"}},
		{"volumes", []string{"objects", "bound_p50", "bound_p95", "bound_p99", "attached_p50", "attached_p95", "attached_p99", "mounted_p50", "mounted_p95", "mounted_p99", "written_p50", "written_p95", "written_p99",
			"removal_rate", "claim_gone_p50", "claim_gone_p95", "claim_gone_p99", "detached_p50", "detached_p95", "detached_p99", "volume_gone_p50", "volume_gone_p95", "volume_gone_p99"}},
		{"refused", nil},
	} {
		cell := record.Cell{{Factor: "workload", Value: l.workload}, {Factor: "sandbox", Value: "process"}}
		c := analyse.Comparison{Workload: l.workload, Stratum: cell[:1].Key(), Shared: cell[:1], Treatment: "sandbox=process", Cell: cell, Baseline: true, First: true,
			Response: record.Response{Name: "api_latency_p99", Unit: record.Second}, Level: analyse.Level{N: 3, Typical: 0.0123, Median: 0.0123}}
		if l.figures == nil {
			c.Level, c.Skipped = analyse.Level{}, "no right to create them"
		}
		r.Compared = append(r.Compared, c)
		for step := 1; step <= 3 && l.figures != nil; step++ {
			s := analyse.LoadStep{Cell: cell, Step: step, Trials: 3, Bounds: []analyse.LoadBound{{By: "scheduler", Trials: 2}, {By: "provisioner", Trials: 1}}, Verdict: "it took 2 s"}
			for i, name := range append(l.figures, common...) {
				v := analyse.LoadValue{Name: name, Unit: units[name], Median: 0.123 * float64(i+step)}
				switch v.Unit {
				case "":
					v.Unit = record.Second
				case record.Count:
					v.Median = float64(1000 * step)
				case record.Byte:
					v.Median *= 1 << 30
				}
				s.Values = append(s.Values, v)
			}
			if _, claims := s.Value("bound_p50"); claims {
				s.Removals = []analyse.LoadBound{{By: "nodes", Trials: 3}}
			}
			s.Calls = []analyse.LoadCall{{Verb: "create", Resource: "persistentvolumeclaims", P50: 0.1, P99: 0.2 * float64(step)}}
			r.LoadSteps = append(r.LoadSteps, s)
		}
	}
	return r
}

// TestLoadsGolden: the answer of a study of loads is what each came to and what bound it, and each of its tables is one at 80 columns.
func TestLoadsGolden(t *testing.T) {
	for name, print := range map[string]func(*bytes.Buffer, Options) error{
		"loads-short": func(b *bytes.Buffer, o Options) error { return WriteShort(b, testLoads(), nil, o) },
		"loads-full":  func(b *bytes.Buffer, o Options) error { return Write(b, testLoads(), nil, o) },
	} {
		for _, width := range []int{60, 80} {
			var b bytes.Buffer
			if err := print(&b, Options{Width: width, Dir: "results/loads"}); err != nil {
				t.Fatal(err)
			}
			golden(t, fmt.Sprintf("%s-%d", name, width), b.Bytes())
			fits(t, b.String(), width)
		}
	}
}
