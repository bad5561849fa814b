package clusterbuster

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"strings"
	"testing"

	"tare/imports"
)

func load(t testing.TB, names ...string) []File {
	t.Helper()
	var out []File
	for _, n := range names {
		b, err := os.ReadFile("testdata/" + n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, File{Name: n, Data: b})
	}
	return out
}

func value(t *testing.T, x *imports.Trial, name string) float64 {
	t.Helper()
	for _, p := range x.Samples {
		if p.Name == name {
			return p.Value
		}
	}
	t.Fatalf("no %s in %+v", name, x.Samples)
	return 0
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// TestFioLatency: two pods of 5,000 and 2,500 I/Os a second have 200 and 400 us; the
// mean of an I/O is 266.7 us, and ClusterBuster's report has the sum.
func TestFioLatency(t *testing.T) {
	set, err := Read(load(t, "fio-runc.json", "fio-kata.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Trials) != 4 {
		t.Fatalf("%d trials", len(set.Trials))
	}
	x := &set.Trials[0]
	if got, want := value(t, x, "read_latency"), (50000*200e-6+25000*400e-6)/75000; !near(got, want) {
		t.Errorf("latency %g, by hand %g", got, want)
	}
	if got := value(t, x, "read_iops"); !near(got, 7500) {
		t.Errorf("%g I/Os a second", got)
	}
	if got := value(t, x, "read_throughput"); !near(got, 7500*4096) {
		t.Errorf("%g B/s", got)
	}
	// Of the summed histogram: half of 75,000 are at or below 220 us, 98 % below 1 ms.
	if p50, p99 := value(t, x, "read_clat_p50"), value(t, x, "read_clat_p99"); !near(p50, 220e-6) || !near(p99, 1e-3) {
		t.Errorf("p50 %g p99 %g", p50, p99)
	}
	if len(x.Warnings) != 1 || !strings.Contains(x.Warnings[0].Text, "0.0006 s") || !strings.Contains(x.Warnings[0].Text, "0.0002667 s") {
		t.Errorf("%+v", x.Warnings)
	}
	if x.Levels["sandbox"] != "runc" || set.Trials[2].Levels["sandbox"] != "kata" || x.Levels["iodepth"] != "1" || x.Facts["imported.fio"] != "fio-3.35" {
		t.Errorf("%v %v %v", x.Levels, set.Trials[2].Levels, x.Facts)
	}
}

func TestUperf(t *testing.T) {
	set, err := Read(load(t, "uperf-kata.json"))
	if err != nil {
		t.Fatal(err)
	}
	x := &set.Trials[0]
	if value(t, x, "operations") != 70000 || value(t, x, "throughput") != 70000*1024 || len(x.Series) != 4 {
		t.Errorf("%+v", x)
	}
	// The second client's summary has bytes that its series has not.
	if len(x.Warnings) != 1 || x.Warnings[0].Code != imports.CodeDisagrees {
		t.Errorf("%+v", x.Warnings)
	}
}

func TestHostile(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range MaxFile>>20 + 1 {
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"bomb":     {bomb.Bytes(), "unpacked, it is larger than"},
		"deep":     {[]byte(strings.Repeat(`{"a":`, 1000)), "nested deeper"},
		"other":    {[]byte(`{"metadata":{"kind":"x"}}`), "not clusterbusterResults"},
		"no JSON":  {[]byte("hello"), "not a ClusterBuster report"},
		"workload": {[]byte(`{"metadata":{"kind":"clusterbusterResults","workload":"files"}}`), `cannot import the workload "files"`},
		"empty":    {[]byte(`{"metadata":{"kind":"clusterbusterResults","workload":"fio"}}`), "no results of any worker"},
	} {
		if _, err := Read([]File{{Name: "f", Data: c.data}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSameReport: a report is one trial of its cells, however often it is given, and
// under whatever name.
func TestSameReport(t *testing.T) {
	files := load(t, "fio-runc.json", "fio-kata.json", "fio-runc.json")
	files[2].Name, files[2].Sandbox = "copy.json", "other"
	_, err := Read(files)
	if want := "copy.json has the same content as fio-runc.json, which was already given"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func FuzzRead(f *testing.F) {
	for _, x := range load(f, "fio-kata.json", "uperf-kata.json") {
		f.Add(x.Data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 2 && b[0] == 0x1f {
			return // gzip's own fuzzing is elsewhere
		}
		set, err := Read([]File{{Name: "f", Data: b}})
		if err != nil {
			return
		}
		for i := range set.Trials {
			for _, s := range set.Trials[i].Series {
				for j := 1; j < len(s.T); j++ {
					if s.T[j] < s.T[j-1] {
						t.Error(s.T)
					}
				}
			}
		}
	})
}
