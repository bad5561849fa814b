package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tare/internal/files"
)

// mustFetch builds, and skips where the host cannot fetch packages at all.
func mustFetch(t *testing.T, b *Builder, name string) Tree {
	t.Helper()
	tree, err := b.Build(t.Context(), name)
	if err == nil {
		return tree
	}
	for _, lack := range []string{"this host has no", "apt has no package lists", "apt's package lists", "cannot fetch packages", "run apt-get update", "cannot reach the package index", "this host lacks"} {
		if strings.Contains(err.Error(), lack) {
			t.Skip(err)
		}
	}
	t.Fatal(err)
	return Tree{}
}

// TestPackages: a real package with what it depends on, twice from empty caches,
// and it runs.
func TestPackages(t *testing.T) {
	recipe := recipes("app", "packages: [hostname, libc-bin]\nrun: [[ldconfig]]\n")
	if os.Geteuid() != 0 {
		recipe = recipes("app", "packages: [hostname]\n")
	}
	a := mustFetch(t, &Builder{Cache: t.TempDir(), Recipes: recipe}, "app")
	b := mustFetch(t, &Builder{Cache: t.TempDir(), Recipes: recipe}, "app")
	if a.Digest != b.Digest {
		t.Errorf("digests %s and %s", a.Digest, b.Digest)
	}
	packages := strings.Join(a.Packages, " ")
	for _, p := range []string{"hostname=", "libc6="} {
		if !strings.Contains(packages, p) {
			t.Errorf("%s is not in %s", p, packages)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root to change the root directory")
	}
	cmd := exec.Command("/bin/hostname", "--version")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: a.Path}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "hostname") {
		t.Errorf("%v %s", err, out)
	}
}

// TestOnly: of packages with all that they depend on, those that the recipe
// chooses, and of alternatives the first that there is.
func TestOnly(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", "packages: [tare-no-such-package | hostname | sed]\nonly: ['host*', 'libc[0-9]']\n")}
	tree := mustFetch(t, b, "app")
	var names []string
	for _, p := range tree.Packages {
		n, _, _ := strings.Cut(p, "=")
		names = append(names, n)
	}
	if got := strings.Join(names, " "); got != "hostname libc6" {
		t.Errorf("packages: %s", got)
	}
	debs, err := filepath.Glob(filepath.Join(b.Cache, "apt/debs/*.deb"))
	if err != nil || len(debs) != 2 {
		t.Errorf("fetched: %v %v", debs, err)
	}
	none := &Builder{Cache: t.TempDir(), Recipes: recipes("app", "packages: [hostname]\nonly: ['x*']\n")}
	if _, err := none.Build(t.Context(), "app"); err == nil || !strings.Contains(err.Error(), "matches only: x*") {
		t.Errorf("%v", err)
	}
}

// TestDamagedPackage: what the archive did not sign is not unpacked.
func TestDamagedPackage(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), Recipes: recipes("app", "packages: [gcc-12-base]\n")}
	if err := (apt{}).check(); err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command("apt-cache", "show", "gcc-12-base").Output(); err != nil || len(out) == 0 {
		t.Skip("this distribution has no package gcc-12-base, which depends on nothing")
	}
	mustFetch(t, b, "app")
	debs, _ := filepath.Glob(filepath.Join(b.Cache, "apt/debs/*.deb"))
	if len(debs) != 1 {
		t.Fatalf("packages kept: %v", debs)
	}
	f, err := os.ReadFile(debs[0])
	if err != nil {
		t.Fatal(err)
	}
	sum, err := files.Hash(debs[0])
	if err != nil {
		t.Fatal(err)
	}
	d, a := deb{File: filepath.Base(debs[0]), SHA256: sum}, apt{dir: filepath.Join(b.Cache, "apt")}
	if err := a.unpack(t.Context(), d, newTestUnpacker(t)); err != nil {
		t.Fatalf("whole: %v", err)
	}
	f[len(f)/2] ^= 1
	if err := os.WriteFile(debs[0], f, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := a.unpack(t.Context(), d, newTestUnpacker(t)); err == nil || !strings.Contains(err.Error(), "signed list says") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(debs[0]); err == nil {
		t.Error("the damaged package is kept")
	}
}

// TestWheels: a real wheel with its Python, compiled without times, twice.
func TestWheels(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Python's library twice")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	recipe := recipes("app", "packages: [python3]\nwheels: [six==1.17.0]\nrun: [[python3, -c, \"import six; print(six.__version__, file=open('/version', 'w'))\"]]\n")
	first := &Builder{Cache: t.TempDir(), Recipes: recipe}
	a := mustFetch(t, first, "app")
	if b, err := os.ReadFile(filepath.Join(a.Path, "version")); err != nil || string(b) != "1.17.0\n" {
		t.Errorf("%q %v", b, err)
	}
	if pyc, _ := filepath.Glob(filepath.Join(a.Path, "usr/local/lib/python3.*/dist-packages/__pycache__/six.*.pyc")); len(pyc) != 1 {
		t.Errorf("compiled: %v", pyc)
	}
	if len(a.Wheels) != 1 || !strings.HasPrefix(a.Wheels[0], "six==1.17.0 sha256:") {
		t.Errorf("%v", a.Wheels)
	}
	second := &Builder{Cache: t.TempDir(), Recipes: recipe}
	for _, kept := range []string{"apt", "wheels"} { // the second build without the network
		if err := os.Rename(filepath.Join(first.Cache, kept), filepath.Join(second.Cache, kept)); err != nil {
			t.Fatal(err)
		}
	}
	if b := mustFetch(t, second, "app"); b.Digest != a.Digest {
		t.Errorf("digests %s and %s", a.Digest, b.Digest)
	}
	if left, err := filepath.Glob(filepath.Join(a.Path, "proc/*")); err != nil || len(left) > 0 {
		t.Errorf("in proc: %v %v", left, err)
	}
	if a.Files < 500 {
		t.Errorf("%d entries in a tree with Python", a.Files)
	}
}
