// Package imagetest gives tests of workloads the images that their roles need.
//
// The data path: 1. the image is built, or found, in the host's cache; 2. a
// copy that shares its files' contents is made for the test; 3. the test's own
// binary is put into the copy as /tare.
package imagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tare/host/image"
)

// Cache is the host's cache of images, shared by all tests: a build takes up to
// a minute.
const Cache = "/var/cache/tare/images"

// Tree returns the unpacked root file system of the image, with the test's own binary as
// /tare. The test must not write to it. If this host cannot build the image, Tree skips the
// test and says what the host lacks.
func Tree(t testing.TB, name string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for the host's image cache")
	}
	tree, release, err := (&image.Builder{Cache: Cache}).Use(t.Context(), name)
	if err != nil {
		t.Skipf("this host cannot build the image: %v", err)
	}
	defer release()
	dir := filepath.Join(t.TempDir(), name)
	// Links cost nothing, but not every two directories are on one file system.
	if exec.CommandContext(t.Context(), "cp", "-a", "--link", tree.Path, dir).Run() != nil { //nolint:gosec // a tree of the cache
		_ = os.RemoveAll(dir)
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", tree.Path, dir).CombinedOutput(); err != nil { //nolint:gosec // as above
			t.Fatalf("copying the tree: %v: %s", err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := image.Dress(dir, self); err != nil {
		t.Fatal(err)
	}
	return dir
}
