package observer

import (
	"strings"
	"testing"

	"tare/host/cgroup"
)

// TestRootIn: a node's mount table names the file system of a container's root and its snapshotter.
func TestRootIn(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	at := " /run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id + "/rootfs rw - "
	for _, c := range []struct{ line, id, want string }{
		{"77 1 0:50 /" + at + "overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/3/fs", id, "overlay, snapshotter overlayfs"},
		{"77 1 8:1 /var/lib/containerd/io.containerd.snapshotter.v1.native/snapshots/40" + at + "ext4 /dev/sda1 rw", id, "ext4, snapshotter native"},
		{"77 1 253:4 /" + at + "ext4 /dev/mapper/pool-snap-4 rw", id, "ext4 on a block device"},
		{"77 1 0:60 /" + at + "erofs none ro", id, "erofs"},
		{"77 1 0:50 / / rw - overlay overlay rw", id, ""},
		{"77 1 0:50 / / rw - overlay overlay rw", "", "overlay"},
		{"no table", "", ""},
	} {
		if got := rootIn(strings.NewReader(c.line+"\n"), c.id); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

func TestInterfaces(t *testing.T) {
	const table = "Inter-|   Receive\n face |bytes\n    lo: 1 2\n  eth0: 3 4\ntap0_kata: 5 6\n  net1: 7 8\n"
	if got := interfaces(table); got != "eth0 net1" {
		t.Errorf("%q", got)
	}
}

// TestAround: what this host tells of this test's own process is there, and a group without processes is no error.
func TestAround(t *testing.T) {
	p := process("/proc/self")
	if p.root("") == "" || p.parent() == "" {
		t.Errorf("root %q, parent %q", p.root(""), p.parent())
	}
	h, err := cgroup.Detect()
	if err != nil {
		t.Skipf("no control groups on this host: %v", err)
	}
	if a := around(h.Open("tare/none")); a.Kernel == "" || a.Root != "" {
		t.Errorf("%+v", a)
	}
}
