package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/host/loop"
	"tare/host/spawn"
	"tare/internal/devices"
	"tare/internal/rootless"
	"tare/sandbox"
	"tare/volume"
)

// enter gives the calling thread the sandbox's network namespace and, by last, its root. The
// thread already has a private mount namespace, with which all mounts made here
// vanish.
func enter(spec sandbox.Spec, disks loop.Volumes, last func(root string) error) error {
	if err := enterNetwork(spec.Network.Path); err != nil {
		return err
	}
	root, err := filepath.Abs(spec.Root)
	if err != nil {
		return err
	}
	if err := spawn.MountRoot(spec); err != nil {
		return err
	}
	if err := mountAll(root, spec.OwnRun()); err != nil {
		return err
	}
	if err := mountVolumes(root, spec.Mounts, disks); err != nil {
		return err
	}
	return last(root)
}

func enterNetwork(path string) error {
	if path == "" {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot make a network namespace: %w", err)
		}
		return upLoopback()
	}
	f, err := os.Open(path) //nolint:gosec // the namespace that run prepared
	if err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("cannot enter network namespace %s: %w", path, err)
	}
	return nil
}

// upLoopback brings up lo, which is down in a new namespace, as container runtimes do
// (netdevice(7)).
func upLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot bring up lo: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		return fmt.Errorf("cannot bring up lo: %w", err)
	}
	return nil
}

// mountAll makes the tree at root what oci's config.json makes of it: the same
// mounts with the same options, so that file systems never differ. run is Spec.OwnRun.
func mountAll(root string, run bool) error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	at := func(p string) string { return filepath.Join(root, p) }
	type mount struct {
		source, target, fstype string
		flags                  uintptr
		options                string
	}
	mounts := []mount{
		{"proc", at("proc"), "proc", quiet, ""},
		{"sysfs", at("sys"), "sysfs", quiet | unix.MS_RDONLY, ""},
		{"tmpfs", at("dev"), "tmpfs", unix.MS_NOSUID | unix.MS_STRICTATIME, "mode=755,size=65536k"},
		{"tmpfs", at("tmp"), "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	}
	if run {
		mounts = append(mounts, mount{"tmpfs", at("run"), "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, sandbox.RunOptions})
	}
	for _, m := range mounts {
		err := unix.Mount(m.source, m.target, m.fstype, m.flags, m.options)
		if rootless.Is() && errors.Is(err, unix.EPERM) { // the process ID namespace is the host's
			err = unix.Mount("/"+filepath.Base(m.target), m.target, "", unix.MS_BIND|unix.MS_REC, "")
		}
		if err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	return fill(at("dev"))
}

// mountVolumes puts the volumes where volume.Path says. Those that are not at /data are in a
// file system in memory, because the root may have no folders for them.
func mountVolumes(root string, mounts []sandbox.Mount, disks loop.Volumes) error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV
	folders := false
	for _, m := range mounts {
		at := filepath.Join(root, m.Path())
		if m.Mode == volume.Block {
			number, err := disks[m.Name].Number()
			if err == nil {
				err = unix.Mknod(at, unix.S_IFBLK|0o660, int(number)) //nolint:gosec // a device's number
			}
			if err != nil {
				return fmt.Errorf("volume %s: making %s: %w", m.Name, m.Path(), err)
			}
			continue
		}
		if m.Medium == volume.Bind {
			if err := bind(root, m); err != nil {
				return fmt.Errorf("mount %s: %w", m.Path(), err)
			}
			continue
		}
		if m.Name != volume.Data {
			if !folders {
				folders = true
				if err := unix.Mount("tmpfs", filepath.Join(root, volume.Root), "tmpfs", quiet, "mode=755,size=64k"); err != nil {
					return fmt.Errorf("mounting %s: %w", volume.Root, err)
				}
			}
			if err := os.Mkdir(at, 0o755); err != nil { //nolint:gosec // as /data is
				return err
			}
		}
		source, fstype, flags := m.Source, "", uintptr(unix.MS_BIND|unix.MS_REC)
		if d := disks[m.Name]; d != nil {
			source, fstype, flags = d.Path, "ext4", quiet
		}
		if err := unix.Mount(source, at, fstype, flags, ""); err != nil {
			return fmt.Errorf("volume %s: mounting %s at %s: %w", m.Name, source, m.Path(), err)
		}
	}
	return nil
}

// bind mounts a directory that the user gave.
func bind(root string, m sandbox.Mount) error {
	dir, err := spawn.MountPoint(root, m.Path())
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // nothing is written to it
	at := fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
	if err := unix.Mount(m.Source, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", m.Source, err)
	}
	if !m.ReadOnly {
		return nil
	}
	// The open directory is the one below the mount.
	top, err := spawn.MountPoint(root, m.Path())
	if err != nil {
		return err
	}
	defer top.Close() //nolint:errcheck // nothing is written to it
	return spawn.ReadOnly(fmt.Sprintf("/proc/self/fd/%d", top.Fd()))
}

// fill makes what is in dev: devices, links, and shared memory.
func fill(dev string) error {
	if err := errors.Join(devices.Nodes(dev), devices.Links(dev)); err != nil {
		return err
	}
	shm := filepath.Join(dev, "shm")
	err := os.Mkdir(shm, 0o700)
	if err == nil {
		err = unix.Mount("shm", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777,size=65536k")
	}
	if err != nil {
		return fmt.Errorf("making %s: %w", shm, err)
	}
	return nil
}
