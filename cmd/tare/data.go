package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tare/internal/state"
)

// Data directories that the user places elsewhere (--data) are found again by a
// link of the run's name in tare's own directory, made before they are. A
// process that is killed between any two of these steps leaves nothing that
// sweepData does not find.

// elsewhere begins the name of such a directory.
const elsewhere = "tare-"

// makeData makes the directory for a run's data and returns its path and what
// removes it.
func makeData(d dirs, id string) (dir string, remove func() error, err error) {
	own := hostDirs().data
	dir = filepath.Join(d.data, id)
	remove = func() error { return os.RemoveAll(dir) }
	if d.data != own {
		dir = filepath.Join(d.data, elsewhere+id)
		link := filepath.Join(own, id)
		remove = func() error { return errors.Join(os.RemoveAll(dir), os.Remove(link)) }
		if err := os.MkdirAll(own, 0o700); err != nil {
			return "", nil, fmt.Errorf("cannot make %s: %w", own, err)
		}
		if err := os.Symlink(dir, link); err != nil {
			return "", nil, fmt.Errorf("cannot note the data directory: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("cannot make %s: %w", dir, err)
	}
	return dir, remove, nil
}

// sweepData removes the data directories that a killed run left elsewhere. The
// caller holds the host.
func sweepData(dryRun bool) []state.Leftover {
	own := hostDirs().data
	entries, err := os.ReadDir(own)
	if err != nil {
		return nil // not there: no run has been
	}
	var out []state.Leftover
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		link := filepath.Join(own, e.Name())
		dir, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(filepath.Base(dir), elsewhere) {
			continue // not made by makeData
		}
		if !dryRun {
			err = errors.Join(os.RemoveAll(dir), os.Remove(link))
		}
		out = append(out, state.Leftover{Kind: "data", Name: dir, Err: err})
	}
	return out
}
