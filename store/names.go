package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// checkNames refuses results with trial names that tare does not give: a folder may come from
// someone else, and other programs use the names as paths. It reads only the index of names.
func (s *Store) checkNames(ctx context.Context) error {
	var name string
	err := s.one(ctx, `SELECT name FROM trials WHERE name NOT GLOB '[0-9][0-9][0-9][0-9][0-9][0-9]*-[0-9]*'
		OR name GLOB '*[^0-9-]*' OR name GLOB '*-*-*' OR length(name) > 40 LIMIT 1`, nil, &name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read the names of the trials: %w; if %s is damaged, restore the folder from a copy or a bundle, if you have one", err, dbName)
	}
	return fmt.Errorf("%s has a trial with the name %.60q, which tare does not give: names are as 000012-1; do not use these results", dbName, name)
}

// checkFiles refuses file names that do not belong to their trial.
func (s *Store) checkFiles(ctx context.Context) error {
	return s.each(ctx, "SELECT t.name, e.kind, e.name, e.file FROM evidence e LEFT JOIN trials t ON t.id = e.trial", nil, func(r *sql.Rows) error {
		var trial sql.NullString
		var kind, name, file string
		if err := r.Scan(&trial, &kind, &name, &file); err != nil {
			return err
		}
		want := seriesDir + "/" + trial.String + ".parquet"
		if kind == "raw" {
			if err := checkRawName(name); err != nil {
				return err
			}
			want = rawDir + "/" + trial.String + "/" + name + ".zst"
		} else if name != "" {
			want = ""
		}
		if !trial.Valid || file != want {
			return fmt.Errorf("%s has a file %.60q that does not belong to its trial; do not use these results", dbName, file)
		}
		return nil
	})
}
