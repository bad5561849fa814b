package boot_test

import (
	"os"
	"path/filepath"
	"testing"

	"tare/host/rootfs"
)

// copyWithLibraries puts a program of the host into a tree.
func copyWithLibraries(t *testing.T, tree string, program string) {
	t.Helper()
	files, missing, err := rootfs.Closure([]string{program})
	if err != nil || len(missing) > 0 {
		t.Fatalf("%s: %v, missing %v", program, err, missing)
	}
	for _, f := range files {
		to := filepath.Join(tree, f.Path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if f.Source == "" {
			err = os.Symlink(f.Link, to)
		} else {
			var b []byte
			if b, err = os.ReadFile(f.Source); err == nil {
				err = os.WriteFile(to, b, 0o755)
			}
		}
		if err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
}
