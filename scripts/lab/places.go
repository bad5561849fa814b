package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Where things are, from the module's folder.
const (
	moduleDir = "scripts/lab/modules"
	cacheDir  = ".cache/lab"
)

// places are the lab's folders, by absolute paths.
type places struct {
	cache string // the built programs are below it
	bin   string // the programs of these versions
	run   string // everything that a running cluster writes
}

// newPlaces finds the folders. It makes none.
func newPlaces(cache string) (places, error) {
	abs, err := filepath.Abs(cache)
	if err != nil {
		return places{}, err
	}
	// Mounts do not follow symbolic links as this program does.
	if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(real, filepath.Base(abs))
	}
	key, err := versionsKey(moduleDir)
	if err != nil {
		return places{}, err
	}
	return places{cache: abs, bin: filepath.Join(abs, key), run: filepath.Join(abs, "run")}, nil
}

func (p places) program(name string) string { return filepath.Join(p.bin, name) }
func (p places) kubeconfig() string         { return filepath.Join(p.run, "kubeconfig") }
func (p places) pki(name string) string     { return filepath.Join(p.run, "pki", name) }
func (p places) log(name string) string     { return filepath.Join(p.run, "log", name+".log") }
func (p places) guests() string             { return filepath.Join(p.run, guestsFile) }
func (p places) blobs() string              { return filepath.Join(p.run, "registry") } // of the registry
func (p places) records() string            { return filepath.Join(p.run, "processes") }

// registryName is the registry's name on the host and in references, such as 127.0.0.1:5000; "" if
// no cluster has started.
func (p places) registryName() string {
	b, _ := os.ReadFile(filepath.Join(p.run, "registry-name"))
	return string(b)
}

// node is a folder of a node: its /var, and its configuration.
func (p places) node(n node, parts ...string) string {
	return filepath.Join(append([]string{p.run, n.name}, parts...)...)
}

// lab is one call of this program.
type lab struct {
	places
	out   io.Writer
	begun time.Time // of the current step
	lock  *os.File  // held while up or down works
}

// done prints a line for a step that ended well, with its seconds.
func (l *lab) done(format string, args ...any) {
	fmt.Fprintf(l.out, "ok      %6.1f s  %s\n", time.Since(l.begun).Seconds(), fmt.Sprintf(format, args...))
	l.begun = time.Now()
}

// writeFile writes a file that only root reads, and makes the folders above it.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // containers have folders below
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
