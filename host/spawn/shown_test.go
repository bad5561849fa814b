package spawn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/sandbox"
)

// TestMountPoint: a link in a tree does not lead to the host's files.
func TestMountPoint(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	dir, err := MountPoint(root, "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	_ = dir.Close()
	if st, err := os.Stat(filepath.Join(root, "a/b")); err != nil || !st.IsDir() {
		t.Errorf("the directory is not made: %v", err)
	}
	for _, target := range []string{"/link", "/link/x"} {
		if _, err := MountPoint(root, target); err == nil || !strings.Contains(err.Error(), "choose a path that is there") {
			t.Errorf("%s: %v", target, err)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("made outside of the tree: %v, %v", left, err)
	}
}

// TestMountRootRefuses: the host's directories are never below a layer that can be written to.
func TestMountRootRefuses(t *testing.T) {
	if err := MountRoot(sandbox.Spec{Root: t.TempDir(), Upper: t.TempDir(), Shown: []string{"/etc"}}); err == nil || !strings.Contains(err.Error(), "cannot be written to") {
		t.Error(err)
	}
}
