package fio

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/volume"
	"tare/workload"
	"tare/workload/workloadtest"
)

// The captures were made by fio 3.33 (Debian 12) with the options of Roles:
// natively, and inside gVisor (runsc). randrw-psync-2jobs-clat has clat bins
// only, as fio prints without lat_percentiles.
func cases() []workloadtest.Case {
	text := func(name string) string {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	file := func(name string) map[string]string { return map[string]string{"main": "testdata/" + name} }
	return []workloadtest.Case{
		{Name: "mixed", Params: param.Values{"rw": "randrw", "jobs": "2", "iodepth": "4", "engine": "libaio"}, Outputs: file("randrw-libaio-2jobs.json")},
		{Name: "only clat", Params: param.Values{"rw": "randrw", "jobs": "2"}, Outputs: file("randrw-psync-2jobs-clat.json")},
		{Name: "io_uring", Params: param.Values{"jobs": "3", "iodepth": "8", "engine": "io_uring"}, Outputs: file("randread-io_uring-3jobs.json")},
		{Name: "write", Params: param.Values{"rw": "write", "bs": "1MiB", "fsync": "8"}, Outputs: file("write-fsync.json")},
		{Name: "gVisor", Params: param.Values{"jobs": "2"}, Outputs: file("runsc-psync-2jobs.json")},
		{Name: "with a log", Outputs: file("randread-log.json")},
		{Name: "gVisor, with a log", Outputs: file("runsc-randread-log.json")},
		{Name: "mixed, with logs", Params: mixedLog(), Outputs: file("randrw-2jobs-log.json")},
		{Name: "cold", Params: param.Values{"cache": "dropped", "duration": "500ms"}, Outputs: file("data-dropped.json")},
		{Name: "gVisor, cold", Params: coldIn("data"), Outputs: file("runsc-data-dropped.json")},
		{Name: "gVisor, cold root", Params: coldIn("root"), Outputs: file("runsc-root-dropped.json")},
		{Name: "gVisor, root", Params: param.Values{"target": "root", "rw": "write", "engine": "sync", "bs": "64KiB", "size": "16MiB", "duration": "500ms"}, Outputs: file("runsc-root-write-sync.json")},
		{Name: "bind", Params: param.Values{"target": "bind", "rw": "randwrite", "engine": "libaio", "iodepth": "8", "size": "16MiB", "duration": "500ms"}, Outputs: file("bind-randwrite-libaio.json")},
		{Name: "job file", Params: param.Values{"jobfile": text("mix.fio"), "vars": "mix=70", "engine": "sync", "duration": "500ms"}, Outputs: file("mix.json")},
		{Name: "job file of one section", Params: param.Values{"jobfile": text("one.fio"), "duration": "1s"}, Outputs: file("one.json")},
		{Name: "job file that runs a program", Params: param.Values{"jobfile": "[a]\nsize=1m\nexec_prerun=rm -rf /\n"}, Refused: true},
		{Name: "parameter that the job file has not", Params: param.Values{"jobfile": "[a]\nsize=1m\n", "bs": "8KiB"}, Refused: true},
		{Name: "variable that the job file has not", Params: param.Values{"jobfile": "[a]\nsize=1m\n", "vars": "x=1"}, Refused: true},
		{Name: "vars alone", Params: param.Values{"vars": "x=1"}, Refused: true},
		{Name: "depth without effect", Params: param.Values{"iodepth": "4"}, Refused: true},
		{Name: "file smaller than a request", Params: param.Values{"bs": "1MiB", "size": "64KiB"}, Refused: true},
		{Name: "gVisor, direct", Params: param.Values{"jobs": "2", "cache": "direct"}, Outputs: file("runsc-psync-2jobs.json")},
		{Name: "unaligned", Params: param.Values{"bs": "1000", "cache": "direct"}, Refused: true},
		{Name: "nothing to drop", Params: param.Values{"rw": "randwrite", "cache": "dropped"}, Refused: true},
		{Name: "fsync of reads", Params: param.Values{"fsync": "1"}, Refused: true},
		{Name: "too fine a time", Params: param.Values{"duration": "1000100us"}, Refused: true},
	}
}

func coldIn(target string) param.Values {
	return param.Values{"target": target, "cache": "dropped", "size": "512MiB", "duration": "1s"}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }

// TestDevice: without files each job has a part of the device, which is written before it is
// read, and the volume holds all of them.
func TestDevice(t *testing.T) {
	v, err := param.Fill(New().Params(), param.Values{"target": "block", "size": "16MiB", "jobs": "3"})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := New().Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	r := roles[0]
	if want := []volume.Volume{{Name: "data", Mode: volume.Block, Size: 48 << 20}}; !slices.Equal(r.Volumes, want) {
		t.Errorf("volumes %+v", r.Volumes)
	}
	for _, arg := range []string{"--filename=/dev/data", "--offset_increment=16777216", "--size=16777216"} {
		if !slices.Contains(r.Args, arg) {
			t.Errorf("no %s in %q", arg, r.Args)
		}
	}
	if !slices.Contains(r.Before, "--size=50331648") || !slices.Contains(r.Before, "--rw=write") {
		t.Errorf("laid out by %q", r.Before)
	}
	v, err = param.Fill(New().Params(), param.Values{"target": "device", "device": "/dev/sdb:/dev/x/../sdc", "size": "16MiB"})
	if err != nil {
		t.Fatal(err)
	}
	if roles, err = New().Roles(v); err != nil {
		t.Fatal(err)
	}
	r = roles[0]
	if len(r.Volumes) != 2 || r.Volumes[1].Device != "/dev/sdc" || r.Volumes[1].Size != 16<<20 || !slices.Contains(r.Args, "--filename=/dev/data:/dev/data2") || !slices.Contains(r.Before, "--filename=/dev/data2") || !slices.Contains(r.Before, "--size=16777216") {
		t.Errorf("two devices: %+v", r)
	}
	for why, given := range map[string]param.Values{
		"need each other": {"target": "device"}, "write both": {"device": "/dev/sdb"}, "is not below /dev": {"target": "device", "device": "disk"}, "twice": {"target": "device", "device": "/dev/sdb:/dev/sdb"},
		"device = /sdb is not below": {"target": "device", "device": "/dev/../sdb"}, "names /dev/sdb twice": {"target": "device", "device": "/dev/sdb:/dev//sdb"},
	} {
		v, err := param.Fill(New().Params(), given)
		if err == nil {
			_, err = New().Roles(v)
		}
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v: %v, want %q", given, err, why)
		}
	}
}

