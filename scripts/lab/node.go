package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// layout is how a node's mount namespace differs from the host's. On its own /run and /var
// everything has its usual place, and the host's are not seen.
type layout struct {
	Dir     string // the node's folder, which has var/, etc/, run/ and kernel/
	Bin     string // the programs
	Unified bool   // give it a control group namespace, and mount that: version 2 alone
}

// kernelFiles are the kernel's settings that a kubelet wants to change. It gets plain files in
// their place, with the values that it wants.
func kernelFiles() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// prepare makes the folders and files that make mounts.
func (t layout) prepare() error {
	for _, d := range []string{"run", "etc", "var/lib/kubelet", "var/lib/containerd", "var/lib/volumes", "var/log/pods", "var/tmp"} {
		if err := os.MkdirAll(filepath.Join(t.Dir, d), 0o755); err != nil { //nolint:gosec // containers have folders below
			return err
		}
	}
	for name, value := range kernelFiles() {
		if err := writeFile(filepath.Join(t.Dir, "kernel", name), []byte(value)); err != nil {
			return err
		}
	}
	return nil
}

// make puts this thread, and what it becomes, into a new mount namespace and mounts the node's
// own things there.
func (t layout) make() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("cannot make a mount namespace: %w; run as root", err)
	}
	// What the host unmounts must go here too; what is mounted here must not go to the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	if err := t.letGo(); err != nil {
		return err
	}
	run := filepath.Join(t.Dir, "run")
	if err := unix.Mount("tmpfs", run, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("cannot mount the node's /run: %w", err)
	}
	binds := [][2]string{
		{t.Bin, filepath.Join(run, "lab/bin")},
		{filepath.Join(t.Dir, "etc"), filepath.Join(run, "lab/etc")},
	}
	for name := range kernelFiles() {
		binds = append(binds, [2]string{filepath.Join(t.Dir, "kernel", name), filepath.Join("/proc/sys", name)})
	}
	// The node's folder may be below /var: its /var comes last.
	binds = append(binds, [2]string{run, "/run"}, [2]string{filepath.Join(t.Dir, "var"), "/var"})
	for _, b := range binds {
		if strings.HasPrefix(b[1], run+"/") {
			if err := os.MkdirAll(b[1], 0o755); err != nil { //nolint:gosec // as above
				return err
			}
		}
		if err := unix.Mount(b[0], b[1], "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("cannot bind %s to %s: %w", b[0], b[1], err)
		}
	}
	if t.Unified {
		if err := ownGroups(); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// letGo unmounts, here alone, what the host has mounted in folders that the node does not use:
// as long as a copy is mounted here, its owner cannot give a disk or a namespace back.
func (t layout) letGo() error {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return err
	}
	for _, mount := range slices.Backward(mounts) {
		at := mount.Mountpoint
		if !unused(at) || below(t.Dir, at) || below(t.Bin, at) {
			continue
		}
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && err != unix.EINVAL && err != unix.ENOENT {
			return fmt.Errorf("cannot unmount %s from the node's own mounts: %w", at, err)
		}
	}
	return nil
}

// unused says whether a path is in a folder of the host that a node has no use for.
func unused(path string) bool {
	return below(path, "/run") || below(path, "/var") || below(path, "/tmp")
}

// below says whether path is dir or in it.
func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// ownGroups makes the node's control group, which this process is in, the root of what the node
// sees: a kubelet changes every group above its pods', and the host's are not the lab's to
// change. Then it makes way: a group with processes cannot have children with limits.
func ownGroups() error {
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("cannot make a control group namespace: %w", err)
	}
	const at = "/sys/fs/cgroup"
	if err := unix.Mount("cgroup2", at, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("cannot mount the node's control groups: %w", err)
	}
	return os.WriteFile(filepath.Join(at, daemons(""), "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600)
}
