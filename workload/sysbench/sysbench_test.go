package sysbench

import (
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/workloadtest"
)

// The captures were made by sysbench 1.0.20 (Debian 12) on two cores: natively,
// and inside gVisor (runsc, platform systrap).
func cpuCases() []workloadtest.Case {
	return []workloadtest.Case{
		{Name: "warm-up", Params: param.Values{"threads": "2"}, Outputs: map[string]string{"main": "testdata/cpu-warmup-histogram.txt"}},
		{Name: "no warm-up", Params: param.Values{"threads": "2", "warmup": "0s"}, Outputs: map[string]string{"main": "testdata/cpu-2threads.txt"}},
		{Name: "gVisor", Params: param.Values{"threads": "2", "duration": "1s"}, Outputs: map[string]string{"main": "testdata/cpu-runsc.txt"}},
		{Name: "gVisor, all processors", Params: param.Values{"threads": "all", "duration": "1s"}, Outputs: map[string]string{"main": "testdata/cpu-all-runsc.txt"}},
		{Name: "events end it", Params: param.Values{"events": "200", "duration": "1s", "warmup": "0s"}, Outputs: map[string]string{"main": "testdata/cpu-events.txt"}},
		{Name: "events and a warm-up", Params: param.Values{"events": "200"}, Refused: true},
		{Name: "fraction of a second", Params: param.Values{"duration": "1500ms"}, Refused: true},
		{Name: "fraction of a warm-up", Params: param.Values{"warmup": "100ms"}, Refused: true},
	}
}

func memoryCases() []workloadtest.Case {
	return []workloadtest.Case{
		{Name: "random", Params: param.Values{"threads": "2", "access": "rnd"}, Outputs: map[string]string{"main": "testdata/memory-rnd-warmup.txt"}},
		{Name: "plain", Params: param.Values{"operation": "read", "block-size": "1KiB", "warmup": "0s"}, Outputs: map[string]string{"main": "testdata/memory-plain.txt"}},
		{Name: "gVisor", Params: param.Values{"threads": "2", "block-size": "4KiB"}, Outputs: map[string]string{"main": "testdata/memory-runsc.txt"}},
		{Name: "gVisor, all processors of one", Params: param.Values{"threads": "all", "duration": "1s"}, Outputs: map[string]string{"main": "testdata/memory-all-1cpu.txt"}},
		{Name: "bytes end it", Params: param.Values{"total": "256MiB", "warmup": "0s"}, Outputs: map[string]string{"main": "testdata/memory-total.txt"}},
		{Name: "odd block", Params: param.Values{"block-size": "3000"}, Refused: true},
	}
}

func TestContractCPU(t *testing.T)    { workloadtest.Run(t, NewCPU(), cpuCases()...) }
func TestContractMemory(t *testing.T) { workloadtest.Run(t, NewMemory(), memoryCases()...) }
func FuzzCPU(f *testing.F)            { workloadtest.Fuzz(f, NewCPU(), cpuCases()...) }
func FuzzMemory(f *testing.F)         { workloadtest.Fuzz(f, NewMemory(), memoryCases()...) }

func read(t *testing.T, w workload.Workload, file string, v param.Values) (record.Reading, error) {
	t.Helper()
	v, err := param.Fill(w.Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return w.Parse("main", v, f)
}

func value(t *testing.T, r record.Reading, name string) record.Sample {
	t.Helper()
	i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == name && s.Labels == "" })
	if i < 0 {
		t.Fatalf("there is no sample %s in %+v", name, r.Samples)
	}
	return r.Samples[i]
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s = %g, want %g", what, got, want)
	}
}

