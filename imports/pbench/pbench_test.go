package pbench

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/imports"
	"tare/record"
)

func value(t *testing.T, x *imports.Trial, name string) float64 {
	t.Helper()
	for _, p := range x.Samples {
		if p.Name == name && p.Labels == "" {
			return p.Value
		}
	}
	t.Fatalf("no %s in %+v", name, x.Samples)
	return 0
}

// TestRead: the figures are the raw counters' own arithmetic.
func TestRead(t *testing.T) {
	set, err := Read([]Tree{{Dir: "testdata/runc"}, {Dir: "testdata/kata", Sandbox: "kata-qemu"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Trials) != 12 || set.Host.Hostname != "lab1.example.com" || set.Origin.Version != "0.71.0-1" {
		t.Fatalf("%d trials, %+v", len(set.Trials), set.Host)
	}
	for i := range set.Trials {
		x := &set.Trials[i]
		tree := map[string]string{"runc": "runc", "kata-qemu": "kata"}[x.Levels["sandbox"]]
		dir := filepath.Join("testdata", tree, x.Facts["imported.iteration"], "sample"+x.Facts["imported.sample"])
		ops, bytes := byHand(t, dir)
		switch x.Levels["workload"] {
		case "uperf-rr":
			if got := value(t, x, "transactions"); math.Abs(got-ops/2) > 1e-6*got {
				t.Errorf("%s: %g transactions, by hand %g", dir, got, ops/2)
			}
			if got, want := value(t, x, "latency"), 2/(ops/2); math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s: latency %g, by hand %g", dir, got, want)
			}
		case "uperf-stream":
			if got := value(t, x, "throughput"); math.Abs(got-bytes) > 1e-6*got {
				t.Errorf("%s: %g B/s, by hand %g", dir, got, bytes)
			}
		default:
			t.Errorf("workload %q", x.Levels["workload"])
		}
		if x.Start.IsZero() || x.Duration < 6*time.Second {
			t.Errorf("%s: %v for %v", dir, x.Start, x.Duration)
		}
	}
	var doubts []string
	for i := range set.Trials {
		for _, w := range set.Trials[i].Warnings {
			doubts = append(doubts, w.Code+" "+w.Text)
		}
	}
	// kata's second iteration has a mean that is a quarter too large.
	if len(doubts) != 1 || !strings.Contains(doubts[0], "imported-disagrees throughput of iteration 2-tcp_stream-16384B-1i") {
		t.Errorf("%q", doubts)
	}
}

// byHand adds the rates of a sample's clients from their first and last counters.
func byHand(t *testing.T, dir string) (ops, bytes float64) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "client::*"))
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var first, last [3]float64
		for sc := bufio.NewScanner(f); sc.Scan(); {
			var v [3]float64
			if n, _ := fmt.Sscanf(sc.Text(), "timestamp_ms:%f name:Txn2 nr_bytes:%f nr_ops:%f", &v[0], &v[1], &v[2]); n == 3 {
				if last = v; first[0] == 0 {
					first = v
				}
			}
		}
		f.Close()
		s := (last[0] - first[0]) / 1e3
		bytes, ops = bytes+(last[1]-first[1])/s, ops+(last[2]-first[2])/s
	}
	return ops, bytes
}

