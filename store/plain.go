package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// sideFiles returns the endings of the files that SQLite keeps beside a database.
func sideFiles() []string { return []string{"-journal", "-wal", "-shm"} }

// plainFiles refuses a folder whose database, or a file that SQLite opens beside it, is not
// a regular file: SQLite opens any file with the name, and a FIFO would block it forever.
func plainFiles(dir string) error {
	path := filepath.Join(dir, dbName)
	st, err := os.Stat(path) //nolint:gosec // below the folder that the user named
	if err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: %w; restore the folder from a copy or a bundle, if you have one", dbName, fs.ErrInvalid)
	}
	places := []string{path}
	// Of a database behind a link, SQLite opens the files beside the link's target.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		places = append(places, target)
	}
	for _, place := range places {
		for _, end := range sideFiles() {
			st, err := os.Lstat(place + end) //nolint:gosec // as above
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if !st.Mode().IsRegular() {
				return fmt.Errorf("%s is not a regular file; remove it and try again", dbName+end)
			}
		}
	}
	return nil
}
