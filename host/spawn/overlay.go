package spawn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/rootless"
)

// MountOverlay mounts an overlay over the tree at root. Writes go to the directory upper,
// and the tree never changes (Documentation/filesystems/overlayfs.rst). Call it in
// Options.Prepare of a Private process: the mount ends with its mount namespace, and the
// host does not see it. EmptyOverlay removes what was written.
func MountOverlay(root, upper string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if upper, err = filepath.Abs(upper); err != nil {
		return err
	}
	layer, work := filepath.Join(upper, overlayLayer), filepath.Join(upper, overlayWork)
	for _, dir := range []string{layer, work} {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // the root directory of a sandbox
			return fmt.Errorf("cannot make the upper layer of a writable root: %w", err)
		}
	}
	options := "lowerdir=" + escape(root) + ",upperdir=" + escape(layer) + ",workdir=" + escape(work)
	if rootless.Is() {
		options += ",userxattr" // overlayfs.rst: the marks of removed folders, without trusted.*
	}
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("cannot mount an overlay of %s and %s: %w; the second must be on a file system that overlayfs can write to (ext4, xfs, btrfs or tmpfs, not overlayfs or NFS): choose it with --data", root, upper, err)
	}
	return nil
}

// MountReadOnly puts a read-only view of a tree over it, for a process as in MountOverlay.
func MountReadOnly(root string) error {
	err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, "")
	switch {
	case err != nil:
	case rootless.Is(): // the host's flags are locked there
		err = ReadOnly(root)
	default: // a tree may be where the host has noexec
		err = unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	if err != nil {
		return fmt.Errorf("mounting %s: %w", root, err)
	}
	return nil
}

// PivotRoot makes dir, which is a mount point, the root of the calling thread, and takes the
// old root away: the new one goes on top of it, and then the old one is unmounted
// (pivot_root(2), "pivot_root(".", ".")").
func PivotRoot(dir string) error {
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root to %s: %w", dir, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting the old root: %w", err)
	}
	return unix.Chdir("/")
}

// The two directories that overlayfs needs on one file system.
const (
	overlayLayer = "upper"
	overlayWork  = "work"
)

// EmptyOverlay removes what MountOverlay made below upper. Call it when nothing runs in the
// overlay. It ignores an empty upper.
func EmptyOverlay(upper string) error {
	if upper == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(filepath.Join(upper, overlayLayer)), os.RemoveAll(filepath.Join(upper, overlayWork)))
}

// escape escapes the characters of a path that overlayfs takes for separators.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace(path)
}
