package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// elsewhere begins the name of a data directory that the user places outside
// tare's own.
const elsewhere = "tare-"

// MakeData makes the directory for a run's data below base and returns its path
// and what removes it. own is tare's own data directory, LibDir for root; when
// base is another, Clean finds the directory by a link of the run's name in own,
// which is made first: a process killed between any two steps leaves nothing
// that cannot be found.
func MakeData(own, base, id string) (dir string, remove func() error, err error) {
	dir = filepath.Join(base, id)
	remove = func() error { return os.RemoveAll(dir) }
	if base != own {
		dir = filepath.Join(base, elsewhere+id)
		link := filepath.Join(own, id)
		remove = func() error { return errors.Join(os.RemoveAll(dir), os.Remove(link)) }
		if err := os.MkdirAll(own, 0o700); err != nil {
			return "", nil, fmt.Errorf("making %s: %w%s", own, err, rootHint(err))
		}
		if err := os.Symlink(dir, link); err != nil {
			return "", nil, fmt.Errorf("noting the data directory: %w", err)
		}
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", nil, fmt.Errorf("making %s: %w", base, err)
	}
	// New: in a base that others write to, such as /dev/shm, one that is there
	// already may be anybody's.
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("making %s: %w; `tare clean` removes it if a killed run left it", dir, err)
	}
	return dir, remove, nil
}

// placed returns the data directory that a link made by MakeData points to.
func placed(link string) (dir string, ok bool) {
	dir, err := os.Readlink(link)
	return dir, err == nil && filepath.IsAbs(dir) && strings.HasPrefix(filepath.Base(dir), elsewhere)
}
