package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Snapshot writes the present database to a new file, with only complete trials, also while
// another process appends. Equal results give the same bytes, whatever is in the log and in
// free pages. The file needs no log beside it
// (https://www.sqlite.org/lang_vacuum.html#vacuuminto).
func (s *Store) Snapshot(ctx context.Context, path string) error {
	if _, err := s.db.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return fmt.Errorf("copy the database of %s: %w", s.dir, broken(err))
	}
	return nil
}

// EvidenceFile is one file of a trial.
type EvidenceFile struct {
	Name   string // path below the folder, with slashes
	SHA256 string // hexadecimal; "" for files that were stored under schema 1
}

// EvidenceFiles lists the files that the trials have, sorted by name. It does not check
// that they still exist, or that they are unchanged.
func (s *Store) EvidenceFiles(ctx context.Context) ([]EvidenceFile, error) {
	column := "coalesce(sha256, '')"
	if s.version < 2 {
		column = "''"
	}
	var out []EvidenceFile
	err := s.each(ctx, "SELECT file, "+column+" FROM evidence ORDER BY file", nil, func(r *sql.Rows) error {
		var f EvidenceFile
		err := r.Scan(&f.Name, &f.SHA256)
		out = append(out, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the evidence in %s: %w", s.dir, err)
	}
	return out, nil
}
