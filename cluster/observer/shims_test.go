package observer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/host/cgroup"
	"tare/host/state/statetest"
	"tare/record"
	"tare/sandbox"
)

// TestShims: a pod's shims are those whose -id is a container of the pod and that are not in the pod's group.
func TestShims(t *testing.T) {
	statetest.HostLock(t)
	h, err := cgroup.Detect()
	if err != nil {
		t.Skipf("no control groups on this host: %v", err)
	}
	id, other := strings.Repeat("0a", 32), strings.Repeat("1b", 32)
	var groups []*cgroup.Group
	for _, rel := range []string{"tare/podshims", "tare/podshims/cri-containerd-" + id + ".scope"} {
		g, err := h.Create(rel, cgroup.Limits{})
		if err != nil {
			t.Skipf("control groups cannot be made here: %v", err)
		}
		groups = append(groups, g)
	}
	t.Cleanup(func() {
		if err := groups[0].Destroy(context.Background()); err != nil { //nolint:usetesting // the test's context has ended
			t.Error(err)
		}
	})
	root := t.TempDir()
	for pid, args := range map[string][]string{
		"10":   {"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", id, "-address", "/run/x"},
		"11":   {"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", other},
		"12":   {"sleep", "-id", id},
		"13":   {"containerd-shim-kata-v2", "-id"},
		"14":   {"containerd-shim-kata-v2", "-id", id},
		"15":   {},
		"self": {"containerd-shim-runc-v2", "-id", id},
	} {
		dir := filepath.Join(root, pid)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cmdline"), []byte(strings.Join(args, "\x00")+"\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []shim{{10, "containerd-shim-runc-v2"}, {14, "containerd-shim-kata-v2"}}
	got := shims(root, groups[0])
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s := (&Found{Cgroup: "pod", Shims: got}).Scope(sandbox.ThreadRoles{{Role: record.RoleVMM}})
	if !slices.Equal(s.Alone, []int{10, 14}) ||
		s.Roles.Of(sandbox.Thread{Args: []string{"/usr/bin/containerd-shim-runc-v2"}}) != record.RoleShim ||
		s.Roles.Of(sandbox.Thread{Args: []string{"qemu"}}) != record.RoleVMM {
		t.Errorf("%+v", s)
	}
	if got := shims(root, h.Open("tare/none")); got != nil {
		t.Errorf("of no pod: %v", got)
	}
}
