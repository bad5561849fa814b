package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// files is a folder of files that are costly to make, at most so many bytes of them on
// the disk. A file is whole or not there. Several processes may use one.
type files struct {
	dir  string
	most int64 // bytes
}

// fresh is how long a file that was used is left alone: a machine may be about to start from it.
const fresh = 10 * time.Minute

// partly begins the names of files that are not finished.
const partly = ".making-"

// get returns the path of the file of that name, calling make for one that is
// missing, and removes what was not used for longest where there is too much. One is
// made at a time.
func (c files) get(ctx context.Context, name string, make func(path string) error) (string, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the cache: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(c.dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(c.dir, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		part := filepath.Join(c.dir, partly+name)
		err = errors.Join(os.RemoveAll(part), make(part))
		if err == nil {
			err = os.Rename(part, path)
		}
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(part))
		}
	} else if err != nil {
		return "", err
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the mark of use
	return path, c.prune(name)
}

// prune removes what killed processes left, and what was not used for longest until
// the rest is within the bound. The caller holds the lock.
func (c files) prune(keep string) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	type file struct {
		path  string
		bytes int64
		used  time.Time
	}
	var all []file
	var sum int64
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		if strings.HasPrefix(e.Name(), partly) {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			continue
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || e.Name() == "lock" {
			continue
		}
		bytes := st.Blocks * 512
		sum += bytes
		if e.Name() != keep {
			all = append(all, file{path, bytes, time.Unix(st.Mtim.Sec, st.Mtim.Nsec)})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range all {
		if sum <= c.most || time.Since(f.used) < fresh {
			break
		}
		if err := os.RemoveAll(f.path); err != nil {
			return err
		}
		sum -= f.bytes
	}
	return nil
}

// lock waits for a lock that ends with the process.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in our own cache
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
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
