package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// OpenReadOnly opens a folder for reading: also during a run, for a user who may not write
// there, and on read-only media. It changes no result.
func OpenReadOnly(dir string) (*Store, error) {
	s, err := openReadOnly(dir)
	if errors.Is(err, ErrNoResults) {
		evidence, eerr := evidenceIn(dir)
		if eerr != nil || len(evidence) == 0 {
			if st, serr := os.Stat(filepath.Join(dir, dbName)); serr == nil && st.Size() == 0 { //nolint:gosec // below the folder that the user named
				return nil, fmt.Errorf("%s is %w", dir, ErrEmpty)
			}
			return nil, fmt.Errorf("%s is %w", dir, ErrNoResults) // nothing at all, so nothing more to say
		}
		err = lostDatabase(evidence)
	}
	if err != nil {
		return nil, fmt.Errorf("open results in %s: %w", dir, err)
	}
	return s, nil
}

func openReadOnly(dir string) (*Store, error) {
	path := filepath.Join(dir, dbName)
	if err := present(dir); err != nil {
		return nil, err
	}
	if err := plainFiles(dir); err != nil { // the copy below reads them too
		return nil, err
	}
	// A database in WAL mode needs its -shm file, even to be read
	// (https://www.sqlite.org/wal.html#readonly). If it cannot be made: without a log,
	// nobody writes, and the file can be opened as it is; with a log, file and log are
	// copied to a place where they can be opened.
	if unix.Access(dir, unix.W_OK) == nil || files.Exists(path+"-shm") {
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
		return nil, fmt.Errorf("the folder is not writable, and the copy that reading it needs cannot be made: %w", err)
	}
	for _, n := range []string{dbName, dbName + "-wal"} {
		if err := files.Copy(filepath.Join(tmp, n), filepath.Join(dir, n), 0o600); err != nil {
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
	s.readers = 2
	s.db.SetMaxOpenConns(s.readers)
	s.db.SetMaxIdleConns(s.readers) // a reopened connection would lack the limits
	if err := s.vet(context.Background()); err != nil {
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

// present fails with ErrNoResults where there is no database.
func present(dir string) error {
	_, err := os.Stat(filepath.Join(dir, dbName)) //nolint:gosec // below the folder that the user named
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return ErrNoResults
	}
	return err
}

// Stamp is the state of the files of a results folder. If two stamps are equal and the first
// was at rest (Rests), the results are equal.
type Stamp struct{ db, log fileStamp }

// fileStamp has no ctime: where root reads, SQLite changes the owner of the log to
// the one that it has.
type fileStamp struct {
	inode uint64
	size  int64
	mtime int64 // nanoseconds since 1970
}

// StampOf returns the stamp without opening the results, for callers that poll. It returns an
// error for a folder without results.
func StampOf(dir string) (Stamp, error) {
	path := filepath.Join(dir, dbName)
	db, err := fileStampOf(path)
	if err != nil {
		return Stamp{}, fmt.Errorf("no results in %s: %w", dir, err)
	}
	log, err := fileStampOf(path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Stamp{}, fmt.Errorf("results in %s: %w", dir, err)
	}
	return Stamp{db, log}, nil
}

func fileStampOf(path string) (fileStamp, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fileStamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return fileStamp{st.Ino, st.Size, st.Mtim.Nano()}, nil
}

// restAfter is how long files must be unchanged so that their times show the next change:
// times of some file systems have steps of two seconds.
const restAfter = 3 * time.Second

// Rests reports whether, at a time before the stamp was taken, the files had been unchanged
// for long enough.
func (s Stamp) Rests(at time.Time) bool {
	return at.Sub(time.Unix(0, max(s.db.mtime, s.log.mtime))) > restAfter
}
