package iperf

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/workloadtest"
)

// The captures were made by iperf3 3.12 (Debian 12) over the loopback interface of
// two busy cores.
func cases() []workloadtest.Case {
	const server = "testdata/server.txt"
	return []workloadtest.Case{
		{Name: "upload", Outputs: map[string]string{"client": "testdata/upload.json", "server": server}},
		{Name: "download", Params: param.Values{"direction": "download", "streams": "3", "duration": "1s"}, Outputs: map[string]string{"client": "testdata/download.json", "server": server}},
		{Name: "no warm-up", Params: param.Values{"streams": "2", "length": "4KiB", "duration": "1s", "warmup": "0s"}, Outputs: map[string]string{"client": "testdata/cold.json", "server": server}},
		{Name: "half a second", Params: param.Values{"duration": "1500ms"}, Refused: true},
		{Name: "part of a warm-up", Params: param.Values{"warmup": "100ms"}, Refused: true},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

func sample(r record.Reading, name, labels string) (float64, bool) {
	i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == name && string(s.Labels) == labels })
	if i < 0 {
		return 0, false
	}
	return r.Samples[i].Value, true
}

// made is a report of two streams of 3 and 1 MB in 2 s, with a change.
func made(t *testing.T, change func(map[string]any)) string {
	t.Helper()
	stream := func(bytes float64) map[string]any {
		end := map[string]any{"start": 0, "end": 2.0, "seconds": 2.0, "bytes": bytes}
		sender := map[string]any{"start": 0, "end": 2.0, "seconds": 2.0, "bytes": bytes + 7, "retransmits": bytes / 1e6}
		return map[string]any{"sender": sender, "receiver": end}
	}
	interval := func(end, seconds, bytes float64, omitted bool) map[string]any {
		return map[string]any{"sum": map[string]any{"end": end, "seconds": seconds, "bytes": bytes, "omitted": omitted}}
	}
	doc := map[string]any{
		"start": map[string]any{"version": "iperf 3.12", "test_start": map[string]any{
			"protocol": "TCP", "num_streams": 2, "blksize": 131072, "omit": 1, "duration": 2, "reverse": 0}},
		"intervals": []any{
			interval(0.5, 0.5, 9e5, true), interval(1.05, 0.55, 9e5, true),
			interval(0.5, 1.0, 1e6, false), interval(1, 0.5, 1e6, false), interval(2, 1, 2.1e6, false)},
		"end": map[string]any{
			"streams":                 []any{stream(3e6), stream(1e6)},
			"sum_received":            map[string]any{"start": 0, "end": 2.0, "seconds": 2.0, "bytes": 4e6},
			"cpu_utilization_percent": map[string]any{"host_user": 10.0, "host_system": 150.0, "remote_user": 1.0, "remote_system": 50.0},
		},
	}
	if change != nil {
		change(doc)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSum: all streams count, not the first; times are the receiving end's.
func TestSum(t *testing.T) {
	r, err := New().Parse("client", workloadtest.Fill(t, New(), param.Values{"streams": "2"}), strings.NewReader(made(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"throughput", "", 2e6}, {"throughput", "stream=1", 1.5e6}, {"throughput", "stream=2", 0.5e6},
		{"retransmits", "", 4}, {"cpu_user", "end=client", 0.1}, {"cpu_system", "end=client", 1.5}, {"cpu_system", "end=server", 0.5},
	} {
		if got, ok := sample(r, c.name, c.labels); !ok || math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%s{%s} = %g (%v), want %g", c.name, c.labels, got, ok, c.want)
		}
	}
	// The warm-up's points end with it; the first one after it covers the time of
	// two and is left out.
	s := r.Series[0]
	wantT := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second}
	wantV := []float64{1.8e6, 9e5 / 0.55, 2e6, 2.1e6}
	if !slices.Equal(s.T, wantT) || !slices.EqualFunc(s.V, wantV, func(a, b float64) bool { return math.Abs(a-b) < 1 }) {
		t.Errorf("series at %v: %v; want %v: %v", s.T, s.V, wantT, wantV)
	}
}

func TestBad(t *testing.T) {
	test := func(key string, x any) func(map[string]any) {
		return func(d map[string]any) { d["start"].(map[string]any)["test_start"].(map[string]any)[key] = x }
	}
	received := func(key string, x any) func(map[string]any) {
		return func(d map[string]any) { d["end"].(map[string]any)["sum_received"].(map[string]any)[key] = x }
	}
	streams := func(d map[string]any) []any { return d["end"].(map[string]any)["streams"].([]any) }
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"error":            {func(d map[string]any) { d["error"] = "unable to connect to server: Connection refused" }, "Connection refused"},
		"UDP":              {test("protocol", "UDP"), "not TCP"},
		"other direction":  {test("reverse", 1), "direction = upload"},
		"other length":     {test("blksize", 1460), "1460 bytes"},
		"other time":       {test("duration", 9), "ran for 9 s"},
		"one stream only":  {func(d map[string]any) { d["end"].(map[string]any)["streams"] = streams(d)[:1] }, "1 ended"},
		"first as the sum": {received("bytes", 3e6), "iperf3's sum is"},
		"ended early":      {received("seconds", 0.5), "ended early"},
		"no time":          {received("seconds", 0), "out of range"},
		"no end":           {func(d map[string]any) { delete(d["end"].(map[string]any), "sum_received") }, "what arrived"},
		"no receiver":      {func(d map[string]any) { delete(streams(d)[1].(map[string]any), "receiver") }, "stream 2 lacks the figures"},
	} {
		_, err := New().Parse("client", workloadtest.Fill(t, New(), param.Values{"streams": "2"}), strings.NewReader(made(t, c.change)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	if _, err := New().Parse("client", workloadtest.Fill(t, New(), nil), strings.NewReader("iperf3: error")); err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("text instead of JSON: %v", err)
	}
	if _, err := New().Parse("server", workloadtest.Fill(t, New(), nil), strings.NewReader("bind failed")); err == nil {
		t.Error("any text passes for a server's")
	}
}

// TestRefused: the real tool's report of a server that is not there; its exit
// code was 0.
func TestRefused(t *testing.T) {
	f, err := os.Open("testdata/refused.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := New().Parse("client", workloadtest.Fill(t, New(), nil), f); err == nil || !strings.Contains(err.Error(), "unable to connect") {
		t.Errorf("got %v", err)
	}
}

func TestStarved(t *testing.T) {
	r, err := New().Parse("client", workloadtest.Fill(t, New(), param.Values{"streams": "2"}), strings.NewReader(made(t, func(d map[string]any) {
		end := d["end"].(map[string]any)
		end["streams"].([]any)[0].(map[string]any)["receiver"].(map[string]any)["bytes"] = 0
		end["sum_received"].(map[string]any)["bytes"] = 1e6
		end["streams"].([]any)[0].(map[string]any)["sender"].(map[string]any)["retransmits"] = -1
	})))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Code != "starved-streams" {
		t.Errorf("warnings: %+v", r.Warnings)
	}
	if n, ok := sample(r, "retransmits", ""); ok {
		t.Errorf("retransmits = %g, though one stream's are not known", n)
	}
}

// TestReal runs the installed iperf3 as Roles says, the server under its keeper.
func TestReal(t *testing.T) {
	tool, err := exec.LookPath("iperf3")
	if err != nil {
		t.Skip("iperf3 is not installed")
	}
	if testing.Short() {
		t.Skip("a second of load is too long for -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	port := workloadtest.FreePort(t)
	v := workloadtest.Fill(t, New(), param.Values{"port": port, "duration": "1s", "warmup": "0s", "streams": "2", "direction": "download"})
	roles, err := New().Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	server := keep(ctx, t, tool, roles[0])
	args := slices.Clone(roles[1].Args[1:])
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{server}", "127.0.0.1")
	}
	out, err := exec.CommandContext(ctx, tool, args...).Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	r, err := New().Parse("client", v, strings.NewReader(string(out)))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if x, _ := sample(r, "throughput", ""); x < 1e6 {
		t.Errorf("throughput = %g", x)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the keeper that was told to end: %v", err)
	}
}

// TestPortInUse: iperf3's own failure is the keeper's.
func TestPortInUse(t *testing.T) {
	tool, err := exec.LookPath("iperf3")
	if err != nil {
		t.Skip("iperf3 is not installed")
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var stderr strings.Builder
	if code := Main([]string{"--program", tool, "--port", port}, &strings.Builder{}, &stderr); code == 0 || !strings.Contains(stderr.String(), "in use") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// keep starts this test binary as the keeper and waits for the server's line.
func keep(ctx context.Context, t *testing.T, tool string, role workload.Role) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, append(slices.Clone(role.Args[1:]), "--program", tool)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	buf, seen := make([]byte, 4096), ""
	for !strings.Contains("\n"+seen, "\n"+role.Ready) {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatalf("the server ended before it was ready: %s", seen)
		}
		seen += string(buf[:n])
	}
	return cmd
}
