package cgroup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/host/cgroup"
)

const samples = "testdata"

func detect(t *testing.T, name string) *cgroup.Hierarchy {
	t.Helper()
	f, err := os.Open(filepath.Join(samples, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	h, err := cgroup.DetectFrom(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		sample, version string
		paths           map[string]string // controller to directory; "" for none
	}{
		{"v1-beside-empty-v2.txt", cgroup.Hybrid, map[string]string{
			"cpu": "/sys/fs/cgroup/cpu/tare/a", "cpuacct": "/sys/fs/cgroup/cpuacct/tare/a",
			"memory": "/sys/fs/cgroup/memory/tare/a", "freezer": "/sys/fs/cgroup/freezer/tare/a",
			"": "/sys/fs/cgroup/unified/tare/a", "rdma": "",
		}},
		{"hybrid-systemd.txt", cgroup.Hybrid, map[string]string{
			"cpu": "/sys/fs/cgroup/cpu,cpuacct/tare/a", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/tare/a",
			"": "/sys/fs/cgroup/unified/tare/a",
		}},
		{"v2-systemd.txt", cgroup.V2, map[string]string{
			"": "/sys/fs/cgroup/tare/a", "cpuacct": "", "freezer": "",
		}},
	} {
		h := detect(t, c.sample)
		if h.Version != c.version {
			t.Errorf("%s: version %s, want %s", c.sample, h.Version, c.version)
		}
		for controller, want := range c.paths {
			got, ok := h.Path(controller, "tare/a")
			if ok != (want != "") || got != want {
				t.Errorf("%s: Path(%q) = %q, %v; want %q", c.sample, controller, got, ok, want)
			}
		}
	}
}

func TestDetectV1(t *testing.T) {
	const in = "30 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
		"31 23 0:28 / /var/lib/x/cpu rw - cgroup cgroup rw,cpu\n" +
		"32 23 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
	h, err := cgroup.DetectFrom(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	if h.Version != cgroup.V1 {
		t.Errorf("version %s", h.Version)
	}
	if p, _ := h.Path("cpu", "tare/x"); p != "/sys/fs/cgroup/cpu/tare/x" {
		t.Errorf("cpu is at %s", p)
	}
	if p, ok := h.Path("", "tare/x"); ok {
		t.Errorf("a unified tree at %s", p)
	}
}

// TestDetectNone: a table without control groups, or one that cannot be read, is an error.
func TestDetectNone(t *testing.T) {
	const cpu = "30 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	for name, in := range map[string]string{
		"none":             "22 27 0:21 / /proc rw,relatime - proc proc rw\n",
		"a point's name":   `36 35 0:9 / /tmp/a\040-\040cgroup2\040x\040rw rw - tmpfs tmpfs rw` + "\n",
		"no separator":     cpu + "36 35 0:9 / /a rw shared:1 tmpfs tmpfs rw,size=1 x y\n",
		"too few fields":   cpu + "36 35 0:9 / /a rw - tmpfs\n",
		"an empty line":    cpu + "\n",
		"a line of 64 KiB": cpu + strings.Repeat("x", 64<<10) + "\n",
	} {
		if h, err := cgroup.DetectFrom(strings.NewReader(in)); err == nil {
			t.Errorf("%s: %v, want an error", name, h)
		}
	}
}

func TestCheckRel(t *testing.T) {
	for rel, ok := range map[string]bool{
		"tare/a": true, "tare/a-1/b.c_d": true,
		"": false, "tare": false, "tare/": false, "other/a": false, "/tare/a": false,
		"tare/../a": false, "tare/.": false, "tare/a b": false, "tare//a": false,
		"tare/a\n": false, "tarex/a": false, "tare/-a": false,
		"tare/" + strings.Repeat("x", 129):   false,
		"tare" + strings.Repeat("/x", 8):     false,
		"tare/" + strings.Repeat("x", 128):   true,
		"tare/a/" + "memory.limit_in_bytes/": false,
	} {
		if err := cgroup.CheckRel(rel); (err == nil) != ok {
			t.Errorf("%q: %v, want ok %v", rel, err, ok)
		}
	}
}

func FuzzParseProcs(f *testing.F) {
	f.Add("1\n2\n30021\n")
	f.Add("0\n")
	f.Fuzz(func(t *testing.T, in string) {
		pids, _, err := cgroup.ParseProcs(strings.NewReader(in))
		for _, pid := range pids {
			if err == nil && pid <= 0 {
				t.Errorf("process %d", pid)
			}
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add("low 0\nhigh 0\nmax 53\noom 2\noom_kill 1\noom_group_kill 0\n")
	f.Add("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
	f.Fuzz(func(t *testing.T, in string) {
		if n, err := cgroup.ParseKey(strings.NewReader(in), "oom_kill"); err != nil && n != 0 {
			// ParseUint gives the bound together with a range error.
			if n != ^uint64(0) {
				t.Errorf("%d with error %v", n, err)
			}
		}
	})
}
