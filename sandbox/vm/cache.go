package vm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// folder is one of files that are costly to make, at most so many bytes of them on
// the disk. A file is whole or not there. Several processes may use one.
type folder struct {
	dir  string
	most int64 // bytes
}

// fresh is how long a file that was used is left alone: a machine may be about to start from it.
const fresh = 10 * time.Minute

// partly begins the names of files that are not finished.
const partly = ".making-"

// lockFile is what those who make files lock, a byte for a name.
const lockFile = "lock"

// get returns the path of the file of that name, calling make for one that is
// missing, and removes what was not used for longest where there is too much. One that is
// there is not waited for, whatever else is being made; two callers who lack the same
// one make it once.
func (c folder) get(ctx context.Context, name string, make func(path string) error) (string, error) {
	path := filepath.Join(c.dir, name)
	if used(path) == nil {
		return path, nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the cache: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(c.dir, lockFile), name)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := used(path); err == nil { // somebody was faster
		return path, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	part := filepath.Join(c.dir, partly+name)
	err = errors.Join(os.RemoveAll(part), make(part))
	if err == nil {
		err = publish(part, path)
	}
	pruned := c.prune()
	if err != nil {
		// A cache that cannot be tidied may be why there is no room.
		return "", errors.Join(err, os.RemoveAll(part), pruned)
	}
	return path, nil // what could not be removed is tried again with the next file
}

// used marks a file as used now; the error tells one that is missing.
func used(path string) error {
	now := time.Now()
	return os.Chtimes(path, now, now)
}

// publish gives a finished file its name once its content is on the disk: a host
// that loses power has the whole file or none.
func publish(part, path string) error {
	if err := syncFile(part); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}

func syncFile(path string) error {
	f, err := os.Open(path) //nolint:gosec // in our own cache
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// prune removes what killed processes left, and what was not used for longest until
// the rest is within the bound. One that cannot be removed does not keep the others. What the
// caller holds the lock of stays, as what others make does.
func (c folder) prune() error {
	all, err := cachedIn(c.dir)
	if err != nil {
		return err
	}
	_, err = shrink(context.Background(), all, PruneOptions{Limit: c.most})
	return err
}

// lock waits for a name's lock, which ends with the process: the byte of the file that
// the name's hash tells (fcntl(2), open file description locks). Two names of one
// byte wait for each other, no more.
func lock(ctx context.Context, path, name string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in our own cache
	if err != nil {
		return nil, err
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	own := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(h.Sum32()), Len: 1}
	for {
		err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &own)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for %s: %w", path, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
