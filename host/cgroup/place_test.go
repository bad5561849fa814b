package cgroup_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/host/cgroup"
)

const all = "cpuset cpu io memory hugetlb pids"

// inContainer is the version 2 tree of a container with its own cgroup namespace: its root
// is a group like any other, and holds the container's processes.
func inContainer(t *testing.T) (*cgroup.Hierarchy, string) {
	t.Helper()
	h, top := fakeV2(t, all, "")
	overwrite(t, "domain\n", top, "cgroup.type")
	overwrite(t, "1\n9\n", top, "cgroup.procs")
	return h, top
}

func overwrite(t *testing.T, text string, parts ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(parts...), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// same compares the words of a control file, in any order.
func same(t *testing.T, want string, parts ...string) {
	t.Helper()
	got, wanted := strings.Fields(read(t, parts...)), strings.Fields(want)
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: %q, want %q", filepath.Join(parts...), got, wanted)
	}
}

// TestV2PassesAllOn: the baseline gets the controllers that OCI runtimes enable for
// their containers, io among them.
func TestV2PassesAllOn(t *testing.T) {
	h, top := fakeV2(t, all, "memory pids")
	g, err := h.Create("tare/a", cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, all, top, "cgroup.subtree_control")
	same(t, all, top, "tare", "cgroup.subtree_control")
	if err := g.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The changes are reported, and undone.
	if s := h.Altered(); !strings.Contains(s, "passes on") || !strings.Contains(s, "hugetlb") {
		t.Errorf("Altered: %q", s)
	}
	if err := h.TakeBack(); err != nil {
		t.Fatal(err)
	}
	same(t, "memory pids", top, "cgroup.subtree_control")
	if s := h.Altered(); s != "" {
		t.Errorf("Altered after TakeBack: %q", s)
	}
}

// TestCreateInAContainer: if Hold did not prepare the place, Create must not make the group
// "domain threaded".
func TestCreateInAContainer(t *testing.T) {
	h, top := inContainer(t)
	for _, l := range []cgroup.Limits{{}, {CPU: 1}} {
		if _, err := h.Create("tare/a", l); err == nil || !strings.Contains(err.Error(), "processes are in "+top) {
			t.Errorf("Create beside processes: %v", err)
		}
	}
	same(t, "", top, "cgroup.subtree_control")
	same(t, "domain", top, "cgroup.type")
}

