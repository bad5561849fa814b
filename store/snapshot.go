package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
)

// Snapshot writes the database as it is now to a new file, also while another
// process appends: whole trials, and none that came later. One folder gives the
// same bytes, whatever is in its log and its free pages. The file needs no log beside it (https://www.sqlite.org/lang_vacuum.html#vacuuminto).
func (s *Store) Snapshot(ctx context.Context, path string) error {
	if _, err := s.db.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return fmt.Errorf("copy the database of %s: %w", s.dir, err)
	}
	return nil
}

// EvidenceFiles lists the files that the trials have, as paths below the folder
// with slashes, sorted. Whether they are still there is another question.
func (s *Store) EvidenceFiles(ctx context.Context) ([]string, error) {
	var out []string
	err := s.each(ctx, "SELECT file FROM evidence ORDER BY file", nil, func(r *sql.Rows) error {
		var f string
		err := r.Scan(&f)
		out = append(out, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the evidence in %s: %w", s.dir, err)
	}
	return out, nil
}

// Genuine says why a database of someone else is not to be used: it holds
// tables, views, triggers or indexes that tare does not make, or makes
// differently, or names files that no trial has, or its pages are damaged
// (https://www.sqlite.org/security.html#untrusted_sqlite_database_files).
func (s *Store) Genuine(ctx context.Context) error {
	ours, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }()
	ours.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := ours.ExecContext(ctx, schemaSQL); err != nil {
		return err
	}
	want, err := objects(ctx, &Store{db: ours})
	if err != nil {
		return err
	}
	got, err := objects(ctx, s)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if text, ok := want[k]; !ok {
			return fmt.Errorf("%s has the %s, which tare does not make; if it is yours, drop it first", dbName, k)
		} else if text != got[k] {
			return fmt.Errorf("%s has another %s than tare makes", dbName, k)
		}
		delete(want, k)
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		return fmt.Errorf("%s lacks the %s", dbName, k)
	}
	if err := s.checkFiles(ctx); err != nil {
		return err
	}
	var verdict string
	if err := s.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%s is damaged (%s)", dbName, verdict)
	}
	return nil
}

// objects are what a database is made of, "table trials", with the SQL that made
// them, as it was given.
func objects(ctx context.Context, s *Store) (map[string]string, error) {
	out := make(map[string]string)
	err := s.each(ctx, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema", nil, func(r *sql.Rows) error {
		var kind, name, table, text string
		err := r.Scan(&kind, &name, &table, &text)
		if k := kind + " " + name; out[k] == "" {
			out[k] = table + "\x00" + text
		} else {
			err = fmt.Errorf("%s is there twice", k)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return out, nil
}
