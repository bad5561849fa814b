package vm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/sandbox"
)

// blockSpec is a Spec of a machine with disks, which can be written to.
func blockSpec(t *testing.T, start string) sandbox.Spec {
	t.Helper()
	s := spec(t)
	s.Upper = filepath.Join(t.TempDir(), "upper, a=b")
	if err := os.Mkdir(s.Upper, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Options = map[string]string{paramMemory: "256", paramRootfs: rootBlock, paramStart: start}
	return s
}

// TestBlock: a root on a disk can be written to, /data is another disk, and nothing of
// them is left. One that cannot be written to refuses.
func TestBlock(t *testing.T) {
	k := host(t)
	s := blockSpec(t, startBoot)
	i := startVM(t, k, s)
	_, out, err := shell(t.Context(), i, "echo here > /new && read -r l < /new && echo $l && echo there > /data/x && read -r l < /data/x && echo $l")
	if err != nil || out != "here\nthere\n" {
		t.Fatalf("%q, %v", out, err)
	}
	t.Log(i.Boot())
	if i.Facts()["rootfs"] != rootBlock {
		t.Errorf("facts %v", i.Facts())
	}
	if err := i.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{s.Upper, s.Mounts[0].Source} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v %v", dir, left, err)
		}
	}
	other := blockSpec(t, startBoot)
	other.Upper = ""
	if exit, out, err := shell(t.Context(), startVM(t, k, other), "echo > /new"); err != nil || exit.Code == 0 {
		t.Errorf("a read-only root was written to: %q %v", out, err)
	}
}

// TestSnapshot: machines from one snapshot are different ones, with their own address,
// name and sizes.
func TestSnapshot(t *testing.T) {
	k := host(t)
	k.cfg.CacheDir = t.TempDir() // the snapshot is made here
	b, err := network.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	var macs, took [2]string
	for n := range macs {
		s := blockSpec(t, startSnapshot)
		s.CPULimit, s.MemoryLimit = 1, 128<<20
		if s.Network, err = b.Attach(s.Name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := b.Detach(s.Name); err != nil {
				t.Error(err)
			}
		})
		i := startVM(t, k, s)
		_, out, err := shell(t.Context(), i, "read -r l < /sys/class/net/eth0/address && echo $l && read -r l < /sys/devices/system/cpu/online && echo $l")
		mac, cpus, _ := strings.Cut(strings.TrimSpace(out), "\n")
		macs[n] = mac
		if err != nil || mac == "" || i.Facts()["start"] != startSnapshot {
			t.Errorf("%q, %v; facts %v", out, err, i.Facts())
		}
		if want := "0-1"; hostCPUs() > 1 && cpus != want {
			t.Errorf("processors %q are online, want %s", cpus, want)
		}
		for _, p := range i.Boot() {
			took[n] += p.Name + " " + p.Took.String() + ", "
		}
		t.Log(took[n])
	}
	if macs[0] == macs[1] {
		t.Errorf("both have the hardware address %s", macs[0])
	}
	saved, err := filepath.Glob(filepath.Join(k.cfg.CacheDir, "snapshots", "*.state"))
	if err != nil || len(saved) != 1 {
		t.Errorf("saved: %v, %v", saved, err)
	}
}

// zeroing is when the guest's kernel has begun to zero inode tables, if it does: within 5 s of the mount
// (EXT4_DEF_LI_MAX_START_DELAY in fs/ext4/ext4.h), at tens of megabytes a second.
const zeroing = 7 * time.Second

// TestCopiedRoot: a machine with a copy of the image writes to the copy, and nothing of it is left. The copy takes as
// much of the disk as the image, and grows by no more than what the machine writes.
func TestCopiedRoot(t *testing.T) {
	k := host(t)
	s := blockSpec(t, startBoot)
	s.Options[paramRootDisk] = rootCopy
	image, err := k.image(t.Context(), s.Root)
	if err != nil {
		t.Fatal(err)
	}
	var was, is, copied unix.Stat_t
	if err := unix.Stat(image, &was); err != nil {
		t.Fatal(err)
	}
	i := startVM(t, k, s)
	_, out, err := shell(t.Context(), i, "echo here > /new && read -r l < /new && echo $l")
	if err != nil || out != "here\n" || i.Facts()[paramRootDisk] != rootCopy {
		t.Errorf("%q, %v; facts %v", out, err, i.Facts())
	}
	time.Sleep(zeroing)
	if err := errors.Join(unix.Stat(image, &is), unix.Stat(filepath.Join(s.Upper, copyDisk), &copied)); err != nil {
		t.Fatal(err)
	}
	t.Logf("image %d blocks, copy %d; %v", was.Blocks, copied.Blocks, i.Boot())
	if is.Blocks != was.Blocks || copied.Blocks < was.Blocks*9/10 || copied.Blocks > was.Blocks+(16<<20)/512 {
		t.Errorf("the image has %d blocks, had %d; the copy has %d", is.Blocks, was.Blocks, copied.Blocks)
	}
	if err := i.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.Upper); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestSnapshotNeedsBlock(t *testing.T) {
	_, err := kind(t).read(sandbox.Spec{Want: sandbox.Want{Options: map[string]string{paramStart: startSnapshot}}}, 2)
	if err == nil || !strings.Contains(err.Error(), "rootfs = block") {
		t.Error(err)
	}
}
