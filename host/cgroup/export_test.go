package cgroup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// FakeFrom is DetectFrom with the trees below root instead of /, on an ordinary
// file system: fill is called for every directory that is made, and rmdir
// removes a directory that has no others in it, control files and all.
func FakeFrom(r io.Reader, root string, fill func(dir string) error) (*Hierarchy, error) {
	h, err := DetectFrom(r)
	if err != nil {
		return nil, err
	}
	h.root = root
	h.mkdir = func(p string) error {
		if err := os.Mkdir(p, 0o755); err != nil {
			return err
		}
		return fill(p)
	}
	h.rmdir = func(p string) error {
		entries, err := os.ReadDir(p)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() {
				return &os.PathError{Op: "rmdir", Path: p, Err: os.ErrExist}
			}
		}
		for _, e := range entries {
			if err := os.Remove(filepath.Join(p, e.Name())); err != nil {
				return err
			}
		}
		return os.Remove(p)
	}
	h.write = func(path, value string) error {
		switch filepath.Base(path) {
		case subtreeControl:
			return fakeSubtree(filepath.Dir(path), strings.Fields(value))
		case groupProcs:
			return fakeMove(filepath.Dir(path), value)
		}
		return write(path, value)
	}
	h.notes = fakeNotes{}
	return h, nil
}

// fakeNotes keeps notes in memory.
type fakeNotes map[string]string

func (n fakeNotes) get(dir string) (string, bool) { text, ok := n[dir]; return text, ok }
func (n fakeNotes) set(dir, text string)          { n[dir] = text }
func (n fakeNotes) remove(dir string)             { delete(n, dir) }

func words(parts ...string) []string {
	out, _ := readWords(filepath.Join(parts...))
	return out
}

func put(path string, words []string, sep string) error {
	text := strings.Join(words, sep)
	if text != "" {
		text += "\n"
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// domainOnly are the controllers that do not work on threads.
func domainOnly(c string) bool { return c == "memory" || c == "io" }

// fakeSubtree does what the kernel does on a write to subtree_control: all or nothing
// (cgroup_subtree_control_write in kernel/cgroup/cgroup.c).
func fakeSubtree(dir string, change []string) error {
	on := words(dir, subtreeControl)
	_, err := os.Stat(filepath.Join(dir, groupType))
	occupied := err == nil && len(words(dir, groupProcs)) > 0
	threaded := false
	for _, w := range change {
		c := w[1:]
		switch {
		case !slices.Contains(words(dir, "cgroup.controllers"), c):
			return unix.ENOENT
		case w[0] == '-':
			below, _ := filepath.Glob(filepath.Join(dir, "*", subtreeControl))
			for _, f := range below {
				if slices.Contains(words(f), c) {
					return unix.EBUSY
				}
			}
			on = slices.DeleteFunc(on, func(o string) bool { return o == c })
		case occupied && domainOnly(c):
			return unix.EBUSY
		case !slices.Contains(on, c):
			on = append(on, c)
			threaded = threaded || occupied
		}
	}
	if err == nil {
		kind := "domain"
		if threaded {
			kind = "domain threaded"
		}
		if err := put(filepath.Join(dir, groupType), []string{kind}, ""); err != nil {
			return err
		}
	}
	return put(filepath.Join(dir, subtreeControl), on, " ")
}

// fakeMove moves a process from its directory, anywhere in the surrounding tree.
func fakeMove(dir, pid string) error {
	if slices.ContainsFunc(words(dir, subtreeControl), domainOnly) {
		return unix.EBUSY
	}
	if kind := words(filepath.Dir(dir), groupType); slices.Contains(kind, "threaded") {
		return unix.EOPNOTSUPP
	}
	for _, from := range []string{filepath.Dir(dir), filepath.Join(dir, Aside)} {
		path := filepath.Join(from, groupProcs)
		if pids := words(path); slices.Contains(pids, pid) {
			if err := put(path, slices.DeleteFunc(pids, func(p string) bool { return p == pid }), "\n"); err != nil {
				return err
			}
		}
	}
	return put(filepath.Join(dir, groupProcs), append(words(dir, groupProcs), pid), "\n")
}

// Internals for the tests.
var (
	CheckRel   = checkRel
	ParseProcs = parseProcs
	ParseKey   = parseKey
)

// SetRmdir replaces the call that removes a group.
func SetRmdir(h *Hierarchy, rmdir func(string) error) { h.rmdir = rmdir }

// SetMkdir replaces the call that makes a group.
func SetMkdir(h *Hierarchy, mkdir func(string) error) { h.mkdir = mkdir }

// SetSystemd makes systemd run the tree.
func SetSystemd(h *Hierarchy) { h.systemd = true }

// StartScope asks systemd-run for a scope and returns the reason if it gave none.
func StartScope(ctx context.Context, dir string) error {
	k, err := startScope(ctx, dir)
	return errors.Join(err, k.end())
}

// HoldFake is Hold with a systemd that gives a scope, or fails.
func HoldFake(h *Hierarchy, scope func(dir string) error) (*Place, error) {
	return h.hold(context.Background(), func(_ context.Context, dir string) (*keeper, error) {
		if scope == nil {
			return nil, errors.New("no systemd here")
		}
		if err := scope(dir); err != nil {
			return nil, err
		}
		return nil, h.mkdir(dir)
	})
}
