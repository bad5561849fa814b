package cgroup_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/host/cgroup"
	"tare/host/state/statetest"
)

const group = "tare/cgroup-test"

// host is the hierarchy of this machine, held for the test, which must leave
// it as it was.
func host(t *testing.T) *cgroup.Hierarchy {
	t.Helper()
	statetest.HostLock(t)
	h, err := cgroup.Detect()
	if err != nil {
		t.Skip("no control groups on this host: ", err)
	}
	statetest.Unchanged(t)
	return h
}

func create(t *testing.T, h *cgroup.Hierarchy, rel string, l cgroup.Limits) *cgroup.Group {
	t.Helper()
	g, err := h.Create(rel, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { destroy(t, g) })
	return g
}

func destroy(t *testing.T, g *cgroup.Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := g.Destroy(ctx); err != nil {
		t.Error(err)
	}
}

// sh starts a shell in the group and returns once it is there.
func sh(t *testing.T, g *cgroup.Group, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read go; "+script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := g.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

func TestHostLife(t *testing.T) {
	h := host(t)
	g := create(t, h, group, cgroup.Limits{CPU: 0.5, Memory: 64 << 20, CPUs: "0"})
	// Two that ignore what can be ignored, one in a child group.
	cmd := sh(t, g, `trap "" TERM INT HUP; sleep 60 & wait; sleep 60`)
	child := create(t, h, group+"/child", cgroup.Limits{})
	kid := sh(t, child, "exec sleep 60")
	until(t, "three processes", func() bool {
		pids, err := g.Procs()
		if err != nil {
			t.Fatal(err)
		}
		return len(pids) >= 3
	})
	destroy(t, g)
	for _, c := range []*exec.Cmd{cmd, kid} {
		_ = c.Wait()
		ws, ok := c.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || ws.Signal() != syscall.SIGKILL {
			t.Errorf("process %d: %v, want killed", c.Process.Pid, c.ProcessState)
		}
	}
	if pids, err := g.Procs(); err != nil || len(pids) > 0 {
		t.Errorf("Procs after Destroy: %v, %v", pids, err)
	}
}

func TestHostForks(t *testing.T) {
	h := host(t)
	g := create(t, h, group, cgroup.Limits{})
	// A shell that replaces itself all the time: its number is gone before it
	// can be killed by number.
	sh(t, g, `f() { sleep 0.01; f & }; f; f; f; f`)
	until(t, "forks", func() bool { p, _ := g.Procs(); return len(p) > 2 })
	destroy(t, g)
}

func TestHostFrozen(t *testing.T) {
	h := host(t)
	g := create(t, h, group, cgroup.Limits{})
	sh(t, g, "exec sleep 60")
	file, value := "cgroup.freeze", "1"
	dir, ok := h.Path("freezer", group)
	if ok {
		file, value = "freezer.state", "FROZEN"
	} else if dir, ok = h.Path("", group); !ok {
		t.Skip("no freezer on this host")
	}
	if err := os.WriteFile(dir+"/"+file, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	destroy(t, g)
}

func TestHostOOM(t *testing.T) {
	h := host(t)
	if _, ok := h.Path("memory", ""); !ok {
		t.Skip("no memory controller on this host")
	}
	g := create(t, h, group, cgroup.Limits{Memory: 8 << 20})
	if n, err := g.OOMKills(); err != nil || n != 0 {
		t.Fatalf("OOMKills at first: %d, %v", n, err)
	}
	if full, err := g.LimitReached(); err != nil || full {
		t.Fatalf("LimitReached at first: %v, %v", full, err)
	}
	cmd := sh(t, g, "exec head -c 64000000 /dev/zero | tail -c 60000000 >/dev/null")
	_ = cmd.Wait()
	until(t, "a kill for memory", func() bool {
		n, err := g.OOMKills()
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	if full, err := g.LimitReached(); err != nil || !full {
		t.Errorf("LimitReached: %v, %v", full, err)
	}
}

func TestHostQuota(t *testing.T) {
	h := host(t)
	if _, ok := h.Path("cpu", ""); !ok {
		t.Skip("no cpu controller on this host")
	}
	g := create(t, h, group, cgroup.Limits{CPU: 0.2})
	begun := time.Now()
	cmd := sh(t, g, "while :; do :; done")
	time.Sleep(time.Second)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	took := time.Since(begun) // a second or, where others use the processors, more
	if used > took/5+150*time.Millisecond || used < 5*time.Millisecond {
		t.Errorf("used %v in %v with a limit of 0.2 cores", used, took)
	}
}

// TestHostUnified drives the version 2 code on the host's true version 2 tree,
// which on a hybrid host has no controllers of ours.
func TestHostUnified(t *testing.T) {
	machine := host(t)
	dir, ok := machine.Path("", "")
	if !ok {
		t.Skip("no version 2 tree on this host")
	}
	h, err := cgroup.DetectFrom(strings.NewReader("1 0 0:1 / " + dir + " rw - cgroup2 cgroup2 rw\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := create(t, h, group, cgroup.Limits{})
	sh(t, g, `trap "" TERM; sleep 60 & wait`)
	until(t, "two processes", func() bool { p, _ := g.Procs(); return len(p) == 2 })
	destroy(t, g)

	if _, ok := h.Path("cpu", ""); ok {
		return
	}
	if _, err := h.Create(group, cgroup.Limits{CPU: 1}); err == nil || !strings.Contains(err.Error(), "the cpu controller is not available") {
		t.Errorf("a CPU limit without a cpu controller: %v", err)
	}
}

func TestHostRefusesItself(t *testing.T) {
	h := host(t)
	g := create(t, h, group, cgroup.Limits{})
	if _, ok := h.Path("freezer", ""); !ok {
		t.Skip("moving the test itself is tried on version 1 only, where one tree suffices")
	}
	root, _ := h.Path("freezer", "")
	dir, _ := h.Path("freezer", group)
	if err := os.WriteFile(dir+"/cgroup.procs", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	err := g.Destroy(context.Background())
	if err2 := os.WriteFile(root+"/cgroup.procs", []byte("0"), 0); err2 != nil {
		t.Fatal(err2)
	}
	if err == nil || !strings.Contains(err.Error(), "this process is in") {
		t.Errorf("Destroy of the caller's own group: %v", err)
	}
}