// TestKilled: a job whose process was killed has requests and no run time, and the failure says so.
func TestKilled(t *testing.T) {
	out, err := os.ReadFile("testdata/bind-randwrite-libaio.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := param.Fill(New().Params(), param.Values{"rw": "randwrite"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New().Parse("main", v, strings.NewReader(strings.ReplaceAll(string(out), `"runtime" : 501,`, `"runtime" : 0,`)))
	if err == nil || !strings.Contains(err.Error(), "its process was killed") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, New(), cases()...) }

func read(t *testing.T, name string, v param.Values) (record.Reading, error) {
	t.Helper()
	v, err := param.Fill(New().Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return New().Parse("main", v, f)
}

func value(t *testing.T, r record.Reading, name string, labels record.Labels) float64 {
	t.Helper()
	i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == name && s.Labels == labels })
	if i < 0 {
		t.Fatalf("there is no sample %s{%s} in %+v", name, labels, r.Samples)
	}
	return r.Samples[i].Value
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s = %g, want %g", what, got, want)
	}
}

// TestAllJobsCount compares with fio's own rates of each job, read by another
// way: a parser that looked at one job alone would be at a half.
func TestAllJobsCount(t *testing.T) {
	const name = "randrw-libaio-2jobs.json"
	r, err := read(t, name, param.Values{"rw": "randrw", "jobs": "2", "engine": "libaio", "iodepth": "4"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Jobs []map[string]any `json:"jobs"`
	}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&doc); err != nil { // its logs follow
		t.Fatal(err)
	}
	ran := 0.0
	for _, d := range []string{"read", "write"} {
		var bw, iops float64
		for _, j := range doc.Jobs {
			m := j[d].(map[string]any)
			ran = max(ran, m["runtime"].(float64)/1000)
			bw += m["bw_bytes"].(float64)
			iops += m["iops"].(float64)
		}
		label := record.MakeLabels("direction", d)
		near(t, d+" throughput", value(t, r, "throughput", label), bw, 0.002)
		near(t, d+" iops", value(t, r, "iops", label), iops, 0.002)
	}
	near(t, "the load's time", value(t, r, record.LoadTime, ""), ran, 1e-9)
	near(t, "sum of directions", value(t, r, "iops", ""), value(t, r, "iops", "direction=read")+value(t, r, "iops", "direction=write"), 1e-9)
	if len(r.Histograms) != 6 {
		t.Fatalf("%d histograms, want three a direction", len(r.Histograms))
	}
	h, err := hdrhistogram.Decode(r.Histograms[0].Encoded)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "decoded p99", float64(h.ValueAtQuantile(99))*1e-9, value(t, r, "read_latency_p99", ""), 1e-9)
}

