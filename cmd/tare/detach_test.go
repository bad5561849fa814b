package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tare/store"
)

// TestTicketKeeper: the ticket comes before the results. While a study starts, no other tare may read the ticket, or replace it. A study that
// does not start leaves nothing, and takes nothing away that was there before.
func TestTicketKeeper(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "results", "a")
	k := ticketKeeper{dir: dir}
	if err := k.keep([]byte("first, and longer")); err != nil {
		t.Fatal(err)
	}
	if err := k.keep([]byte("second")); err != nil {
		t.Fatal(err)
	}
	other := ticketKeeper{dir: dir}
	_, err := readTicket(dir)
	for _, err := range []error{err, other.keep([]byte("mine"))} {
		if c := (*codedError)(nil); !errors.As(err, &c) || c.code != exitHeld {
			t.Errorf("beside a tare that starts: %v", err)
		}
	}
	k.release() // as a kill does
	card, err := readTicket(dir)
	if err != nil || string(card) != "second" {
		t.Errorf("%q, %v", card, err)
	}
	if _, err := store.OpenReadOnly(dir); !errors.Is(err, store.ErrNoResults) {
		t.Errorf("a folder with a ticket alone: %v", err)
	}
	again := ticketKeeper{dir: dir, had: true} // of the same command
	if err := again.keep([]byte("third")); err != nil {
		t.Fatal(err)
	}
	if db, err := store.Create(dir, store.Meta{StudySource: []byte("study: a"), StudyFile: "a.yaml"}); err != nil {
		t.Error(err)
	} else if err := errors.Join(db.Close(), again.keep(nil)); err != nil || !store.Exists(dir) {
		t.Errorf("the results are gone: %v", err)
	}
	for name, c := range map[string]struct {
		before bool // the user made the folder
		had    bool // a killed tare did
	}{"new": {}, "the user's": {before: true}, "a killed tare's": {before: true, had: true}} {
		dir := filepath.Join(top, name, "b")
		if c.before {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		k := ticketKeeper{dir: dir, had: c.had}
		if err := errors.Join(k.keep([]byte("x")), k.keep(nil)); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(dir)
		if gone := errors.Is(err, fs.ErrNotExist); gone != (!c.before || c.had) {
			t.Errorf("%s folder: %v", name, err)
		}
		if _, err := os.Stat(filepath.Dir(dir)); (err == nil) != c.before {
			t.Errorf("above the %s folder: %v", name, err)
		}
	}
}
