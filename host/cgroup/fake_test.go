package cgroup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tare/host/cgroup"
)

// fakeV2 is a version 2 tree as systemd mounts it, below a temporary directory.
func fakeV2(t *testing.T, controllers, on string) (*cgroup.Hierarchy, string) {
	t.Helper()
	root := t.TempDir()
	top := filepath.Join(root, "sys/fs/cgroup")
	if err := os.MkdirAll(top, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(dir string, files map[string]string) error {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	if err := put(top, map[string]string{"cgroup.controllers": controllers + "\n", "cgroup.subtree_control": on + "\n"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(samples, "v2-systemd.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	h, err := cgroup.FakeFrom(f, root, func(dir string) error {
		// Everything that the parent has: the kernel gives only what the parent
		// passes on, which a fake cannot follow.
		return put(dir, map[string]string{
			"cgroup.controllers": controllers + "\n", "cgroup.subtree_control": "", "cgroup.procs": "", "cgroup.kill": "", "cgroup.type": "domain\n",
			"cpu.max": "max 100000\n", "memory.max": "max\n", "memory.swap.max": "max\n", "cpuset.cpus": "\n",
			"memory.events": "low 0\nhigh 0\nmax 53\noom 2\noom_kill 1\noom_group_kill 0\n",
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, top
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestV2Limits(t *testing.T) {
	h, top := fakeV2(t, "cpuset cpu io memory pids", "cpu memory pids")
	g, err := h.Create("tare/a", cgroup.Limits{CPU: 1.5, Memory: 64 << 20, CPUs: "0-1"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range []string{"cpu.max", "memory.max", "memory.swap.max", "cpuset.cpus"} {
		got[f] = read(t, top, "tare/a", f)
	}
	// The files of a fake are not truncated by the kernel's reading: compare
	// the beginning, up to what is left of the longer text before it.
	want := map[string]string{"cpu.max": "150000 100000", "memory.max": "67108864", "memory.swap.max": "0ax", "cpuset.cpus": "0-1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n, err := g.OOMKills(); err != nil || n != 1 {
		t.Errorf("OOMKills = %d, %v", n, err)
	}
	if full, err := g.LimitReached(); err != nil || !full {
		t.Errorf("LimitReached = %v, %v", full, err)
	}
	if err := g.Destroy(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(top, "tare")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("tare is still there: %v", err)
	}
}

func TestV2WritesOnlyWhatIsMissing(t *testing.T) {
	h, top := fakeV2(t, "cpuset cpu io memory pids", "cpuset cpu io memory pids")
	if _, err := h.Create("tare/a", cgroup.Limits{CPU: 1}); err != nil {
		t.Fatal(err)
	}
	if s := read(t, top, "cgroup.subtree_control"); s != "cpuset cpu io memory pids" {
		t.Errorf("the root was written to: %q", s)
	}
}

func TestV2NotAvailable(t *testing.T) {
	h, top := fakeV2(t, "memory pids", "")
	_, err := h.Create("tare/a", cgroup.Limits{CPU: 1})
	if err == nil || !strings.Contains(err.Error(), "the cpu controller is not available") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(top, "tare")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed Create left tare: %v", err)
	}
	if _, err := h.Create("tare/a", cgroup.Limits{Memory: 1 << 20}); err != nil {
		t.Errorf("memory is there: %v", err)
	}
}

func TestHybridTakesV1(t *testing.T) {
	root := t.TempDir()
	f, err := os.Open(filepath.Join(samples, "hybrid-systemd.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	h, err := cgroup.FakeFrom(f, root, func(dir string) error {
		for _, name := range []string{"cpu.cfs_period_us", "cpu.cfs_quota_us", "cpuset.cpus", "cpuset.mems", "cgroup.procs", "memory.limit_in_bytes"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(root, "sys/fs/cgroup")
	for _, d := range []string{"unified", "systemd", "cpu,cpuacct", "freezer", "pids", "cpuset", "memory"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"cpuset.cpus": "0-3\n", "cpuset.mems": "0\n"} {
		if err := os.WriteFile(filepath.Join(base, "cpuset", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, err := h.Create("tare/a", cgroup.Limits{CPU: 0.25, Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"cpu,cpuacct/tare/a/cpu.cfs_quota_us": "25000", "cpuset/tare/a/cpuset.cpus": "0-3", "cpuset/tare/cpuset.mems": "0",
		"memory/tare/a/memory.limit_in_bytes": "1048576",
	} {
		if got := read(t, base, file); got != want {
			t.Errorf("%s = %q, want %q", file, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(base, "unified/tare")); err == nil {
		t.Error("the unified tree without controllers was used")
	}
	// What a runtime leaves in the other trees goes too.
	if err := os.MkdirAll(filepath.Join(base, "systemd/tare/a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := g.Destroy(context.Background()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(base, "*", "tare"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestLimitsRefused(t *testing.T) {
	h, _ := fakeV2(t, "cpu memory cpuset", "")
	for _, l := range []cgroup.Limits{{CPU: -1}, {CPU: 0.001}, {CPU: 1e12}, {Memory: -1}, {CPUs: "0\n"}, {CPUs: "all"}} {
		if _, err := h.Create("tare/a", l); err == nil {
			t.Errorf("%+v was taken", l)
		}
	}
	if _, err := h.Create("other/a", cgroup.Limits{}); err == nil {
		t.Error("a group outside of tare was made")
	}
	if err := h.Open("other").Destroy(context.Background()); err == nil {
		t.Error("a group outside of tare was destroyed")
	}
}

func TestCreateExisting(t *testing.T) {
	h, _ := fakeV2(t, "cpu memory", "")
	if _, err := h.Create("tare/a", cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Create("tare/a", cgroup.Limits{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("second Create: %v", err)
	}
}

func TestDestroyGivesUpWithItsContext(t *testing.T) {
	h, _ := fakeV2(t, "cpu memory", "")
	g, err := h.Create("tare/a", cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	cgroup.SetRmdir(h, func(string) error { tries++; return unix.EBUSY })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = g.Destroy(ctx)
	if !errors.Is(err, unix.EBUSY) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Destroy of a busy group: %v", err)
	}
	if tries < 2 {
		t.Errorf("tried %d times", tries)
	}
}

func TestDestroyTwice(t *testing.T) {
	h, _ := fakeV2(t, "cpu memory", "")
	g, err := h.Create("tare/a/b", cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if err := h.Open("tare/never").Destroy(context.Background()); err != nil {
		t.Error(err)
	}
}