// TestCreateBesideProcesses: in a group of ours, a child works without controllers that
// nobody needs.
func TestCreateBesideProcesses(t *testing.T) {
	h, top := fakeV2(t, all, all)
	if _, err := h.Create("tare/a", cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	overwrite(t, "77\n", top, "tare/a/cgroup.procs")
	if _, err := h.Create("tare/a/b", cgroup.Limits{}); err != nil {
		t.Error(err)
	}
	if _, err := h.Create("tare/a/c", cgroup.Limits{CPU: 1}); err == nil || !strings.Contains(err.Error(), "enabling cpu") {
		t.Errorf("a limit beside processes: %v", err)
	}
	same(t, "domain", top, "tare/a/cgroup.type")
}

func TestHoldInAContainer(t *testing.T) {
	for _, kind := range []string{"domain", "domain threaded"} {
		h, top := inContainer(t)
		if kind != "domain" { // as an earlier tare left it
			overwrite(t, kind+"\n", top, "cgroup.type")
			overwrite(t, "cpu pids\n", top, "cgroup.subtree_control")
		}
		p, err := cgroup.HoldFake(h, nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		same(t, "1 9", top, cgroup.Aside, "cgroup.procs")
		same(t, "", top, "cgroup.procs")
		same(t, "domain", top, "cgroup.type")
		g, err := h.Create("tare/a", cgroup.Limits{CPU: 1, Memory: 1 << 20})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if err := g.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
		overwrite(t, "1\n9\n33\n", top, cgroup.Aside, "cgroup.procs") // one was started meanwhile
		for range 2 {
			if err := p.Release(); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		same(t, "1 9 33", top, "cgroup.procs")
		same(t, "", top, "cgroup.subtree_control")
		same(t, "domain", top, "cgroup.type")
		if _, err := os.Stat(filepath.Join(top, cgroup.Aside)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", cgroup.Aside, err)
		}
	}
}

// TestHoldBesideForeignProcesses: a process without a number here cannot be moved, so Hold
// moves nothing.
func TestHoldBesideForeignProcesses(t *testing.T) {
	h, top := inContainer(t)
	overwrite(t, "0\n9\n", top, "cgroup.procs")
	if _, err := cgroup.HoldFake(h, nil); err == nil || !strings.Contains(err.Error(), "1 processes from outside this PID namespace") {
		t.Errorf("Hold: %v", err)
	}
	same(t, "0 9", top, "cgroup.procs")
	same(t, "", top, "cgroup.subtree_control")
}

// TestKilledInAContainer: the next run finds what a killed run left, from the tree alone.
func TestKilledInAContainer(t *testing.T) {
	h, top := inContainer(t)
	if _, err := cgroup.HoldFake(h, nil); err != nil {
		t.Fatal(err)
	}
	if s := h.Altered(); !strings.Contains(s, "2 processes in "+cgroup.Aside) {
		t.Errorf("Altered: %q", s)
	}
	// A later run finds this state, and still knows the state before.
	if _, err := cgroup.HoldFake(h, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.TakeBack(); err != nil {
		t.Fatal(err)
	}
	same(t, "1 9", top, "cgroup.procs")
	same(t, "", top, "cgroup.subtree_control")
}

// TestNoteOfNothing: the note of a killed run of which nothing is left says no more what the
// host was like.
func TestNoteOfNothing(t *testing.T) {
	h, top := fakeV2(t, all, "cpu pids")
	if _, err := cgroup.HoldFake(h, nil); err != nil {
		t.Fatal(err)
	}
	overwrite(t, "cpu\n", top, "cgroup.subtree_control") // somebody else tidied up, and more
	p, err := cgroup.HoldFake(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	same(t, "cpu", top, "cgroup.subtree_control")
}

// TestTakeBackSparesOthers: a controller that another group uses by now stays.
func TestTakeBackSparesOthers(t *testing.T) {
	h, top := fakeV2(t, all, "pids")
	p, err := cgroup.HoldFake(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"passes-on": "cgroup.subtree_control", "limited": "cpu.max"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
		overwrite(t, map[string]string{"cpu.max": "5000 100000\n", "cgroup.subtree_control": "memory\n"}[file], top, name, file)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	same(t, "pids memory cpu", top, "cgroup.subtree_control")
}

// TestHoldUnderSystemd: groups are in the scope. systemd disables the controllers that it
// manages, and we disable the others.
func TestHoldUnderSystemd(t *testing.T) {
	h, top := fakeV2(t, all, "memory pids")
	cgroup.SetSystemd(h)
	p, err := cgroup.HoldFake(h, func(string) error {
		overwrite(t, "cpuset cpu io memory pids\n", top, "cgroup.subtree_control")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := h.Create("tare/a", cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := h.Path("cpu", "tare/a")
	if want := filepath.Join(top, "tare.scope/tare/a"); dir != want || h.Absolute("tare/a/c") != "/tare.scope/tare/a/c" {
		t.Errorf("the group is at %s and %s, want %s", dir, h.Absolute("tare/a/c"), want)
	}
	same(t, all, top, "cgroup.subtree_control")
	same(t, all, top, "tare.scope/tare/cgroup.subtree_control")
	if err := g.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(top, "tare.scope")); err != nil { // systemd does
		t.Fatal(err)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	same(t, "cpuset cpu io memory pids", top, "cgroup.subtree_control")
}

// TestHoldWithoutAScope: if systemd does not answer, Hold uses the plain place and says so.
func TestHoldWithoutAScope(t *testing.T) {
	h, top := fakeV2(t, all, "memory pids")
	cgroup.SetSystemd(h)
	p, err := cgroup.HoldFake(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Where(); !strings.Contains(s, filepath.Join(top, "tare")+"; systemd gave no scope") {
		t.Errorf("Where: %q", s)
	}
	if err := p.Release(); err != nil {
		t.Error(err)
	}
}

func TestLacks(t *testing.T) {
	h, top := fakeV2(t, "cpuset cpu pids", "")
	var names []string
	for _, l := range h.Lacks() {
		names = append(names, l.Name)
	}
	if want := []string{"memory", "io", "pressure"}; !slices.Equal(names, want) {
		t.Errorf("Lacks: %q, want %q", names, want)
	}
	proc := filepath.Join(top, "../../../proc/pressure")
	if err := os.MkdirAll(proc, 0o755); err != nil {
		t.Fatal(err)
	}
	overwrite(t, "some avg10=0.00\n", proc, "cpu")
	overwrite(t, all+"\n", top, "cgroup.controllers")
	if l := h.Lacks(); len(l) > 0 {
		t.Errorf("Lacks: %v", l)
	}
}

// TestReadOnly: under ProtectControlGroups= the user is root already.
func TestReadOnly(t *testing.T) {
	h, _ := fakeV2(t, all, all)
	cgroup.SetMkdir(h, func(string) error { return unix.EROFS })
	_, err := h.Create("tare/a", cgroup.Limits{})
	if err == nil || !strings.Contains(err.Error(), "ProtectControlGroups=no") || strings.Contains(err.Error(), "run as root") {
		t.Errorf("Create in a read-only tree: %v", err)
	}
}

// TestScopeRefused: the output of systemd-run reaches the user, and nothing hangs.
func TestScopeRefused(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "systemd-run"), []byte("#!/bin/sh\necho Failed to connect to bus >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	err := cgroup.StartScope(t.Context(), filepath.Join(t.TempDir(), cgroup.Scope))
	if err == nil || !strings.Contains(err.Error(), "systemd-run ended: Failed to connect to bus") {
		t.Errorf("error %v", err)
	}
}
