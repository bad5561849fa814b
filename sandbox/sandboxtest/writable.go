package sandboxtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/record"
	"tare/sandbox"
)

// writableRoot: with Spec.Upper the root can be written to; what is written is seen
// again in the sandbox, is on the host below Upper and nowhere else, is not seen
// by another sandbox on the same tree, and is gone when the sandbox is.
func (s *suite) writableRoot(t *testing.T) {
	before := tree(t, s.root)
	spec := s.spec(t)
	spec.Upper = upper(t)
	inst, second := s.start(t, spec), s.shared
	specs, started := []sandbox.Spec{spec}, []sandbox.Instance{inst}
	if second == nil {
		other := s.spec(t)
		other.Upper = upper(t)
		second = s.start(t, other)
		specs, started = append(specs, other), append(started, second)
	}
	sh := func(i sandbox.Instance, script string) result {
		return command(t.Context(), i, nil, "/bin/sh", "-c", script)
	}
	run(t.Context(), inst, "write", "/new").good(t)
	sh(inst, "echo more >> /new && echo changed > /tare-pause").good(t)
	if r := sh(inst, "while read -r l; do echo $l; done < /new; read -r l < /tare-pause; echo $l").good(t); r.stdout != "written\nmore\nchanged\n" {
		t.Errorf("read back %q", r.stdout)
	}
	if r := sh(second, "test ! -e /new").good(t); r.stderr != "" {
		t.Errorf("stderr %q", r.stderr)
	}
	if second != s.shared { // which has no upper layer
		sh(second, "echo > /second").good(t)
	}
	if got := below(t, spec.Upper, "new"); got != "written\nmore\n" {
		t.Errorf("on the host %s has %q", spec.Upper, got)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(s.root)) {
		t.Errorf("the host sees the sandbox's root: %v", err)
	}
	for _, i := range started {
		if err := i.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	s.untouched(t, before, specs...)

	l, ok := s.kind.(sandbox.Launcher)
	if !ok || s.traits.Family == record.FamilyVM { // a machine's Launch is its Exec
		return
	}
	for _, mode := range s.modes() {
		spec := s.spec(t)
		spec.Upper = upper(t)
		var out, said bytes.Buffer
		got, err := l.Launch(t.Context(), spec, sandbox.Command{
			Args: []string{"/bin/sh", "-c", "echo here > /new && read -r l < /new && echo $l"}, Stdout: &out, Stderr: &said,
		}, mode)
		if err != nil || got.Exit.Code != 0 || out.String() != "here\n" {
			t.Errorf("%s: printed %q and %q, exit %+v: %v", mode, out.String(), said.String(), got.Exit, err)
		}
		s.untouched(t, before, spec)
	}
}

// untouched fails the test unless the tree is as before and nothing is left of the upper layers.
func (s *suite) untouched(t *testing.T, before map[string]string, specs ...sandbox.Spec) {
	t.Helper()
	after := tree(t, s.root)
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if after[path] != before[path] {
			t.Errorf("the shared tree has changed: %s was %q, is %q", path, before[path], after[path])
		}
	}
	if len(after) < len(before) {
		t.Errorf("the shared tree had %d files, has %d", len(before), len(after))
	}
	for _, spec := range specs {
		if left, err := os.ReadDir(spec.Upper); err != nil || len(left) > 0 {
			t.Errorf("left of the upper layer of %s: %v %v", spec.Name, left, err)
		}
	}
}

func upper(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), `upper: a,b\c`) // what overlayfs takes for separators
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tree describes every file below a directory.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// below finds the files of a name below a directory and returns what they hold.
func below(t *testing.T, dir, name string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != name {
			return err
		}
		b, err := os.ReadFile(path) //nolint:gosec // below the test's directory
		out.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
