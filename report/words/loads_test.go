package words

import (
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/record"
)

// load is a step of a load in a sandbox, with figures in seconds.
func load(workload string, step, trials int, by string, figures map[string]float64) analyse.LoadStep {
	s := analyse.LoadStep{Cell: record.Cell{{Factor: "workload", Value: workload}, {Factor: "sandbox", Value: "process"}}, Step: step, Trials: trials, Bounds: []analyse.LoadBound{{By: by, Trials: trials}}}
	units := map[string]record.Unit{"pods": record.Count, "objects": record.Count, "rate": record.PerSecond, "server_cpu": record.Cores, "server_memory": record.Byte}
	for name, v := range figures {
		unit, ok := units[name]
		if !ok {
			unit = record.Second
		}
		s.Values = append(s.Values, analyse.LoadValue{Name: name, Unit: unit, Median: v})
	}
	return s
}

// TestLoads: the answer of a study of loads is what each came to at its last step, and what bound it.
func TestLoads(t *testing.T) {
	pods := load("pods", 2, 1, "nodes", map[string]float64{"pods": 24, "pod_start_p50": 2, "pod_start_p99": 3, "rate": 150, "api_latency_p99": 0.02, "server_cpu": 0.5, "server_memory": 400 << 20})
	claims := load("claims", 1, 3, "scheduler", map[string]float64{"objects": 8, "bound_p50": 1, "bound_p95": 2, "written_p50": 4, "written_p95": 5, "claim_gone_p50": 6, "claim_gone_p95": 7})
	claims.Bounds = []analyse.LoadBound{{By: "scheduler", Trials: 2}, {By: "nodes", Trials: 1}}
	claims.Removals = []analyse.LoadBound{{By: "nodes", Trials: 3}}
	r := result()
	r.LoadSteps = []analyse.LoadStep{load("pods", 1, 2, "nodes", nil), pods, claims}
	r.Compared = []analyse.Comparison{{Baseline: true, Treatment: "sandbox=process", Cell: pods.Cell, Level: analyse.Level{N: 1, Typical: 12 << 20}, Response: record.Response{Name: "memory_per_pod", Unit: record.Byte}}}
	var got []string
	for _, s := range Answer(r, Options{}) {
		got = append(got, s.About+"|"+s.Text)
	}
	want := `|What bound the last step of each load: nodes (pods) and scheduler (claims).
sandbox=process|pods: 24 pods in step 2, which 1 of 2 trials reached, bound by nodes; a pod's start p50 2.00 s, p99 3.00 s; each further pod: memory 12.0 MiB; rate 150 /s, API p99 20.0 ms; API server 0.500 cores, 400 MiB.
|claims: 8 claims, bound by scheduler 2/3, nodes 1/3; removal by nodes; p50 (p95) until bound 1.00 s (2.00 s), first byte 4.00 s (5.00 s), claim gone 6.00 s (7.00 s).`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("\n%s\nwant\n%s", s, want)
	}
	r.LoadSteps[0] = load("room", 1, 1, "room", map[string]float64{"pods": 0})
	if s := Loads(r)[0].Text; s != "room: no pod ran, bound by room." {
		t.Errorf("%q", s)
	}
	r.LoadSteps[0] = load("guests", 1, 1, "controller", map[string]float64{"pods": 8, "guest_start_p50": 2, "guest_start_p99": 3, "rate": 5})
	if s := Loads(r)[0].Text; s != "guests: 8 guests, bound by controller; a guest's start p50 2.00 s, p99 3.00 s; rate 5.00 /s." {
		t.Errorf("%q", s)
	}
	r.LoadSteps = r.LoadSteps[2:]
	if all := Answer(r, Options{}); len(all) != 1 || !strings.HasPrefix(all[0].Text, "claims: 8 claims") {
		t.Errorf("one load: %v", all)
	}
}

// TestServing: a load of a server says how much it came to natively, and what bound it.
func TestServing(t *testing.T) {
	r := result()
	for i, w := range []string{"plain", "tls", "fio"} {
		c := of(w, record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher}, float64(1000*(i+1)), "")
		c.Baseline, c.Kind = true, "ingress"
		if w == "fio" {
			c.Kind = "fio"
		}
		r.Compared = append(r.Compared, c)
	}
	r.Causes = []cause.Finding{{CellKey: record.CellKey{Stratum: r.Compared[0].Stratum, Baseline: true}, Cause: cause.Host}, {CellKey: record.CellKey{Stratum: r.Compared[1].Stratum}, Cause: cause.Link}}
	if got, want := Serving(r), "The load with process, bound by host CPU: plain rate 1.00 k/s; limit not known: tls rate 2.00 k/s."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
