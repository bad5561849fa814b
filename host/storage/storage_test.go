package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// made is a host with an LVM volume on a RAID of two disks, a partition, and a loop device.
func made(t *testing.T) Finder {
	t.Helper()
	sys := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		t.Helper()
		path := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(sys, to), path); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"nvme0n1", "nvme1n1"} {
		write("devices/"+d+"/size", "1953525168")
		write("devices/"+d+"/queue/scheduler", "[none] mq-deadline")
		write("devices/"+d+"/queue/rotational", "0")
		link("devices/md0/slaves/"+d, "devices/"+d)
	}
	write("devices/md0/md/level", "raid0")
	write("devices/dm-0/dm/name", "vg-data")
	write("devices/dm-0/dm/uuid", "LVM-abc")
	link("devices/dm-0/slaves/md0", "devices/md0")
	link("dev/block/253:0", "devices/dm-0")
	write("devices/sda/queue/scheduler", "none [bfq]")
	write("devices/sda/queue/rotational", "1")
	write("devices/sda/device/model", "WDC WD40  ")
	write("devices/sda/sda1/partition", "1")
	link("dev/block/8:1", "devices/sda/sda1")
	loop := t.TempDir()
	write("devices/loop3/loop/backing_file", loop)
	link("dev/block/7:3", "devices/loop3")
	link("devices/knot/slaves/knot", "devices/knot")
	link("dev/block/9:9", "devices/knot")
	return Finder{Sys: sys, Mounts: func() ([]*mountinfo.Info, error) {
		return []*mountinfo.Info{
			{Mountpoint: "/", FSType: "ext4", Options: "rw,relatime", VFSOptions: "rw,errors=remount-ro", Major: 8, Minor: 1},
			{Mountpoint: loop, FSType: "xfs", Options: "rw", Major: 253, Minor: 0},
			{Mountpoint: "/dev/shm", FSType: "tmpfs", Options: "rw", VFSOptions: "rw,size=1g"},
		}, nil
	}}
}

func TestDescribe(t *testing.T) {
	f := made(t)
	const raid = "dm-0 (LVM vg-data) on md0 (raid0) on nvme0n1 (931GiB, scheduler none, not rotational) and nvme1n1 (931GiB, scheduler none, not rotational)"
	for path, want := range map[string]string{
		"/":        "ext4 (rw,relatime,errors=remount-ro) on sda1 on sda (WDC WD40, scheduler bfq, rotational)",
		"/dev/shm": "tmpfs (rw,size=1g)",
		"/none":    "",
	} {
		if got := f.Describe(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := f.device(7, 3, deepest); got != "loop3 (loop device of a file) on xfs (rw) on "+raid {
		t.Errorf("%q", got)
	}
	if got := f.device(9, 9, deepest); strings.Count(got, "knot") > deepest+1 {
		t.Errorf("a circle: %q", got)
	}
	if got := f.device(1, 1, deepest); got != "" {
		t.Errorf("%q", got)
	}
}

// TestHere: this host has something to say on the directory of the test.
func TestHere(t *testing.T) {
	got := New().Describe(t.TempDir())
	t.Log(got)
	if !strings.Contains(got, "(rw") {
		t.Errorf("%q", got)
	}
}
