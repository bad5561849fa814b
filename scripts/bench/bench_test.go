package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/record"
)

func TestCompare(t *testing.T) {
	var pairs []pair
	for _, d := range []float64{3, 1, 2, 6, 5, 4} {
		pairs = append(pairs, pair{10 + d, 10})
	}
	if c := compare(pairs, difference); c != (compared{3.5, 1, 6}) {
		t.Errorf("%+v", c)
	}
	if c := compare(pairs[:5], difference); c != (compared{3, 0, 0}) {
		t.Errorf("five pairs have no interval: %+v", c)
	}
	if c := compare([]pair{{1, 2}}, quotient); c.Mid != 0.5 {
		t.Errorf("%+v", c)
	}
	if !math.IsNaN(median(nil)) {
		t.Error("a median of nothing")
	}
}

func TestTargets(t *testing.T) {
	if got := (row{Tare: 2}).below(3).Within; got != "met" {
		t.Error(got)
	}
	if got := (row{Tare: 3}).below(3).Within; got != "missed" {
		t.Error(got)
	}
	for want, c := range map[string][3]float64{
		"met":       {-0.5, 0.9, 24},
		"undecided": {-0.5, 1.1, 24},
		"missed":    {-3, -1.5, 24},
	} {
		r := row{How: "difference", Low: c[0], High: c[1], Rounds: int(c[2])}
		if got := r.below(1).Within; got != want {
			t.Errorf("%v is %s, want %s", c, got, want)
		}
	}
	for want, r := range map[string]row{
		"met": {Low: 0.995, High: 1.01, Rounds: 6}, "missed": {Low: 1.02, High: 1.2, Rounds: 6}, "undecided": {Low: 0.98, High: 1.2, Rounds: 6},
	} {
		if got := r.equal(0.01).Within; got != want {
			t.Errorf("%+v is %s, want %s", r, got, want)
		}
	}
	if got := (row{}).equal(0.01).Within; got != "undecided" {
		t.Errorf("no rounds: %s", got)
	}
	if got := (row{How: "difference", Rounds: 2}).below(1).Within; got != "undecided" {
		t.Errorf("two rounds: %s", got)
	}
}

