package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenReadOnly opens a folder for reading: also while a run writes to it, by a
// user who may not write there, and on read-only media. It changes no result.
func OpenReadOnly(dir string) (*Store, error) {
	s, err := openReadOnly(dir)
	if err != nil {
		return nil, fmt.Errorf("open results in %s: %w", dir, err)
	}
	return s, nil
}

func openReadOnly(dir string) (*Store, error) {
	path := filepath.Join(dir, dbName)
	st, err := os.Stat(path) //nolint:gosec // below the folder that the user named
	if err != nil {
		return nil, fmt.Errorf("no results there: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file: %w", dbName, fs.ErrInvalid)
	}
	// A database in WAL mode needs its -shm file, even to be read
	// (https://www.sqlite.org/wal.html#readonly). Where it cannot be made there
	// are two ways: no log means that nobody writes and the file can be taken as
	// it is; with a log, file and log are copied to where they can be opened.
	if unix.Access(dir, unix.W_OK) == nil || exists(path+"-shm") {
		s, err := tryReadOnly(dir, dsn(path, "ro"))
		if err == nil || !errors.Is(err, errUnopened) {
			return s, err
		}
	}
	if wal, err := os.Stat(path + "-wal"); err != nil || wal.Size() == 0 { //nolint:gosec // below the folder that the user named
		return tryReadOnly(dir, dsn(path, "ro", "immutable", "1"))
	}
	tmp, err := os.MkdirTemp("", "tare-results-")
	if err != nil {
		return nil, fmt.Errorf("the folder cannot be written to, and the copy that is needed then cannot be made: %w", err)
	}
	for _, n := range []string{dbName, dbName + "-wal"} {
		if err := copyFile(filepath.Join(tmp, n), filepath.Join(dir, n)); err != nil {
			return nil, errors.Join(err, os.RemoveAll(tmp))
		}
	}
	s, err := tryReadOnly(dir, dsn(filepath.Join(tmp, dbName), "rw"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	s.scratch = tmp
	return s, nil
}

// errUnopened: SQLite could not open the file or its -shm, for rights or media.
var errUnopened = errors.New("cannot be opened for reading")

func tryReadOnly(dir, address string) (*Store, error) {
	s, err := openDB(dir, address)
	if err != nil {
		return nil, err
	}
	if s.version, err = checkSchema(context.Background(), s.db); err != nil {
		_ = s.Close()
		var coded interface{ Code() int }
		if errors.As(err, &coded) {
			switch coded.Code() & 0xff {
			case 8, 14: // SQLITE_READONLY, SQLITE_CANTOPEN
				return nil, errors.Join(errUnopened, err)
			}
		}
		return nil, err
	}
	return s, nil
}

func exists(path string) bool {
	_, err := os.Stat(path) //nolint:gosec // below the folder that the user named
	return err == nil
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from) //nolint:gosec // a file of the results folder that the user named
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in our own new temporary directory
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
