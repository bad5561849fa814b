package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// State is the progress of the results: equal states have the same trials and sessions. It is
// cheap to read.
type State struct {
	Trials      int
	LastTrial   int64 // id
	LastSession int64 // id
	Skips       int
}

// State returns the present state.
func (s *Store) State(ctx context.Context) (State, error) {
	var x State
	err := s.one(ctx, `SELECT (SELECT count(*) FROM trials), (SELECT coalesce(max(id), 0) FROM trials),
		(SELECT coalesce(max(id), 0) FROM sessions), (SELECT count(*) FROM skips)`, nil, &x.Trials, &x.LastTrial, &x.LastSession, &x.Skips)
	if err != nil {
		return x, fmt.Errorf("read how far the results in %s are: %w", s.dir, err)
	}
	return x, nil
}

// Writer says by the lock who writes to a results folder now; nil if nobody does. It takes a
// shared lock for the time of the call; a writer that begins at that moment waits for it
// (lockDir).
func Writer(dir string) *LockedError {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) //nolint:gosec // below the folder that the user named
	if err != nil {
		return nil // there is no lock, or this user may not read it
	}
	defer func() { _ = f.Close() }()
	if !errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return nil
	}
	return holder(dir, f)
}