// TestPercentiles compares with the percentiles that fio itself computed from
// the same bins.
func TestPercentiles(t *testing.T) {
	r, err := read(t, "write-fsync.json", param.Values{"rw": "write", "bs": "1MiB"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/write-fsync.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Jobs []struct {
			Write struct {
				Lat struct {
					Percentile map[string]float64 `json:"percentile"`
				} `json:"lat_ns"`
			} `json:"write"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	p := doc.Jobs[0].Write.Lat.Percentile
	near(t, "p50", value(t, r, "latency_p50", ""), p["50.000000"]*1e-9, 0.02)
	near(t, "p99", value(t, r, "latency_p99", ""), p["99.000000"]*1e-9, 0.02)
}

// TestFailures: what fio says reaches the user.
func TestFailures(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"runsc-io_uring-refused.json", "Function not implemented"},
		{"invalid-argument.json", "invalid argument"},
		{"full-disk.txt", "no space left on device"},
	} {
		_, err := read(t, c.file, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.file, err, c.want)
		}
	}
	if _, err := read(t, "runsc-psync-2jobs.json", param.Values{"jobs": "3"}); err == nil {
		t.Error("two jobs where three were asked for are no error")
	}
	v, _ := param.Fill(New().Params(), nil)
	if _, err := New().Parse("main", v, strings.NewReader("fio: engine nope not loadable\n")); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("an output without JSON gives %v", err)
	}
}

func TestWarnings(t *testing.T) {
	r, err := read(t, "randrw-psync-2jobs-clat.json", param.Values{"rw": "randrw", "jobs": "2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) != 2 || r.Warnings[0].Code != "completion-latency" {
		t.Errorf("warnings = %+v, want completion-latency for each direction", r.Warnings)
	}
	uneven := `{"jobs":[
	 {"jobname":"a","read":{"io_bytes":4096,"total_ios":1,"runtime":1000,"lat_ns":{"bins":{"100":1}}}},
	 {"jobname":"b","read":{"io_bytes":4096,"total_ios":1,"runtime":2000,"lat_ns":{"bins":{"100":1}}}}]}`
	v, _ := param.Fill(New().Params(), param.Values{"jobs": "2"})
	if r, err = New().Parse("main", v, strings.NewReader(uneven)); err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, w := range r.Warnings {
		codes = append(codes, w.Code)
	}
	if !slices.Equal(codes, []string{"few-requests:latency_p99", "uneven-jobs", "below-noise:latency_p999"}) {
		t.Errorf("warnings = %v", codes)
	}
	near(t, "iops over the longest job", value(t, r, "iops", ""), 1, 1e-9)
}

// TestPageCache: the capture of gVisor was made with direct=1, and answered from
// memory all the same.
func TestPageCache(t *testing.T) {
	for _, c := range []struct {
		name, file string
		v          param.Values
		want       string
	}{
		{"gVisor, direct", "runsc-psync-2jobs.json", param.Values{"jobs": "2", "cache": "direct"}, "O_DIRECT had no effect"},
		{"gVisor, dropped", "runsc-psync-2jobs.json", param.Values{"jobs": "2", "cache": "dropped"}, "before the load"},
		{"gVisor, as asked", "runsc-psync-2jobs.json", param.Values{"jobs": "2", "cache": "warm"}, ""},
		{"gVisor, tmpfs", "runsc-psync-2jobs.json", param.Values{"jobs": "2", "cache": "direct", "target": "tmpfs"}, ""},
		{"gVisor, cold", "runsc-data-dropped.json", coldIn("data"), ""},
		{"gVisor, cold root", "runsc-root-dropped.json", coldIn("root"), ""},
		{"in memory all along", "bind-randwrite-libaio.json", param.Values{"target": "bind", "rw": "randwrite", "cache": "direct"}, ""},
		{"read ahead", "runsc-psync-2jobs.json", param.Values{"jobs": "2", "cache": "dropped", "rw": "read"}, ""},
		{"a disk", "randread-io_uring-3jobs.json", param.Values{"jobs": "3", "iodepth": "8", "engine": "io_uring", "cache": "direct"}, ""},
	} {
		r, err := read(t, c.file, c.v)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := ""
		for _, w := range r.Warnings {
			if w.Code == record.WarnPageCache {
				got += w.Text
			}
		}
		if (got != "") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: warning %q, want %q", c.name, got, c.want)
		}
	}
}

// TestCache: what fio is told, so that all sandboxes do the same.
func TestCache(t *testing.T) {
	for cache, want := range map[string][]string{"warm": {"--direct=0", "--invalidate=0"}, "dropped": {"--direct=0", "--invalidate=1"}, "direct": {"--direct=1", "--invalidate=0"}} {
		v, err := param.Fill(New().Params(), param.Values{"cache": cache})
		if err != nil {
			t.Fatal(err)
		}
		roles, err := New().Roles(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !slices.Contains(roles[0].Args, w) {
				t.Errorf("cache = %s: %q, want %s", cache, roles[0].Args, w)
			}
		}
	}
}

// TestCounting: the counting trial leaves fio's start-up out, lasts a second, and never
// ends with its files; what is measured stays as it is.
func TestCounting(t *testing.T) {
	for _, c := range []struct{ cache, duration, warmup, wantCache, wantDuration, wantWarmup string }{
		{"dropped", "100ms", "0s", "warm", "1s", "500ms"},
		{"warm", "5s", "2s", "warm", "5s", "2s"},
		{"direct", "200ms", "1s", "direct", "1s", "1s"},
	} {
		v, err := param.Fill(New().Params(), param.Values{"cache": c.cache, "duration": c.duration, "warmup": c.warmup})
		if err != nil {
			t.Fatal(err)
		}
		got := New().(workload.Counter).Counting(v)
		if got["cache"] != c.wantCache || got["duration"] != c.wantDuration || got["warmup"] != c.wantWarmup {
			t.Errorf("%+v: %v", c, got)
		}
		if v["cache"] != c.cache || v["duration"] != c.duration {
			t.Errorf("%+v: the trial's own parameters are now %v", c, v)
		}
		if roles, err := New().Roles(got); err != nil || roles[0].DropCaches || !slices.Contains(roles[0].Args, "--time_based") {
			t.Errorf("%+v: %+v, %v", c, roles, err)
		}
	}
}

// TestTargets: where the files are, what the role asks of its sandbox for that, that
// files are laid out before the load, and the page cache of those that are to be cold
// is dropped after that.
func TestTargets(t *testing.T) {
	for _, c := range []struct {
		target, cache, dir               string
		data, memory, writable, dropping bool
	}{
		{"data", "warm", "/data", true, false, false, false},
		{"data", "dropped", "/data", true, false, false, true},
		{"root", "direct", "/var/tmp", false, false, true, false},
		{"root", "dropped", "/var/tmp", false, false, true, true},
		{"bind", "warm", "/data", true, true, false, false},
		{"bind", "dropped", "/data", true, true, false, false},
		{"tmpfs", "warm", "/tmp", false, false, false, false},
		{"tmpfs", "dropped", "/tmp", false, false, false, false},
	} {
		v, err := param.Fill(New().Params(), param.Values{"target": c.target, "cache": c.cache})
		if err != nil {
			t.Fatal(err)
		}
		roles, err := New().Roles(v)
		if err != nil {
			t.Fatal(err)
		}
		r := roles[0]
		if (len(r.Volumes) > 0) != c.data || c.memory != slices.Contains(r.Volumes, volume.Volume{Name: volume.Data, Medium: volume.Memory}) || r.Writable != c.writable || r.DropCaches != c.dropping || len(r.Before) == 0 {
			t.Errorf("%s, %s: %+v", c.target, c.cache, r)
		}
		for _, args := range [][]string{r.Args, r.Before} {
			if len(args) > 0 && !slices.Contains(args, "--directory="+c.dir) {
				t.Errorf("%s, %s: %q, want the files in %s", c.target, c.cache, args, c.dir)
			}
		}
	}
	for cache, timed := range map[string]bool{"warm": true, "direct": true, "dropped": false} {
		v, _ := param.Fill(New().Params(), param.Values{"cache": cache})
		roles, err := New().Roles(v)
		if err != nil || slices.Contains(roles[0].Args, "--time_based") != timed {
			t.Errorf("cache = %s: %q, %v; only cold files have one pass", cache, roles[0].Args, err)
		}
	}
	r, err := read(t, "data-dropped.json", param.Values{"target": "tmpfs", "cache": "dropped", "duration": "500ms"})
	if err != nil || !slices.ContainsFunc(r.Warnings, func(w record.Warning) bool { return strings.Contains(w.Text, "no effect with target = tmpfs") }) {
		t.Errorf("files in memory that are to be dropped: %+v, %v", r.Warnings, err)
	}
}

// TestLayout runs the command that lays files out beforehand: it writes every
// block for real, and the load's own command finds them and writes nothing.
func TestLayout(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed")
	}
	v, err := param.Fill(New().Params(), param.Values{"size": "1MiB", "jobs": "2", "cache": "dropped", "duration": "200ms", "warmup": "0s"})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := New().Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := func(args []string) *exec.Cmd {
		args = slices.Clone(args)
		args[slices.Index(args, "--directory=/data")] = "--directory=" + dir
		return exec.Command(args[0], args[1:]...)
	}
	if out, err := in(roles[0].Before).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var before []os.FileInfo
	for _, name := range []string{"tare.0.0", "tare.1.0"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if blocks := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != 1<<20 || blocks < 1<<20 {
			t.Errorf("%s has %d bytes in blocks of %d", name, info.Size(), blocks)
		}
		before = append(before, info)
	}
	if out, err := in(roles[0].Args).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, info := range before {
		now, err := os.Stat(filepath.Join(dir, info.Name()))
		if err != nil || !now.ModTime().Equal(info.ModTime()) {
			t.Errorf("%s was written again: %v", info.Name(), err)
		}
	}
}

// TestReal runs the installed fio as Roles says, in a directory of its own.
func TestReal(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed")
	}
	v, err := param.Fill(New().Params(), param.Values{"rw": "randrw", "size": "1MiB", "jobs": "2", "duration": "1s", "warmup": "100ms"})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := New().Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(roles[0].Args)
	args[slices.Index(args, "--directory=/data")] = "--directory=" + t.TempDir()
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	r, err := New().Parse("main", v, strings.NewReader(string(out)))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(r.Series) != 1 || len(r.Series[0].T) < 2 || r.Series[0].Labels.Get(record.LabelResponse) != "iops" {
		t.Errorf("series %+v, want the log of the rate", r.Series)
	}
	for _, w := range r.Warnings {
		if !strings.HasPrefix(w.Code, record.FewRequests) && w.Code != "uneven-jobs" { // a busy machine
			t.Errorf("warning: %+v", w)
		}
	}
}
