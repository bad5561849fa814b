package cgroup

import (
	"io"
	"os"
	"path/filepath"
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
	return h, nil
}

// Internals for the tests.
var (
	CheckRel   = checkRel
	ParseProcs = parseProcs
	ParseKey   = parseKey
)

// SetRmdir replaces the call that removes a group.
func SetRmdir(h *Hierarchy, rmdir func(string) error) { h.rmdir = rmdir }