func TestTools(t *testing.T) {
	set, err := Read([]Tree{{Dir: "testdata/runc"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, s := range set.Trials[0].Series {
		names[s.Name+" "+string(s.Unit)]++
		if s.Labels == record.MakeLabels("host", "lab1", "thread", "77-vhost-76") && (s.V[0] < 0.9 || s.V[0] > 1) {
			t.Errorf("vhost %v", s.V)
		}
	}
	if names["host_cpu 1"] != 9 || names["host_thread_cpu cores"] != 2 || names["transactions 1/s"] != 2 {
		t.Errorf("%v", names)
	}
}

// TestHostile: nothing outside the tree is read, and nothing without bound.
// TestSameTree: a sample is one trial, also where its tree was given before or copied.
func TestSameTree(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "kata")
	if err := os.CopyFS(copied, os.DirFS("testdata/runc")); err != nil {
		t.Fatal(err)
	}
	for _, again := range []Tree{{Dir: "testdata/runc"}, {Dir: copied, Sandbox: "kata"}} {
		_, err := Read([]Tree{{Dir: "testdata/runc"}, again}, nil)
		if err == nil || !strings.Contains(err.Error(), again.Dir+"/1-tcp_rr-64B-1i/sample1 has the same content as testdata/runc/1-tcp_rr-64B-1i/sample1") {
			t.Errorf("%s: %v", again.Dir, err)
		}
	}
}

func TestHostile(t *testing.T) {
	outside := t.TempDir()
	if err := os.CopyFS(filepath.Join(outside, "runc"), os.DirFS("testdata/runc")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink(filepath.Join(outside, "runc", "1-tcp_rr-64B-1i"), filepath.Join(dir, "1-linked")))
	must(os.Symlink(filepath.Join(outside, "runc"), filepath.Join(dir, "iterations")))
	if _, err := Read([]Tree{{Dir: dir}}, nil); err == nil || !strings.Contains(err.Error(), "it has no iteration with samples") {
		t.Errorf("links were followed: %v", err)
	}
	sample := filepath.Join(dir, "1-x", "sample1")
	must(os.MkdirAll(sample, 0o755))
	must(os.Symlink("/etc/passwd", filepath.Join(sample, "result.json")))
	set, err := Read([]Tree{{Dir: dir}}, nil)
	if err != nil || set.Trials[0].Failure == nil {
		t.Errorf("a linked result: %+v %v", set, err)
	}
	f, err := imports.OpenFolder(dir, MaxTree)
	must(err)
	defer f.Close()
	for _, name := range []string{"1-x/sample1/result.json", "iterations/metadata.log", "../x", "/etc/passwd"} {
		if b, err := f.Read(name, 100); err == nil {
			t.Errorf("%s was read: %q", name, b)
		}
	}
	must(os.Remove(filepath.Join(sample, "result.json")))
	must(os.WriteFile(filepath.Join(sample, "result.json"), []byte(strings.Repeat("[", 1000)), 0o600))
	if _, err := Read([]Tree{{Dir: dir}}, nil); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("deep: %v", err)
	}
	if _, err := Read([]Tree{{Dir: filepath.Join(dir, "none")}}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestFio: what fio printed stands behind lines of progress, and counts more than logs.
func TestFio(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "1-read-4KiB", "sample1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"fio-result.txt": "Jobs: 1 (f=1): [R(1)]\n" + `{"fio version":"fio-3.7","client_stats":[
 {"jobname":"a","hostname":"h1","read":{"io_bytes":4096000,"total_ios":1000,"runtime":1000,"lat_ns":{"mean":1000000,"max":5000000}}},
 {"jobname":"a","hostname":"h2","read":{"io_bytes":12288000,"total_ios":3000,"runtime":1000,"lat_ns":{"mean":300000,"max":4000000}}},
 {"jobname":"All clients","read":{"io_bytes":16384000,"total_ios":4000,"runtime":1000,"lat_ns":{"mean":1}}}]}` + "\n",
		"result.json": `{"parameters":{"benchmark":[{"benchmark_name":"fio","bs":"4k","rw":"read,read"}]},"throughput":{"iops_sec":[{"client_hostname":"all","role":"aggregate","value":2000},{"client_hostname":"h1","value":1000},{"client_hostname":"h2","value":1000}]}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := Read([]Tree{{Dir: filepath.Dir(filepath.Dir(dir))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &set.Trials[0]
	if x.Levels["rw"] != "read" || value(t, x, "read_iops") != 4000 || math.Abs(value(t, x, "read_latency")-475e-6) > 1e-12 {
		t.Errorf("%+v", x)
	}
	if len(x.Warnings) != 1 || x.Warnings[0].Code != imports.CodeDisagrees || !strings.Contains(x.Warnings[0].Text, "2000") || !strings.Contains(x.Warnings[0].Text, "4000") {
		t.Errorf("%+v", x.Warnings)
	}
}

func FuzzResult(f *testing.F) {
	for _, name := range []string{"testdata/runc/1-tcp_rr-64B-1i/sample1/result.json", "testdata/kata/1-tcp_rr-64B-1i/result.json"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		r, err := parseResult(b)
		if err != nil {
			return
		}
		x := imports.Trial{Levels: map[string]string{}, Facts: map[string]string{}}
		r.span(&x)
		r.samples(&x)
		for _, m := range r.metrics() {
			_ = m.aggregate()
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte("timestamp_ms:1683187300000.1 name:Txn2 nr_bytes:64 nr_ops:2\n[run]\ncontroller = x\n"))
	f.Add([]byte("timestamp_ms,a,b\n1000,1,2\n2000,x,3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := parseUperf(b)
		for i := 1; i < len(c); i++ {
			if c[i].ms <= c[i-1].ms {
				t.Error(c)
			}
		}
		_ = parseMetadata(b)
		table, err := parseTable(b)
		if err != nil {
			return
		}
		for i := range table.names {
			for _, s := range []record.Series{table.gauge(record.Series{}, i, 0.01, time.Time{}), table.counter(record.Series{}, []int{i}, 0.01, time.Unix(1, 0))} {
				for j := range s.T {
					if s.T[j] < 0 || j > 0 && (s.T[j] < s.T[j-1] || s.Kind == record.Counter && s.V[j] < s.V[j-1]) || len(s.T) != len(s.V) {
						t.Fatal(s)
					}
				}
			}
		}
	})
}

func FuzzMapping(f *testing.F) {
	f.Add("trees:\n- {dir: runc, sandbox: runc, levels: {cpu-limit: \"2\"}, quota: 2}\n- {dir: /kata}\nends: {server: {host: worker0, guest: pod0, process: qemu, link: 25Gbit/s}, client: {host: worker1, native: true}}")
	f.Add("trees: [{dir: ../../etc, quota: .nan}]")
	f.Add("ends: {server: {host: a, link: 1e400Gbit/s}}")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMapping("/top/m.yaml", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "/top/m.yaml: ") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		for _, tree := range m.Trees {
			if !filepath.IsAbs(tree.Dir) || !(tree.Quota >= 0 && tree.Quota <= 1e6) {
				t.Errorf("the tree %+v was accepted", tree)
			}
		}
		for name, e := range m.Endpoints {
			if e.Host+e.Guest == "" || e.Link != "" && !(e.link > 0) || math.IsInf(e.link, 0) {
				t.Errorf("the end %s was accepted: %+v", name, e)
			}
		}
	})
}
