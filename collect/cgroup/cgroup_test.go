package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/collect/collecttest"
	"tare/sandbox"
)

func TestMain(m *testing.M) { os.Exit(collecttest.Main(m)) }

// tree is cgroups on disk: dir/CONTROLLER/REL for version 1, dir/unified/REL
// for the unified tree.
type tree struct {
	t   *testing.T
	dir string
	v1  bool
}

func (w *tree) Path(controller, rel string) (string, bool) {
	if controller == "" {
		controller = "unified"
	} else if !w.v1 {
		return "", false
	}
	return filepath.Join(w.dir, controller, rel), true
}

func (w *tree) file(controller, rel, name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, controller, rel, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// fill copies testdata files into a cgroup.
func (w *tree) fill(controller, rel, from string, names ...string) {
	w.t.Helper()
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join("testdata", from, n))
		if err != nil {
			w.t.Fatal(err)
		}
		w.file(controller, rel, n, string(b))
	}
}

func v2(t *testing.T) *tree {
	w := &tree{t: t, dir: t.TempDir()}
	w.fill("unified", "tare/a", "v2-systemd", "cpu.stat", "cpu.max", "memory.current", "memory.peak", "memory.stat", "memory.events", "pids.current",
		"cpu.pressure", "memory.pressure", "io.pressure", "io.stat")
	w.fill("unified", "tare/a", "documented", "io.max")
	return w
}

func v1(t *testing.T) *tree {
	w := &tree{t: t, dir: t.TempDir(), v1: true}
	w.fill("cpu", "tare/a", "v1/cpu", "cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us")
	w.fill("cpuacct", "tare/a", "v1/cpuacct", "cpuacct.usage", "cpuacct.usage_user", "cpuacct.usage_sys", "cpuacct.stat")
	w.fill("memory", "tare/a", "v1/memory", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.stat", "memory.oom_control")
	w.fill("pids", "tare/a", "v1/pids", "pids.current")
	w.fill("blkio", "tare/a", "documented", "blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive", "blkio.throttle.write_iops_device")
	return w
}

func server(*testing.T, int) []sandbox.LocalScope {
	return []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{"tare/a"}, Limited: "tare/a"}}
}

func TestContractV2(t *testing.T) {
	collecttest.Run(t, collecttest.Subject{Collector: &Collector{paths: v2(t)}, Scopes: server, Partial: "there are limits of two kinds"})
}

func TestContractV1(t *testing.T) {
	collecttest.Run(t, collecttest.Subject{Collector: &Collector{paths: v1(t)}, Scopes: server, Partial: "version 1 has no pressure, and there is one limit"})
}

func TestContractNotHeld(t *testing.T) {
	collecttest.Run(t, collecttest.Subject{Collector: &Collector{paths: v2(t), held: 1}, Scopes: server, Partial: "there are limits of two kinds"})
}

// TestContractHere reads the host's root cgroup, the only one that a test finds
// without making one.
func TestContractHere(t *testing.T) {
	collecttest.Run(t, collecttest.Subject{
		Collector: New(),
		Scopes: func(*testing.T, int) []sandbox.LocalScope {
			return []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{"/"}, Limited: "/"}}
		},
		Partial: "the root cgroup does not have every file",
	})
}

var approx = cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })

