package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"tare/site"
	"tare/store"
)

// ticketFile is where a results folder keeps the secret with which its session is returned to.
const ticketFile = "session.json"

// maxTicket bounds the file, in bytes.
const maxTicket = 64 << 10

// readTicket reads the ticket of a results folder; nil if it has none.
func readTicket(dir string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, ticketFile)) //nolint:gosec // the user's folder
	if errors.Is(err, fs.ErrNotExist) || len(text) > maxTicket {
		return nil, nil
	}
	return text, err
}

func writeTicket(dir string, text []byte) error {
	return os.WriteFile(filepath.Join(dir, ticketFile), text, 0o600)
}

func removeTicket(dir string) { _ = os.Remove(filepath.Join(dir, ticketFile)) } // one that stays leads nowhere

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
