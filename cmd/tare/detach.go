package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"tare/site"
	"tare/store"
)

// maxTicket bounds the file, in bytes.
const maxTicket = 64 << 10

// readTicket reads the ticket of a results folder; nil if it has none. It refuses that of a study that another tare is starting.
func readTicket(dir string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, store.TicketName)) //nolint:gosec // the user's folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return nil, startsElsewhere(dir)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTicket+1))
	if len(text) > maxTicket {
		return nil, nil
	}
	return text, err
}

func startsElsewhere(dir string) error {
	return coded(exitHeld, "another tare is starting a study with the results folder %s; wait for it, or give another results folder", dir)
}

// ticketKeeper keeps the ticket of a session in its results folder. The session's first ticket comes before the results: the keeper
// then makes the folder, and locks the ticket until it is released. If no results follow, it removes both.
type ticketKeeper struct {
	dir  string
	had  bool     // a ticket was there before
	made []string // directories, the outermost first
	lock *os.File // nil: not locked
}

// keep writes the ticket. With nil it removes the ticket.
func (k *ticketKeeper) keep(text []byte) error {
	path := filepath.Join(k.dir, store.TicketName)
	if text == nil {
		_ = os.Remove(path) // one that stays leads nowhere
		k.release()         // last: until then, nobody else makes the file
		if k.had || len(k.made) > 0 {
			_ = os.Remove(k.dir) // which fails if it has results
		}
		for _, d := range slices.Backward(k.made) {
			_ = os.Remove(d)
		}
		k.had, k.made = false, nil
		return nil
	}
	if k.lock == nil {
		if err := k.open(path); err != nil {
			return err
		}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return coded(exitFailed, "cannot keep the key of the study: %w", err)
	}
	return nil
}

// open makes the folder and locks the ticket.
func (k *ticketKeeper) open(path string) error {
	for d := filepath.Clean(k.dir); ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		k.made = slices.Insert(k.made, 0, d)
	}
	if err := os.MkdirAll(k.dir, 0o755); err != nil { //nolint:gosec // results are meant to be read by others than root
		return coded(exitFailed, "create the results folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // as above
	if err != nil {
		return coded(exitFailed, "cannot keep the key of the study: %w", err)
	}
	if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		_ = f.Close()
		return startsElsewhere(k.dir)
	}
	k.lock = f
	return nil
}

// release ends the lock.
func (k *ticketKeeper) release() {
	if k.lock != nil {
		_ = k.lock.Close()
		k.lock = nil
	}
}

// detach leaves a study to its site.
func (a *app) detach(s site.Returning, at site.About, db *store.Store, returned bool) error {
	done, err := doneBefore(db, returned)
	if err != nil {
		return err
	}
	if err := s.GoOn(done); err != nil {
		return err
	}
	a.line("The study continues without this tare, with %d trials done. To return to it: %s", len(done), goOn(db.Dir(), at))
	return nil
}
