package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSideFilesThatAreNoFiles: SQLite opens the files beside the database by their names,
// and waits for ever at a FIFO. No way to open a folder may reach that point.
func TestSideFilesThatAreNoFiles(t *testing.T) {
	whole := stored(t)
	linked := func(t *testing.T, dir string) string { // a database behind a link, and the folder of the link
		t.Helper()
		other := t.TempDir()
		if err := os.Symlink(filepath.Join(dir, dbName), filepath.Join(other, dbName)); err != nil {
			t.Fatal(err)
		}
		return other
	}
	for _, end := range []string{"-journal", "-wal", "-shm"} {
		for how, open := range map[string]func(*testing.T, string) error{
			"read":             func(_ *testing.T, dir string) error { return closed(OpenReadOnly(dir)) },
			"write":            func(_ *testing.T, dir string) error { return closed(Open(dir)) },
			"read with a link": func(t *testing.T, dir string) error { return closed(OpenReadOnly(linked(t, dir))) },
			"does it exist": func(_ *testing.T, dir string) error {
				if !Exists(dir) {
					t.Error("a new folder may not take this one's place")
				}
				return closed(OpenReadOnly(dir))
			},
		} {
			t.Run(how+end, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				_ = os.Remove(filepath.Join(dir, dbName+end))
				if err := unix.Mkfifo(filepath.Join(dir, dbName+end), 0o600); err != nil {
					t.Fatal(err)
				}
				within(t, func() {
					want := dbName + end + " is not a regular file; remove it and try again"
					if err := open(t, dir); err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %s", err, want)
					}
				})
			})
		}
	}
}

// TestNewFolderWithPipes: Create takes what a Create that died may have left, and no FIFO
// of such a name stops it.
func TestNewFolderWithPipes(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{tempName(studyName), studyName, dbName + "-journal", dbName + "-wal", dbName + "-shm"} {
		if err := unix.Mkfifo(filepath.Join(dir, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	within(t, func() {
		if err := closed(Create(dir, testMeta())); err != nil {
			t.Error(err)
		}
	})
}

// closed closes a store that was opened.
func closed(s *Store, err error) error {
	if err != nil {
		return err
	}
	return s.Close()
}
