package density

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/workloadtest"
)

// The captures are five idle containers of runc 1.1.5 and of runsc, on a machine
// that was compiling meanwhile: noisy on purpose. vm-overlay is six machines of QEMU (TCG), each with an overlay of the image.
func cases() []workloadtest.Case {
	older := []string{start} // captured before it was read
	return []workloadtest.Case{
		{Name: "vm", Params: param.Values{"count": "6", "disks": "true"}, Outputs: map[string]string{"main": "testdata/vm-overlay.jsonl"}},
		{Name: "runc", Outputs: map[string]string{"main": "testdata/runc.jsonl"}, Lacks: older},
		{Name: "runsc", Outputs: map[string]string{"main": "testdata/runsc.jsonl"}, Lacks: older},
		{Name: "sleep", Params: param.Values{"program": "sleep"}, Outputs: map[string]string{"main": "testdata/runc.jsonl"}, Lacks: older},
		{Name: "node", Params: param.Values{"program": "node", "count": "3"}, Outputs: map[string]string{"main": "testdata/node-runsc.jsonl"}, Lacks: older},
		{Name: "redis", Params: param.Values{"program": "redis", "count": "3", "data": "100MB"}, Outputs: map[string]string{"main": "testdata/redis-runsc.jsonl"}, Lacks: older},
		{Name: "data of a program that has none", Params: param.Values{"program": "node", "data": "1GB"}, Refused: true},
		{Name: "more than the host has", Params: param.Values{"program": "redis", "data": "16TiB"}, Refused: true},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

// host simulates readings: each sandbox takes per bytes, and bad[i] is added to
// what the host has available at reading i.
func host(n int, per, leak int64, bad map[int]int64) string {
	var b strings.Builder
	const start = int64(8) << 30
	for i := range n + 1 {
		fmt.Fprintf(&b, `{"count":%d,"available_bytes":%d}`+"\n", i, start-int64(i)*per+bad[i])
	}
	fmt.Fprintf(&b, `{"count":0,"available_bytes":%d}`+"\n", start-leak)
	return b.String()
}

func parse(t *testing.T, count int, text string) (per, leak float64, codes []string) {
	t.Helper()
	v, err := param.Fill(New().Params(), param.Values{"count": fmt.Sprint(count)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New().Parse("main", v, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	trial := record.Trial{Samples: r.Samples}
	per, _ = trial.Sample("memory_per_sandbox")
	leak, _ = trial.Sample("leak")
	for _, w := range r.Warnings {
		codes = append(codes, w.Code)
	}
	return per, leak, codes
}

func TestSlopeAndWarnings(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name       string
		n          int
		text       string
		per, leak  float64
		wantsCodes []string
	}{
		{"clean", 5, host(5, 25*mib, 0, nil), 25 * mib, 0, nil},
		{"two bad points of eleven", 10, host(10, 25*mib, 0, map[int]int64{3: -500 * mib, 7: 300 * mib}), 25 * mib, 0, []string{"memory-not-monotone"}},
		{"leak", 5, host(5, 25*mib, 20*mib, nil), 25 * mib, 20 * mib, []string{"memory-leak"}},
		{"small leak", 5, host(5, 25*mib, 10*mib, nil), 25 * mib, 10 * mib, nil},
		{"small sandboxes, a leak within the readings' rest", 8, host(8, mib/4, mib, nil), mib / 4, mib, nil},
		{"small sandboxes, a leak", 8, host(8, mib/4, 3*mib/2, nil), mib / 4, 3 * mib / 2, []string{"memory-leak"}},
		{"memory is freed meanwhile", 5, host(5, -mib, -5*mib, nil), page, -5 * mib, []string{"below-noise:memory_per_sandbox", "memory-not-monotone"}},
		{"nothing", 5, host(5, 0, 0, nil), page, 0, []string{"below-noise:memory_per_sandbox"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			per, leak, codes := parse(t, c.n, c.text)
			if per != c.per || leak != c.leak || !slices.Equal(codes, c.wantsCodes) {
				t.Errorf("got %g B each, leak %g, warnings %v; want %g, %g, %v", per, leak, codes, c.per, c.leak, c.wantsCodes)
			}
		})
	}
}

// TestDiskAndStart: the slope of the files' space, and the median of the starts. Sandboxes without files of their own are refused where
// the study asks for these.
func TestDiskAndStart(t *testing.T) {
	const mib = 1 << 20
	v, _ := param.Fill(New().Params(), param.Values{"disks": "true"})
	for _, c := range []struct {
		name    string
		disk    []int64
		want    float64
		warning string
	}{
		{"copies", []int64{0, 160 * mib, 320 * mib, 480 * mib, 640 * mib, 800 * mib}, 160 * mib, ""},
		{"one writes late", []int64{0, 1 * mib, 2 * mib, 3 * mib, 4 * mib, 9 * mib}, 1 * mib, ""},
		{"nothing is written", []int64{0, 0, 0, 0, 0, 0}, page, "below-noise:disk_per_sandbox"},
		{"no line", []int64{0, 90 * mib, 0, 80 * mib, 10 * mib, 70 * mib}, 0, "below-noise:disk_per_sandbox"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := host(5, 25*mib, 0, nil)
			for i, disk := range c.disk {
				text = strings.Replace(text, fmt.Sprintf(`"count":%d,`, i), fmt.Sprintf(`"count":%d,"disk_bytes":%d,"start_s":%d,`, i, disk, i*i), 1)
			}
			r, err := New().Parse("main", v, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			trial := record.Trial{Samples: r.Samples}
			got, ok := trial.Sample(diskResponse)
			if !ok || c.want > 0 && got != c.want {
				t.Errorf("%g B each (%v), want %g", got, ok, c.want)
			}
			if at, ok := trial.Sample(start); !ok || at != 9 {
				t.Errorf("start %g s (%v), want the median of 1, 4, 9, 16, 25", at, ok)
			}
			has := len(r.Warnings) == 1 && r.Warnings[0].Code == c.warning
			if has != (c.warning != "") || len(r.Warnings) > 1 {
				t.Errorf("warnings %+v, want %q", r.Warnings, c.warning)
			}
		})
	}
	if _, err := New().Parse("main", v, strings.NewReader(host(5, 25*mib, 0, nil))); err == nil || !strings.Contains(err.Error(), "leave it out") {
		t.Errorf("sandboxes without files: %v", err)
	}
}

// TestNoise: with normal noise the slope's error keeps to the standard error
// that the warning uses.
func TestNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const n, sigma, per = 20, 1e6, 5e6
	var sq float64
	const tries = 400
	for range tries {
		y := make([]float64, n+1)
		for i := range y {
			y[i] = per*float64(i) + sigma*rng.NormFloat64()
		}
		slope, _ := fit(y)
		sq += (slope - per) * (slope - per)
	}
	got, want := math.Sqrt(sq/tries), sigma*math.Sqrt(12.0/(n*(n+1)*(n+2)))
	if got < 0.9*want || got > 1.2*want {
		t.Errorf("the slope's standard error is %g, want about %g", got, want)
	}
}

func TestRealCaptures(t *testing.T) {
	for _, name := range []string{"runc", "runsc"} {
		b, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		per, _, codes := parse(t, 5, string(b))
		if per < 1<<20 || per > 64<<20 || !slices.Contains(codes, "memory-not-monotone") {
			t.Errorf("%s: %g B each, warnings %v", name, per, codes)
		}
	}
}

func TestBad(t *testing.T) {
	v, _ := param.Fill(New().Params(), nil)
	good := host(5, 1<<20, 0, nil)
	for name, c := range map[string]struct{ text, want string }{
		"one missing":   {good[strings.Index(good, "\n")+1:], "want 7"},
		"wrong count":   {strings.Replace(good, `"count":3`, `"count":4`, 1), "want 3"},
		"not JSON":      {"MemAvailable: 12 kB\n" + good, "line 1"},
		"no disk":       {strings.Replace(good, `"count":3`, `"count":3,"disk_bytes":-1`, 1), "-1 bytes of disk"},
		"no time":       {strings.Replace(good, `"count":3`, `"count":3,"start_s":-1`, 1), "the time -1 s"},
		"no memory":     {strings.Replace(good, `"available_bytes":`, `"available_bytes":-`, 1), "out of range"},
		"not back to 0": {strings.TrimSuffix(good, `{"count":0,"available_bytes":8589934592}`+"\n") + `{"count":6,"available_bytes":1}`, "want 7"},
	} {
		if _, err := New().Parse("main", v, strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestRoles(t *testing.T) {
	v, _ := param.Fill(New().Params(), param.Values{"count": "12"})
	roles, err := New().Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	if r := roles[0]; r.Mode != workload.Idle || r.Count != 12 {
		t.Errorf("role = %+v", r)
	}
}
