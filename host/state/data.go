package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// elsewhere begins the name of a data directory that the user places outside tare's own
// directory.
const elsewhere = "tare-"

// MakeRun makes the directory base/id for one run, with a record that tare made it, and
// returns its path and a function that removes it. base is a directory of this user. It
// refuses a directory of that name that already exists.
func MakeRun(base, id string) (dir string, remove func() error, err error) {
	b, err := Dirs{Base: base}.open(id)
	if err != nil {
		return "", nil, err
	}
	defer b.close()
	return b.makeRun(id, nil)
}

// makeRun makes a run's directory; also is called after its removal.
func (b *base) makeRun(name string, also func() error) (dir string, remove func() error, err error) {
	held, err := b.make(name)
	if err != nil {
		return "", nil, err
	}
	path := b.path
	remove = func() error {
		defer func() { _ = held.Close() }()
		b, err := openBase(path)
		if err != nil {
			return err
		}
		defer b.close()
		if err = b.remove(name, isRecord, held); err == nil && also != nil {
			err = also()
		}
		return err
	}
	return filepath.Join(path, name), remove, nil
}

// MakeData makes the directory for a run's data below base and returns its path
// and what removes it. own is tare's own data directory, LibDir for root; when
// base is another, Clean finds the directory by a link of the run's name in own,
// which is made first: a process killed between any two steps leaves nothing
// that cannot be found. The path in the link has no links itself, so somebody who
// can change base later cannot lead Clean elsewhere.
func MakeData(own, base, id string) (dir string, remove func() error, err error) {
	if base == own {
		return MakeRun(own, id)
	}
	notes, err := Dirs{Base: own}.open(id)
	if err != nil {
		return "", nil, err
	}
	notes.close()
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", nil, fmt.Errorf("making %s: %w", base, err)
	}
	real, err := filepath.EvalSymlinks(base)
	if err != nil {
		return "", nil, fmt.Errorf("making the data directory: %w", err)
	}
	b, err := openBase(real)
	if err != nil {
		return "", nil, fmt.Errorf("making the data directory: %w", err)
	}
	defer b.close()
	link := filepath.Join(own, id)
	if err := os.Symlink(filepath.Join(real, elsewhere+id), link); err != nil {
		return "", nil, fmt.Errorf("noting the data directory: %w", err)
	}
	unlink := func() error { return os.Remove(link) }
	if dir, remove, err = b.makeRun(elsewhere+id, unlink); err != nil {
		err = errors.Join(err, unlink()) // what is there is not what the link noted
	}
	return dir, remove, err
}

// placed returns the data directory that a link made by MakeData points to.
func placed(link string) (dir string, ok bool) {
	dir, err := os.Readlink(link)
	return dir, err == nil && filepath.IsAbs(dir) && strings.HasPrefix(filepath.Base(dir), elsewhere)
}

// removePlaced removes a data directory that a link names elsewhere. It returns no error
// if the directory or its base is gone.
func removePlaced(dir string) error {
	b, err := openBase(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer b.close()
	return b.remove(filepath.Base(dir), isRecord, nil)
}