// TestWarmupIsLeftOut holds the values of the second report, not the first: the
// first two figures are what the file says at its end.
func TestWarmupIsLeftOut(t *testing.T) {
	r, err := read(t, NewCPU(), "testdata/cpu-warmup-histogram.txt", param.Values{"threads": "2"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/cpu-warmup-histogram.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := value(t, r, "events")
	if at := strings.LastIndex(string(text), strings.TrimSuffix(s.Original, " events/s")); at < strings.Index(string(text), "Latency histogram") {
		t.Errorf("events = %+v comes from the warm-up's report", s)
	}
	near(t, "latency_mean", value(t, r, "latency_mean").Value, 2/s.Value, 0.01) // two threads, always busy
	if p99, mean := value(t, r, "latency_p99").Value, value(t, r, "latency_mean").Value; p99 <= mean || p99 > 3*mean {
		t.Errorf("latency_p99 = %g with a mean of %g", p99, mean)
	}
	if len(r.Series) != 1 || r.Series[0].T[0] != time.Second || len(r.Series[0].T) < 2 {
		t.Errorf("series = %+v, want one point a second", r.Series)
	}
	if len(r.Histograms) != 1 {
		t.Errorf("%d histograms, want 1", len(r.Histograms))
	}
}

func TestMemory(t *testing.T) {
	r, err := read(t, NewMemory(), "testdata/memory-rnd-warmup.txt", param.Values{"threads": "2", "access": "rnd"})
	if err != nil {
		t.Fatal(err)
	}
	s := value(t, r, "throughput")
	near(t, "throughput", s.Value, 2883.37*(1<<20), 1e-9)
	if s.Original != "2883.37 MiB/sec" {
		t.Errorf("Original = %q", s.Original)
	}
	// A block size other than the one that ran is noticed, not multiplied in.
	if _, err := read(t, NewMemory(), "testdata/memory-rnd-warmup.txt", param.Values{"block-size": "4KiB"}); err == nil || !strings.Contains(err.Error(), "contradict") {
		t.Errorf("a wrong block size gives %v", err)
	}
}

func TestBadOutput(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"testdata/cpu-badoption.txt", "no complete report"},
		{"testdata/cpu-plain.txt", "lacks a checkpoint"},
	} {
		if _, err := read(t, NewCPU(), c.file, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.file, err, c.want)
		}
	}
	text, err := os.ReadFile("testdata/cpu-warmup-histogram.txt")
	if err != nil {
		t.Fatal(err)
	}
	cut := text[:strings.Index(string(text), "Latency histogram")]
	v, _ := param.Fill(NewCPU().Params(), nil)
	if _, err := NewCPU().Parse("main", v, strings.NewReader(string(cut))); err == nil || !strings.Contains(err.Error(), "warm-up") {
		t.Errorf("an output cut after the warm-up gives %v", err)
	}
}

// TestNoPercentile: a sysbench without histogram still gives its other figures.
func TestNoPercentile(t *testing.T) {
	r, err := read(t, NewCPU(), "testdata/cpu-nopercentile.txt", param.Values{"warmup": "0s"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Code != "no-percentile" {
		t.Errorf("warnings = %+v", r.Warnings)
	}
	value(t, r, "events")
}

// TestThreadsChosen: where the sandbox says how many threads there are, the trial does too.
func TestThreadsChosen(t *testing.T) {
	for _, c := range []struct {
		w    workload.Workload
		file string
		want float64
	}{{NewCPU(), "testdata/cpu-all-runsc.txt", 2}, {NewMemory(), "testdata/memory-all-1cpu.txt", 1}} {
		for _, threads := range []string{"all", "1"} {
			r, err := read(t, c.w, c.file, param.Values{"threads": threads, "duration": "1s"})
			if err != nil {
				t.Fatal(err)
			}
			var got float64
			for _, s := range r.Samples {
				if s.Name == "threads" && s.Labels != "" {
					got = s.Value
				}
			}
			if want := map[string]float64{"all": c.want}[threads]; got != want {
				t.Errorf("%s with threads = %s: %g threads, want %g", c.file, threads, got, want)
			}
		}
	}
}

// TestReal runs the installed sysbench as Roles says.
func TestReal(t *testing.T) {
	if _, err := exec.LookPath("sysbench"); err != nil {
		t.Skip("sysbench is not installed")
	}
	if testing.Short() {
		t.Skip("two seconds of load are too long for -short")
	}
	for _, c := range []struct {
		w workload.Workload
		v param.Values
	}{
		{NewCPU(), param.Values{"duration": "1s", "threads": "1"}},
		{NewCPU(), param.Values{"duration": "60s", "warmup": "0s", "events": "100"}},
		{NewMemory(), param.Values{"duration": "1s", "threads": "all"}},
		{NewMemory(), param.Values{"duration": "60s", "warmup": "0s", "total": "64MiB"}},
	} {
		w := c.w
		v, err := param.Fill(w.Params(), c.v)
		if err != nil {
			t.Fatal(err)
		}
		roles, err := w.Roles(v)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(roles[0].Args[0], roles[0].Args[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", roles[0].Args, err, out)
		}
		r, err := w.Parse("main", v, strings.NewReader(string(out)))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if name := w.Responses(v)[0].Name; value(t, r, name).Value <= 0 {
			t.Errorf("%s: %s is not positive", w.Name(), name)
		}
	}
}
