package spawn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/internal/rootless"
	"tare/sandbox"
)

// MountRoot puts on the tree at spec.Root what the sandbox sees of it: the tree itself,
// read-only, or an overlay that keeps what is written below spec.Upper; and on top of that the
// host's directories in spec.Shown. Call it as MountOverlay.
func MountRoot(spec sandbox.Spec) error {
	if len(spec.Shown) > 0 && spec.Upper != "" {
		return errors.New("a root that shows the host's directories cannot be written to; give a directory with a mount")
	}
	if spec.Upper != "" {
		return MountOverlay(spec.Root, spec.Upper)
	}
	root, err := filepath.Abs(spec.Root)
	if err != nil {
		return err
	}
	if err := MountReadOnly(root); err != nil {
		return err
	}
	for _, dir := range spec.Shown {
		if err := show(root, dir); err != nil {
			return fmt.Errorf("showing the host's %s: %w", dir, err)
		}
	}
	return nil
}

// ReadOnly makes the mount at a path read-only. Flags that the host has set, such as nosuid, stay.
func ReadOnly(at string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return err
	}
	// These flags have the same bits in statfs(2) and mount(2), but for relatime, which is the default.
	keep := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME) //nolint:gosec // bits
	return unix.Mount("", at, "", keep|unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

// show mounts a directory of the host read-only, without the file systems that are mounted
// below it. In a user namespace the kernel has them come along: mount_namespaces(7).
func show(root, dir string) error {
	at := filepath.Join(root, dir)
	if rootless.Is() {
		if err := unix.Mount(dir, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		return unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err := unix.Mount(dir, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return ReadOnly(at)
}

// MountPoint makes a directory in a sandbox's root, if it is not there, and opens it. A symbolic
// link in the tree cannot lead out of it. Mount at the path "/proc/self/fd/N" of the file.
func MountPoint(root, target string) (*os.File, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // nothing is written to it
	rel, err := filepath.Rel("/", target)
	if err != nil {
		return nil, err
	}
	dir, err := r.Open(rel)
	if errors.Is(err, os.ErrNotExist) {
		if err = r.MkdirAll(rel, 0o755); err == nil {
			dir, err = r.Open(rel)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the root has no directory %s for a mount, and it cannot be made: %w; choose a path that is there", target, err)
	}
	return dir, nil
}
