// Package state is what this program keeps on a host while it runs: the lock that gives the
// host to one run at a time, and the directories of a run. It also finds and removes all
// that a dead run left.
//
// The data path: 1. Hold takes the host's lock, or says who has it; 2. Dirs makes the
// run's own directories; 3. after a crash, Clean finds processes, containers,
// mounts, network namespaces, links, control groups and directories by their
// names and removes them in that order. There is no ledger
// (docs/design/0002-names-not-ledger.md).
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"tare/site/claim"
)

const (
	// RunDir holds everything that need not outlive a boot.
	RunDir = "/run/tare"
	// LibDir holds the data of a trial while it runs.
	LibDir = "/var/lib/tare"

	lockName = "lock"
	maxLock  = 16384 // bytes of the lock file that are read
)

// Lock is the held lock of the host. It ends with Release or with the process.
type Lock struct {
	f    *os.File
	path string
}

// Hold takes the lock file in dir (RunDir, except in tests), and makes dir if needed. what
// is a short text for other users, such as the command line. Hold never blocks: if another
// process has the lock, the error is a *claim.HeldError. The lock is an flock(2), which the kernel
// releases whenever the holder dies.
func Hold(dir, what string) (*Lock, error) {
	path := filepath.Join(dir, lockName)
	for {
		l, err := tryHold(dir, path, what)
		// The last holder unlinked the file between our open and our flock, so this is no
		// longer the lock. Start again.
		if errors.Is(err, errStale) {
			continue
		}
		return l, err
	}
}

var errStale = errors.New("the lock file was replaced")

func tryHold(dir, path, what string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the rest of /run; what is private in it has its own mode
		return nil, fmt.Errorf("taking the host's lock: %w; run as root", err)
	}
	// 0600: a user who can open the file can hold it, and so keep root from running.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600) //nolint:gosec // the caller's directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errStale // the directory is gone
	}
	if err != nil {
		return nil, fmt.Errorf("taking the host's lock: %w; run as root", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer func() { _ = f.Close() }()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &claim.HeldError{Holder: readHolder(f)}
		}
		return nil, fmt.Errorf("taking the host's lock %s: %w", path, err)
	}
	if err := sign(f, path, what); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &Lock{f: f, path: path}, nil
}

// sign writes the holder into the locked file.
func sign(f *os.File, path, what string) error {
	named, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("taking the host's lock: %w", err)
	}
	held, err := f.Stat()
	if err != nil {
		return fmt.Errorf("taking the host's lock: %w", err)
	}
	if !os.SameFile(named, held) {
		return errStale
	}
	const maxWhat = 1024 // so that the text fits into maxLock, escaped or not
	if len(what) > maxWhat {
		what = what[:maxWhat]
	}
	text, err := json.Marshal(claim.Holder{Pid: os.Getpid(), What: what, Since: time.Now().Truncate(time.Second)})
	if err != nil {
		return fmt.Errorf("taking the host's lock: %w", err)
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("taking the host's lock: %w", err)
	}
	if _, err := f.WriteAt(append(text, '\n'), 0); err != nil {
		return fmt.Errorf("taking the host's lock: writing %s: %w; is /run full?", path, err)
	}
	return nil
}

// readHolder reads who has the lock. It tries for a few milliseconds, because the holder may
// not have written its name yet.
func readHolder(f *os.File) claim.Holder {
	for range 5 {
		h, err := parseHolder(io.NewSectionReader(f, 0, maxLock))
		if err == nil {
			return h
		}
		time.Sleep(2 * time.Millisecond)
	}
	return claim.Holder{}
}

func parseHolder(r io.Reader) (claim.Holder, error) {
	var h claim.Holder
	if err := json.NewDecoder(io.LimitReader(r, maxLock)).Decode(&h); err != nil {
		return claim.Holder{}, fmt.Errorf("lock file: %w", err)
	}
	if h.Pid <= 0 {
		return claim.Holder{}, fmt.Errorf("lock file: %d is not a process", h.Pid)
	}
	return h, nil
}

// Release gives the host back. It is idempotent.
func (l *Lock) Release() error {
	if l == nil || l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	var err error
	held, e1 := f.Stat()
	named, e2 := os.Lstat(l.path)
	if e1 == nil && e2 == nil && os.SameFile(held, named) {
		// It is unlinked while held, so that no other process can have it; Hold notices that.
		err = os.Remove(l.path)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("giving the host's lock back: %w", err)
	}
	return nil
}