func TestShow(t *testing.T) {
	for want, c := range map[string]row{
		"1.00 s":           {Tare: 1, Unit: "s"},
		"29.1 ms":          {Tare: 0.0291, Unit: "s"},
		"-0.400 us":        {Tare: -4e-7, Unit: "s"},
		"96.5 MB":          {Tare: 96.5e6, Unit: "B"},
		"9.66 Gb/s":        {Tare: 9.66e9 / 8, Unit: "B/s"},
		"1.26 % of a core": {Tare: 0.0126, Unit: "cores"},
		"123 1/s":          {Tare: 123.4, Unit: "1/s"},
	} {
		if got := show(c.Tare, c.Unit); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestOutput: the table has what the JSON has, and notes stand below it.
func TestOutput(t *testing.T) {
	rows := []row{
		row{Group: "startup", Figure: "startup", Unit: "s", Note: "a note"}.
			beside("difference", "hyperfine", []pair{{2, 1}, {2, 1}, {2, 1}, {2, 1}, {2, 1}, {2, 1}}).below(1e-3),
		{Group: "net", Figure: "stream", Note: "not measured: no iperf3"},
	}
	var b bytes.Buffer
	if err := writeMarkdown(&b, []string{"Measured here."}, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| startup | 2.00 s | hyperfine: 1.00 s | difference +1.00 s (+1.00 s to +1.00 s), 6 rounds | within 1.00 ms | missed |",
		"- startup: a note\n- stream: not measured: no iperf3\n", "Measured here.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	b.Reset()
	if err := writeJSON(&b, nil, rows); err != nil {
		t.Fatal(err)
	}
	var back struct{ Figures []row }
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || len(back.Figures) != 2 || back.Figures[0] != rows[0] {
		t.Errorf("%v %+v", err, back)
	}
}

// The texts are captured from the tools' versions in Debian 12, shortened.
func TestParsers(t *testing.T) {
	near := func(what string, got, want float64, err error) {
		t.Helper()
		if err != nil || math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	v := parseGoBench("cpu: Intel\nBenchmarkPlan100k-2   \t       7\t 161591070 ns/op\nBenchmarkPlan100kMore-2 1 5 ns/op\nPASS\n", "BenchmarkPlan100k", "ns/op")
	if len(v) != 1 || v[0] != 161591070 {
		t.Error(v)
	}
	x, err := parseQperf([]byte("tcp_lat:\n    latency  =  8.30123 us\n"), "latency", map[string]float64{"us": 1e-6})
	near("qperf", x, 8.30123e-6, err)
	x, err = parseIperf3([]byte(`{"end":{"sum_sent":{"bits_per_second":9},"sum_received":{"start":0,"bits_per_second":16000,"sender":true}}}`))
	near("iperf3", x, 2000, err)
	x, err = parseHyperfine([]byte(`{"results":[{"command":"runc","mean":2,"times":[0.025,0.021,0.022]}]}`))
	near("hyperfine", x, 0.022, err)
	near("VmHWM", float64(sizeOf(strings.NewReader("Name:\ttare\nVmPeak:\t 1 kB\nVmHWM:\t   48412 kB\n"), "VmHWM:")), 48412*1024, nil)
	r, err := parseNet([]byte(`{"tare_net":1,"end":"client","window_s":2,"bytes":8,"operations":4,"peer":{"window_s":2,"bytes":6}}`))
	near("net", r.Peer.Bytes/r.Peer.Window, 3, err)

	for name, f := range map[string]func() error{
		"qperf": func() error {
			_, err := parseQperf([]byte("latency = 0 us"), "latency", map[string]float64{"us": 1e-6})
			return err
		},
		"iperf3":    func() error { _, err := parseIperf3([]byte(`{"error":"unable to connect"}`)); return err },
		"hyperfine": func() error { _, err := parseHyperfine([]byte(`{"results":[]}`)); return err },
		"net":       func() error { _, err := parseNet([]byte(`{"window_s":2}`)); return err },
	} {
		if f() == nil {
			t.Errorf("%s: nothing measured is no error", name)
		}
	}
}

func TestChangeConfig(t *testing.T) {
	got, err := changeConfig([]byte(`{"process":{"args":["/tare"],"cwd":"/"},"linux":{"cgroupsPath":"/a"},"x":1}`), []string{"/bin/true"}, "/b")
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(got, &c); err != nil {
		t.Fatal(err)
	}
	p := c["process"].(map[string]any)
	if p["args"].([]any)[0] != "/bin/true" || p["cwd"] != "/" || c["linux"].(map[string]any)["cgroupsPath"] != "/b" || c["x"] != 1.0 {
		t.Errorf("%s", got)
	}
	if _, err := changeConfig([]byte(`{}`), nil, ""); err == nil {
		t.Error("an empty config is fine")
	}
}

func TestChoose(t *testing.T) {
	if got, err := choose("net, plan"); err != nil || len(got) != 2 || got[0].name != "net" {
		t.Error(got, err)
	}
	if _, err := choose("speed"); err == nil || !strings.Contains(err.Error(), "startup") {
		t.Errorf("%v does not say what there is", err)
	}
}

func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		rounds    int
		want      string
	}{{1.01, 1.2, 6, "met"}, {1, 1.2, 6, "met"}, {0.8, 0.99, 6, "missed"}, {0.9, 1.1, 6, "undecided"}, {1.1, 1.2, 2, "undecided"}} {
		if got := (row{Low: c.low, High: c.high, Rounds: c.rounds}).atLeast(1).Within; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestDuring: only what was used within the run phase counts.
func TestDuring(t *testing.T) {
	start := time.Unix(1000, 0)
	trial := &record.Trial{Start: start, Phases: []record.Phase{{Name: "start", Duration: 2 * time.Second}, {Name: "run", Offset: 2 * time.Second, Duration: 4 * time.Second}}}
	var moments []moment
	var cpu time.Duration
	for at := time.Duration(0); at < 8*time.Second; at += 50 * time.Millisecond {
		share := 0.5 // before and after
		if at > 2*time.Second && at <= 6*time.Second {
			share = 0.02
		}
		cpu += time.Duration(share * float64(50*time.Millisecond))
		moments = append(moments, moment{start.Add(at), cpu})
	}
	if got, err := during(moments, trial); err != nil || math.Abs(got-0.02) > 1e-9 {
		t.Errorf("%v, %v, want 0.02", got, err)
	}
	if _, err := during(moments[:50], trial); err == nil {
		t.Error("a run phase that was not seen has a share")
	}
	before, err := processCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 20*time.Millisecond; {
	}
	if after, err := processCPU(os.Getpid()); err != nil || after <= before {
		t.Errorf("the CPU clock went from %v to %v, %v", before, after, err)
	}
}

// TestTruthLines: what the test of package model prints.
func TestTruthLines(t *testing.T) {
	out := "    truth_test.go:48: 1000 configurations from TARE_SEED=42 on\n    truth_test.go:222: 1000 configurations, 96.3 % right, 0.9 % wrong\n" +
		"        planted         quota helper\n        quota            90      1\n        confidence, named, right: 0.9: 3 3;\n--- PASS\n"
	got, err := parseTruth(out)
	if err != nil || got.n != 1000 || got.right != 96.3 || got.wrong != 0.9 || got.seed != "42" || !strings.Contains(got.grid, "quota            90") {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := parseTruth("FAIL"); err == nil {
		t.Error("nothing is something")
	}
}

// TestConfigOf: the cells of the published experiment in the model.
func TestConfigOf(t *testing.T) {
	cell := record.Cell{{Factor: "workload", Value: "bandwidth"}, {Factor: "sandbox", Value: "vm"}, {Factor: "default_vcpus", Value: "2"},
		{Factor: "connections", Value: "16"}, {Factor: "size", Value: "4KiB"}, {Factor: "cpu-limit", Value: "1"}}
	c, err := configOf(cell, 0)
	if err != nil || c.Load.Connections != 16 || c.Load.Size != 4096 || c.Guest.Boot != 2 || c.Guest.Hotplugged != 1 || c.Quota.Cores != 1.25 || c.Check() != nil {
		t.Errorf("%+v %v", c, err)
	}
	cell[1].Value = "process"
	if c, err := configOf(cell, 0); err != nil || c.Quota.Cores != 1 || c.Isolation != "native" {
		t.Errorf("%+v %v", c, err)
	}
	cell[3].Value = "many"
	if _, err := configOf(cell, 0); err == nil {
		t.Error("many connections")
	}
}

func TestSharpness(t *testing.T) {
	var s sharpness
	err := s.add([]byte(`{"comparisons": [{"baseline": true, "verdict": ""},
		{"verdict": "slower", "estimate": {"ratio": 0.5, "lo": 0.45, "hi": 0.55}},
		{"verdict": "undecided", "estimate": {"ratio": 1, "lo": 0.6, "hi": 1.6}},
		{"verdict": "undecided"}]}`))
	if err != nil || s.rows != 3 || s.decided != 1 || s.wide != 2 || len(s.widths) != 2 || math.Abs(s.widths[0]-0.1) > 1e-9 {
		t.Errorf("%+v, %v", s, err)
	}
	if s.add([]byte("{")) == nil {
		t.Error("half a report is taken for one")
	}
}

// TestMiddle: figures of several rounds are medians, not sums.
func TestMiddle(t *testing.T) {
	m := middle([]sharpness{{rows: 44, decided: 40, wide: 1, widths: []float64{0.1, 0.2, 0.3}}, {rows: 44, decided: 30, wide: 3, widths: []float64{0.4}}, {rows: 44, decided: 42, widths: []float64{0.1}}})
	if m.rows != 44 || m.decided != 40 || m.wide != 1 || m.width != 0.2 {
		t.Errorf("%+v", m)
	}
}

// TestCreated: the output of each load generator gives its rate, in whatever pieces it arrives.
func TestCreated(t *testing.T) {
	ours := (&bench{}).ours()
	var got []float64
	l := &lines{see: func(line string) { got = append(got, ours.rate(line, 20)) }}
	for _, text := range []string{`{"step":{"made":`, `20,"create_s":2}}` + "\nnoise\n", `{"step":{"made":19,"create_s":2}}` + "\n", "rest"} {
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Error(n, err)
		}
	}
	if want := []float64{10, 0, 0}; !slices.Equal(got, want) || l.rest != "rest" {
		t.Errorf("%v and %q, want %v", got, l.rest, want)
	}
}
