package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWhole: the tree has this binary, a folder for each directory that is shown, and those of other
// mounts that the host has not; a sandbox's own directories are not the host's.
func TestWhole(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tree, shown, err := Whole(t.Context(), t.TempDir(), self, []string{"/no-such/of/mine", "/etc/no-such", "/tmp/mine"})
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"/proc", "/sys", "/dev", "/tmp", "/run"} {
		if slices.Contains(shown, own) {
			t.Errorf("the host's %s is shown", own)
		}
	}
	if !slices.Contains(shown, "/etc") || !slices.Contains(shown, "/usr") || !slices.IsSorted(shown) {
		t.Errorf("shown: %q", shown)
	}
	for _, dir := range []string{"proc", "dev", "tmp", "tmp/mine", "data", "etc", "usr", "no-such/of/mine"} {
		if st, err := os.Lstat(filepath.Join(tree.Path, dir)); err != nil || !st.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(tree.Path, "etc/no-such")); err == nil {
		t.Error("the tree has a folder that the host's directory would hide")
	}
	if st, err := os.Stat(filepath.Join(tree.Path, "tare")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("tare: %v, %v", st, err)
	}
	// Links such as /bin are the host's.
	if at, err := os.Lstat("/bin"); err == nil && at.Mode().Type() == fs.ModeSymlink {
		want, _ := os.Readlink("/bin")
		if got, err := os.Readlink(filepath.Join(tree.Path, "bin")); err != nil || got != want {
			t.Errorf("bin leads to %q, want %q: %v", got, want, err)
		}
	}
}
