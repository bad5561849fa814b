package store

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadOnlyMedium: a run that goes on in a folder on a read-only file system is told so, and what it can do.
func TestReadOnlyMedium(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, "size=1m"); err != nil {
		t.Skipf("this test needs the right to mount a tmpfs, which this machine does not give: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	lock, err := lockDir(dir)
	if err == nil {
		_ = lock.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "is on a read-only file system") || !strings.Contains(err.Error(), "copy the folder") {
		t.Error(err)
	}
}
