package cgroup_test

import (
	"errors"
	"io/fs"
	"os/exec"
	"testing"

	"tare/host/cgroup"
)

// TestInForce: the limits that bound a group are the least on its way up, and are found by a
// part of its name, in the group with the threads.
func TestInForce(t *testing.T) {
	h := host(t)
	top := create(t, h, group+"-podab12", cgroup.Limits{CPU: 0.5, Memory: 64 << 20})
	idle := create(t, h, group+"-podab12/idle", cgroup.Limits{})
	busy := create(t, h, group+"-podab12/work", cgroup.Limits{CPU: 0.3})
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleep.Process.Kill() // perhaps dead already
		_ = sleep.Wait()         // killed
	})
	if err := busy.Add(sleep.Process.Pid); err != nil {
		t.Fatal(err)
	}
	found, err := h.Find(func(name string) bool { return name == "cgroup-test-podab12" })
	if err != nil || found.Rel() != top.Rel() {
		t.Fatalf("found %v, %v", found, err)
	}
	if b, err := found.Busiest(); err != nil || b.Rel() != busy.Rel() {
		t.Errorf("the busiest is %v, %v", b, err)
	}
	for g, want := range map[*cgroup.Group]struct {
		cpu     float64
		limited string
	}{busy: {0.3, busy.Rel()}, idle: {0.5, top.Rel()}} {
		l, limited, err := g.InForce(found)
		if err != nil || l.CPU != want.cpu || l.Memory != 64<<20 || limited != want.limited {
			t.Errorf("%s: %+v in %s, %v", g.Rel(), l, limited, err)
		}
	}
	if _, err := h.Find(func(string) bool { return false }); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
