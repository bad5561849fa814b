package checkpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/workloadtest"
)

// The captures were written by run on Linux 6.18, with gVisor of September 2026.
func cases() []workloadtest.Case {
	file := func(name string) map[string]string { return map[string]string{"main": "testdata/" + name} }
	return []workloadtest.Case{
		{Name: "own server", Outputs: file("systrap-tare.jsonl")},
		{Name: "redis", Params: param.Values{"program": "redis"}, Outputs: file("ptrace-redis.jsonl")},
		{Name: "node", Params: param.Values{"program": "node"}, Outputs: file("node.jsonl")},
		{Name: "ruby", Params: param.Values{"program": "ruby"}, Outputs: file("node.jsonl")},
		{Name: "memory", Params: param.Values{"memory": "64MiB", "repeats": "2"}, Outputs: file("systrap-64MiB.jsonl")},
		{Name: "memory of another's", Params: param.Values{"memory": "64MiB", "program": "redis"}, Refused: true},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

func parse(t *testing.T, text string, v param.Values) (record.Reading, error) {
	t.Helper()
	return New().Parse("main", workloadtest.Fill(t, New(), v), strings.NewReader(text))
}

// TestMedians reads the capture by another way, and compares.
func TestMedians(t *testing.T) {
	b, err := os.ReadFile("testdata/systrap-tare.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	r, err := parse(t, string(b), nil)
	if err != nil {
		t.Fatal(err)
	}
	var restores, ratios []float64
	for line := range bytes.Lines(b) {
		var m map[string]float64
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		restores, ratios = append(restores, m["restore_s"]), append(ratios, m["restore_s"]/m["cold_s"])
	}
	if got := r.Series[0]; got.Name != "restore" || !slices.Equal(got.V, restores) || got.T[2] <= got.T[1] {
		t.Errorf("series %+v, want %v", got, restores)
	}
	for name, xs := range map[string][]float64{"restore": restores, "ratio": ratios} {
		slices.Sort(xs)
		for labels, want := range map[record.Labels]float64{"": xs[1], "stat=min": xs[0], "stat=max": xs[2]} {
			i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == name && s.Labels == labels })
			if i < 0 || r.Samples[i].Value != want {
				t.Errorf("%s{%s} is not %g in %+v", name, labels, want, r.Samples)
			}
		}
	}
}

func TestBadOutput(t *testing.T) {
	line := func(l workload.CheckpointLine) string {
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	good := workload.CheckpointLine{Save: 1, Restore: 2, Cold: 3, Bytes: 4}
	for _, c := range []struct {
		alter func(*workload.CheckpointLine)
		want  string
	}{
		{func(*workload.CheckpointLine) {}, ""},
		{func(l *workload.CheckpointLine) { l.Cold = 0 }, "cold_s"},
		{func(l *workload.CheckpointLine) { l.Restore = -1 }, "restore_s"},
		{func(l *workload.CheckpointLine) { l.Save = 1e9 }, "save_s"},
		{func(l *workload.CheckpointLine) { l.Bytes = 0 }, "size"},
	} {
		l := good
		c.alter(&l)
		_, err := parse(t, line(l), param.Values{"repeats": "1"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", l, err, c.want)
		}
	}
	if _, err := parse(t, line(good), nil); err == nil || !strings.Contains(err.Error(), "the report has 1 checkpoints, but 3 were requested") {
		t.Errorf("too few: %v", err)
	}
}

// TestServer: each answer has the length that the probe asks for, counts, and is
// 500 once the memory has changed.
func TestServer(t *testing.T) {
	for _, pages := range []int64{0, 1, 63, 64, 65, 1000} {
		h := newHolder(pages*page + 17)
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			return w
		}
		for n := range 2 {
			w := ask()
			if want := fmt.Sprintf("%020d\n", n+1); w.Code != http.StatusOK || w.Body.String() != want || w.Body.Len() != answerSize {
				t.Errorf("%d pages: %d %q, want %q", pages, w.Code, w.Body, want)
			}
		}
		if pages == 0 {
			continue
		}
		if pages == 1 {
			h.memory[0]++
		} else {
			clear(h.memory[page:]) // as pages that did not come back
		}
		if w := ask(); w.Code != http.StatusInternalServerError {
			t.Errorf("%d pages that have changed: %d %q", pages, w.Code, w.Body)
		}
	}
}

// TestMainServes runs what the role's command runs, and asks it as the probe does.
func TestMainServes(t *testing.T) {
	v, err := param.Fill(New().Params(), param.Values{"memory": "1MiB"})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := New().Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	args := roles[0].Args
	if want := []string{"/tare", "internal", "checkpoint", "8080", "1048576"}; !slices.Equal(args, want) {
		t.Fatalf("%q, want %q", args, want)
	}
	r, w := io.Pipe()
	go Main([]string{"0", args[4]}, w, io.Discard) // it serves until the test's process ends
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(strings.TrimSpace(strings.TrimPrefix(line, "listening on ")))
	if err != nil {
		t.Fatal(line, err)
	}
	c := http.Client{Timeout: time.Minute}
	resp, err := c.Get("http://127.0.0.1:" + port + roles[0].Probe.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || int64(len(b)) != roles[0].Probe.Size {
		t.Errorf("%d %q, %v; want %d bytes", resp.StatusCode, b, err, roles[0].Probe.Size)
	}
	for _, bad := range [][]string{nil, {"0", "x"}, {"0", "-1"}, {"99999", "0"}} {
		if code := Main(bad, io.Discard, io.Discard); code != 1 {
			t.Errorf("%q: code %d", bad, code)
		}
	}
}
