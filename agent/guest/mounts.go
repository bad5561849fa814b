package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tare/internal/devices"
	"tare/sandbox"

	"golang.org/x/sys/unix"
)

// mount is one mount(2), and the folder that it needs.
type mount struct {
	source, target, fstype string
	flags                  uintptr
	options                string
}

const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// early lists the mounts that this program needs, in the initramfs.
func early() []mount {
	return []mount{
		{"devtmpfs", "dev", "devtmpfs", unix.MS_NOSUID, "mode=755"},
		{"proc", "proc", "proc", quiet, ""},
		{"sysfs", "sys", "sysfs", quiet, ""},
	}
}

// inRoot lists the mounts in the root of the commands. They are the same as in the other
// sandboxes, with the same options (sandbox/process/mounts.go, sandbox/oci/bundle.go).
func inRoot(run bool) []mount {
	out := []mount{
		{"proc", "proc", "proc", quiet, ""},
		{"sysfs", "sys", "sysfs", quiet | unix.MS_RDONLY, ""},
		{"tmpfs", "dev", "tmpfs", unix.MS_NOSUID | unix.MS_STRICTATIME, "mode=755,size=65536k"},
		{"devpts", "dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"},
		{"shm", "dev/shm", "tmpfs", quiet, "mode=1777,size=65536k"},
		{"tmpfs", "tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, fmt.Sprintf("mode=1777,size=%d", tmpSize(memory()))},
	}
	if run {
		out = append(out, mount{"tmpfs", "run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, sandbox.RunOptions})
	}
	return out
}

// Files in memory cannot be killed: a machine that is full of them panics, where it could
// have killed a command. So /tmp has half the memory, the default of tmpfs(5), but leaves
// this much beside /dev/shm for the kernel and the agent of a small machine.
const (
	shmSize  = 64 << 20
	keepFree = 128 << 20
	leastTmp = 16 << 20
)

func tmpSize(memory uint64) uint64 {
	if memory < shmSize+keepFree+leastTmp {
		return leastTmp
	}
	return min(memory/2, memory-shmSize-keepFree)
}

// memory returns the machine's memory at its boot, in bytes; 0 if it is unknown.
func memory() uint64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return s.Totalram * uint64(s.Unit)
}

// mountAll makes the mounts below root.
func mountAll(root string, mounts []mount) error {
	for _, m := range mounts {
		target := filepath.Join(root, m.target)
		if _, err := os.Stat(target); err != nil { // in tare's tmpfs; images have the folder
			if err := os.Mkdir(target, 0o755); err != nil { //nolint:gosec // as these folders are everywhere
				return err
			}
		}
		if err := unix.Mount(m.source, target, m.fstype, m.flags, m.options); err != nil {
			return fmt.Errorf("cannot mount %s at %s: %w", m.fstype, target, err)
		}
	}
	return nil
}

// fill makes the devices and links in dev.
func fill(dev string) error {
	return errors.Join(devices.Nodes(dev), devices.Links(dev), os.Symlink("pts/ptmx", filepath.Join(dev, "ptmx")))
}

// enter makes dir the root of this process, as switch_root(8) does.
func enter(dir string) error {
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("cannot move %s to /: %w", dir, err)
	}
	// All threads of this program share their root (CLONE_FS).
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return unix.Chdir("/")
}