func TestFiguresV2(t *testing.T) {
	want := map[string]float64{
		"cgroup_cpu{end=server}": 3.535269, "cgroup_cpu_user{end=server}": 0.769776, "cgroup_cpu_system{end=server}": 2.765493,
		"cgroup_periods{end=server}": 179, "cgroup_throttled_periods{end=server}": 167, "cgroup_throttled_time{end=server}": 18.189536, "cpu_quota{end=server}": 0.2,
		"cgroup_memory{end=server}": 21409792, "cgroup_memory_peak{end=server}": 67108864, "cgroup_memory_anon{end=server}": 21188608,
		"cgroup_memory_shmem{end=server}": 0, "cgroup_memory_kernel{end=server}": 184320,
		"cgroup_oom_kills{end=server}": 1, "cgroup_tasks{end=server}": 2,
		"cgroup_cpu_pressure{end=server}": 13.989872, "cgroup_memory_pressure{end=server}": 0.688999, "cgroup_io_pressure{end=server}": 0.11394,
		"cgroup_io_read{end=server}": 1048576 + 4374528, "cgroup_io_written{end=server}": 4194304,
		"cgroup_io_reads{end=server}": 16 + 70, "cgroup_io_writes{end=server}": 64,
		"cgroup_io_limit_read{end=server}": 2097152, "cgroup_io_limit_writes{end=server}": 120,
	}
	got := collecttest.Figures(t, &Collector{paths: v2(t)}, server(t, 0)...)()
	if d := cmp.Diff(want, got, approx); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestFiguresV1(t *testing.T) {
	want := map[string]float64{
		"cgroup_cpu{end=server}": 0.419592207, "cgroup_cpu_user{end=server}": 0.479961644, "cgroup_cpu_system{end=server}": 0.036,
		"cgroup_periods{end=server}": 22, "cgroup_throttled_periods{end=server}": 20, "cgroup_throttled_time{end=server}": 3.448500846, "cpu_quota{end=server}": 0.2,
		"cgroup_memory{end=server}": 311296, "cgroup_memory_peak{end=server}": 2097152, "cgroup_memory_anon{end=server}": 0, "cgroup_memory_shmem{end=server}": 0,
		"cgroup_oom_kills{end=server}": 0, "cgroup_tasks{end=server}": 0,
		"cgroup_io_read{end=server}": 1459200, "cgroup_io_written{end=server}": 314773504,
		"cgroup_io_reads{end=server}": 192, "cgroup_io_writes{end=server}": 353, "cgroup_io_limit_writes{end=server}": 90,
	}
	w := v1(t)
	got := collecttest.Figures(t, &Collector{paths: w}, server(t, 0)...)()
	if d := cmp.Diff(want, got, approx); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	// A hybrid host: version 1 counts, the unified tree adds pressure.
	w.fill("unified", "tare/a", "v2", "cpu.stat", "cpu.pressure")
	w.file("unified", "tare/a", "cpu.stat", "usage_usec 0\n")
	want["cgroup_cpu_pressure{end=server}"] = 1.731792
	got = collecttest.Figures(t, &Collector{paths: w}, server(t, 0)...)()
	if d := cmp.Diff(want, got, approx); d != "" {
		t.Errorf("hybrid: -want +got\n%s", d)
	}
}

func TestEndsAddUp(t *testing.T) {
	w := &tree{t: t, dir: t.TempDir()}
	for rel, usec := range map[string]string{"tare/a": "1000000", "tare/a/in": "400000", "tare/b": "20000", "tare/c": "3000"} {
		w.file("unified", rel, "cpu.stat", "usage_usec "+usec+"\nuser_usec 0\nsystem_usec 0\nnr_periods 1\nnr_throttled 1\nthrottled_usec 5\n")
		w.file("unified", rel, "memory.current", usec+"\n")
		w.file("unified", rel, "memory.events", "oom_kill 1\n")
	}
	scopes := []sandbox.LocalScope{
		{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{"tare/a", "tare/a/in"}, Limited: "tare/a/in"},
		{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{"/tare/b/"}},
		{Scope: sandbox.Scope{Endpoint: "client"}, Cgroups: []string{"tare/c"}},
	}
	read := collecttest.Figures(t, &Collector{paths: w}, scopes...)
	want := map[string]float64{
		"cgroup_cpu{end=server}": 1.02, "cgroup_cpu{end=client}": 0.003,
		"cgroup_memory{end=server}": 1020000, "cgroup_memory{end=client}": 3000,
		"cgroup_oom_kills{end=server}": 2, "cgroup_periods{end=server}": 1,
	}
	check := func(when string) {
		t.Helper()
		got := read()
		for k, v := range want {
			if !cmp.Equal(got[k], v, approx) {
				t.Errorf("%s: %s = %v, want %v", when, k, got[k], v)
			}
		}
		if _, ok := got["cgroup_periods{end=client}"]; ok {
			t.Error("throttling of a sandbox without a limit")
		}
	}
	check("at first")
	// The file of a removed cgroup cannot be read; a file here can only become
	// unreadable to the parser, which is the same to the sums.
	w.file("unified", "tare/a", "cpu.stat", "")
	w.file("unified", "tare/a", "memory.current", "")
	want["cgroup_memory{end=server}"] = 20000
	check("after one has gone")
}

// TestQuota: absent without a limit, there when one is set later, the sum over the
// limited groups of an endpoint, and nothing where one of them has no limit.
func TestQuota(t *testing.T) {
	const quota = "cpu_quota{end=server}"
	for name, c := range map[string]struct {
		v1  bool
		set func(w *tree, rel, quota, period string)
	}{
		"v1": {true, func(w *tree, rel, quota, period string) {
			w.file("cpu", rel, "cpu.cfs_quota_us", strings.Replace(quota, "max", "-1", 1)+"\n")
			w.file("cpu", rel, "cpu.cfs_period_us", period+"\n")
		}},
		"v2": {false, func(w *tree, rel, quota, period string) { w.file("unified", rel, "cpu.max", quota+" "+period+"\n") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := &tree{t: t, dir: t.TempDir(), v1: c.v1}
			for _, g := range []string{"tare/a", "tare/b"} {
				c.set(w, g, "max", "100000")
				w.file("unified", g, "pids.current", "1\n")
			}
			figures := collecttest.Figures(t, &Collector{paths: w},
				sandbox.LocalScope{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{"tare/a"}, Limited: "tare/a"}, sandbox.LocalScope{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{"tare/b"}, Limited: "tare/b"})
			read := func() (float64, bool) {
				v, ok := figures()[quota]
				return v, ok
			}
			if v, ok := read(); ok {
				t.Errorf("%v cores without a limit", v)
			}
			c.set(w, "tare/a", "125000", "100000")
			if v, ok := read(); ok {
				t.Errorf("%v cores, and one of the groups has no limit", v)
			}
			c.set(w, "tare/b", "50000", "200000")
			if v, ok := read(); !ok || !cmp.Equal(v, 1.5, approx) {
				t.Errorf("quota %v %v, want 1.5", v, ok)
			}
			c.set(w, "tare/b", "50000", "0")
			if v, ok := read(); ok {
				t.Errorf("%v cores of a period of nothing", v)
			}
		})
	}
}

// TestDiskNotCounted: no line of a device is no figure; a first line starts the
// series.
func TestDiskNotCounted(t *testing.T) {
	for _, v := range []struct {
		controller, file, none, some string
		requests                     float64 // in the same file
	}{
		{"blkio", "blkio.throttle.io_service_bytes_recursive", "Total 0\n", "8:16 Read 5\n8:16 Write 7\n8:16 Total 12\nTotal 12\n", 0},
		{"unified", "io.stat", "", "8:16 rbytes=5 wbytes=7 rios=1 wios=1 dbytes=0 dios=0\n", 1},
	} {
		w := &tree{t: t, dir: t.TempDir(), v1: v.controller != "unified"}
		w.file("unified", "tare/a", "pids.current", "1\n")
		w.file(v.controller, "tare/a", v.file, v.none)
		read := collecttest.Figures(t, &Collector{paths: w}, server(t, 0)...)
		for i, want := range []map[string]float64{
			{"cgroup_tasks{end=server}": 1},
			{"cgroup_tasks{end=server}": 1, "cgroup_io_read{end=server}": 5, "cgroup_io_written{end=server}": 7},
		} {
			if i == 1 && v.requests > 0 {
				want["cgroup_io_reads{end=server}"], want["cgroup_io_writes{end=server}"] = v.requests, v.requests
			}
			if i == 1 {
				w.file(v.controller, "tare/a", v.file, v.some)
			}
			if d := cmp.Diff(want, read()); d != "" {
				t.Errorf("%s, reading %d: -want +got\n%s", v.file, i, d)
			}
		}
	}
}

func TestOpenNothingThere(t *testing.T) {
	w := &tree{t: t, dir: t.TempDir()}
	_, err := (&Collector{paths: w}).Open(context.Background(), server(t, 0))
	if err == nil || !strings.Contains(err.Error(), "tare/a") || errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open = %v", err)
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	p, err := (&Collector{paths: v2(t)}).Open(context.Background(), server(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	collecttest.AllocatesNothing(t, p)
}

func FuzzParse(f *testing.F) {
	err := filepath.WalkDir("testdata", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "fuzz") {
			return err
		}
		b, err := os.ReadFile(path)
		f.Add(b)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	all := figures()
	f.Fuzz(func(t *testing.T, b []byte) {
		before := string(b)
		for _, g := range all {
			for _, s := range g.sources {
				n, ok := s.parse(b)
				if ok && n > 0 && !strings.ContainsAny(before, "123456789") {
					t.Errorf("%s of %q is %d", g.name, b, n)
				}
			}
		}
		if string(b) != before {
			t.Error("the input was changed")
		}
	})
}
