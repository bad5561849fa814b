package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// LockedError says who writes to a results folder.
type LockedError struct {
	Dir      string    `json:"-"`
	Pid      int       `json:"pid"`
	Hostname string    `json:"hostname"`
	Since    time.Time `json:"since"`
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.Pid != 0 {
		who = fmt.Sprintf("process %d on %s since %s", e.Pid, e.Hostname, e.Since.Format(time.DateTime))
	}
	return fmt.Sprintf("%s is being written by %s; wait for it, or give another results folder", e.Dir, who)
}

// lockDir takes the writer's lock: flock(2) on DIR/lock, which the kernel releases when the
// process ends in any way. The file stays: if it were removed, two writers could lock two
// files of one name. Readers take no lock.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	// The file is cut below, so a link of this name must not lead to another file; a pipe
	// must not block.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644) //nolint:gosec // results are meant to be read by others than root
	if err == nil {
		var at os.FileInfo
		if at, err = f.Stat(); err == nil && !at.Mode().IsRegular() {
			err = unix.ELOOP
		}
		if err != nil {
			_ = f.Close()
		}
	}
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is not a regular file; remove it and try again", path)
	}
	if err != nil {
		if errors.Is(err, unix.EROFS) {
			return nil, fmt.Errorf("%s is on a read-only file system, and a run writes to it: copy the folder to another disk and go on there; `tare report` reads it where it is", dir)
		}
		return nil, fmt.Errorf("lock the results folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for range 10 {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(5 * time.Millisecond) // Writer may hold it for a moment
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			held := holder(dir, f)
			_ = f.Close()
			return nil, held
		}
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	name, _ := os.Hostname() // only for the message to a second writer
	b, err := json.Marshal(LockedError{Pid: os.Getpid(), Hostname: name, Since: time.Now().Truncate(time.Second)})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(append(b, '\n'), 0)
	}
	// A store must open on a full disk too: the lock holds without the name in the file.
	if err != nil && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EFBIG) {
		_ = f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return f, nil
}

// holder reads who holds the lock. The holder may not have written its name yet; then the message is less precise.
func holder(dir string, lock io.Reader) *LockedError {
	held := &LockedError{Dir: dir}
	if b, err := io.ReadAll(io.LimitReader(lock, 4096)); err == nil {
		_ = json.Unmarshal(b, held)
	}
	return held
}
