package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"tare/host/rootfs"
	"tare/internal/files"
)

// Packages whose tests run in the machine, relative to the module.
const (
	processTests = "sandbox/process"
	ociTests     = "sandbox/oci"
)

// briefTests are those of `make test`.
func briefTests() []string { return []string{processTests, ociTests} }

// fullTests are those of `make lab-vm`.
func fullTests() []string { return append(briefTests(), collectorTests()...) }

func collectorTests() []string {
	return []string{
		"host/cgroup", "host/network", "collect/calls", "collect/cgroup", "collect/disk", "collect/guest", "collect/host", "collect/link",
		"collect/proc", "collect/system",
	}
}

// makeTools writes the second disk: the tare under test, runsc, the test binaries of the
// packages, the files of the module that they read, and studies.
func makeTools(ctx context.Context, module, work, file string, packages []string) error {
	tree := filepath.Join(work, "tools")
	if err := os.MkdirAll(tree, 0o755); err != nil { //nolint:gosec // an ordinary user in the machine reads it
		return err
	}
	tare := filepath.Join(module, "bin", "tare")
	if _, err := os.Stat(tare); err != nil {
		return fmt.Errorf("%w; run make build", err)
	}
	if err := files.Copy(filepath.Join(tree, "tare"), tare, 0o755); err != nil {
		return err
	}
	runsc, ok := rootfs.Lookup("runsc")
	if !ok {
		return errors.New("cannot find runsc; run scripts/setup.sh run")
	}
	if err := files.Copy(filepath.Join(tree, "runsc"), runsc, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(tree, "studies"), os.DirFS(filepath.Join(module, "studies"))); err != nil {
		return err
	}
	for _, p := range packages {
		if err := compileTests(ctx, module, p, filepath.Join(tree, "module", p)); err != nil {
			return err
		}
	}
	if err := copyRead(module, filepath.Join(tree, "module"), packages); err != nil {
		return err
	}
	return format4(ctx, file, tree, toolsSize)
}

// compileTests puts a package's test binary into dir, named "tests".
func compileTests(ctx context.Context, module, pkg, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", filepath.Join(dir, "tests"), "./"+pkg) //nolint:gosec // a fixed list
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the tests of %s: %w: %s", pkg, err, out)
	}
	return nil
}

// copyRead copies the files of the module that tests read, to the same places: their
// testdata, and the pages of the collectors, which name each of their series.
func copyRead(module, to string, packages []string) error {
	paths := []string{"docs/collectors"}
	for _, p := range packages {
		paths = append(paths, p+"/testdata")
	}
	for _, p := range paths {
		err := os.CopyFS(filepath.Join(to, p), os.DirFS(filepath.Join(module, p)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return files.Copy(filepath.Join(to, "go.mod"), filepath.Join(module, "go.mod"), 0o644)
}
