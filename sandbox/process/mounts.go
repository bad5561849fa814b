package process

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/host/loop"
	"tare/host/spawn"
	"tare/sandbox"
	"tare/volume"
)

// enter gives the calling thread the sandbox's network namespace and root. The
// thread already has a private mount namespace, with which all mounts made here
// vanish.
func enter(spec sandbox.Spec, devices loop.Volumes) error {
	if err := enterNetwork(spec.Network.Path); err != nil {
		return err
	}
	root, err := filepath.Abs(spec.Root)
	if err != nil {
		return err
	}
	if err := mountRoot(root, spec.Upper); err != nil {
		return err
	}
	if err := mountAll(root); err != nil {
		return err
	}
	if err := mountVolumes(root, spec.Mounts, devices); err != nil {
		return err
	}
	// The new root on top of the old one, then the old one away:
	// pivot_root(2), "pivot_root(".", ".")".
	if err := unix.Chdir(root); err != nil {
		return fmt.Errorf("%s: %w", root, err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root to %s: %w", root, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting the old root: %w", err)
	}
	return unix.Chdir("/")
}

func enterNetwork(path string) error {
	if path == "" {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot make a network namespace: %w", err)
		}
		return nil
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

// mountRoot puts on the tree at root what the sandbox sees of it: itself, to be
// read only, or an overlay that keeps what is written below upper.
func mountRoot(root, upper string) error {
	if upper != "" {
		return spawn.MountOverlay(root, upper)
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", root, err)
	}
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", root, err)
	}
	return nil
}

// mountAll makes the tree at root what oci's config.json makes of it: the same
// mounts with the same options, so that file systems never differ.
func mountAll(root string) error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	at := func(p string) string { return filepath.Join(root, p) }
	mounts := []struct {
		source, target, fstype string
		flags                  uintptr
		options                string
	}{
		{"proc", at("proc"), "proc", quiet, ""},
		{"sysfs", at("sys"), "sysfs", quiet | unix.MS_RDONLY, ""},
		{"tmpfs", at("dev"), "tmpfs", unix.MS_NOSUID | unix.MS_STRICTATIME, "mode=755,size=65536k"},
		{"tmpfs", at("tmp"), "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	}
	for _, m := range mounts {
		if err := unix.Mount(m.source, m.target, m.fstype, m.flags, m.options); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	return devices(at("dev"))
}

// mountVolumes puts the volumes where volume.Path says. Those that are not at /data are in a
// file system in memory, because the root may have no folders for them.
func mountVolumes(root string, mounts []sandbox.Mount, devices loop.Volumes) error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV
	folders := false
	for _, m := range mounts {
		at := filepath.Join(root, m.Path())
		if m.Mode == volume.Block {
			number, err := devices[m.Name].Number()
			if err == nil {
				err = unix.Mknod(at, unix.S_IFBLK|0o660, int(number)) //nolint:gosec // a device's number
			}
			if err != nil {
				return fmt.Errorf("volume %s: making %s: %w", m.Name, m.Path(), err)
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
		if d := devices[m.Name]; d != nil {
			source, fstype, flags = d.Path, "ext4", quiet
		}
		if err := unix.Mount(source, at, fstype, flags, ""); err != nil {
			return fmt.Errorf("volume %s: mounting %s at %s: %w", m.Name, source, m.Path(), err)
		}
	}
	return nil
}

// devices fills /dev with what the OCI specification requires of a runtime
// (config-linux.md, "Default Devices"), less the terminals.
func devices(dev string) error {
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		path := filepath.Join(dev, name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil { //nolint:gosec // small numbers
			return fmt.Errorf("making %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // as these devices are everywhere
			return err
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
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
