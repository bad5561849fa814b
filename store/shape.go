package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkShape refuses a database whose tables, views and indexes differ from those that
// tare makes. A view in place of a table could compute for ever, and a trigger would
// change what is written. checkShape reads only the schema, so it comes before every query
// on the tables. It ignores tables and views of the user: nothing reads them.
func (s *Store) checkShape(ctx context.Context) error {
	want, got, err := s.shapes(ctx)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if want[k] != "" {
			continue
		}
		kind, name, _ := strings.Cut(k, " ")
		table, _, _ := strings.Cut(got[k], "\x00")
		_, ours := want["table "+table]
		_, taken := want["table "+name]
		if kind == "trigger" || kind == "index" && ours || taken {
			return fmt.Errorf("%s has the %s, which tare did not create; if it is yours, drop it first", dbName, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		text, ok := got[k]
		if !ok {
			return fmt.Errorf("%s lacks the %s: the file is damaged, or tare did not create it; restore the results from a copy or a bundle", dbName, k)
		}
		if text != want[k] {
			return fmt.Errorf("the schema of %s is not tare's: its %s differs; do not use these results", dbName, k)
		}
	}
	return nil
}

// Genuine says why somebody else's database must not be used: it holds tables, views,
// triggers or indexes that tare does not make, or makes differently; or it names files
// that no trial has; or its pages are damaged
// (https://www.sqlite.org/security.html#untrusted_sqlite_database_files).
func (s *Store) Genuine(ctx context.Context) error {
	want, got, err := s.shapes(ctx)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok { // checkShape has checked the others
			return fmt.Errorf("%s has the %s, which tare did not create; if it is yours, drop it first", dbName, k)
		}
	}
	if err := s.checkFiles(ctx); err != nil {
		return err
	}
	return s.checkPages(ctx)
}

// checkPages checks each page of the database once. It takes a second for 250 MB, so
// readers of the user's own results skip it: there the checksums of the trials show
// damage.
func (s *Store) checkPages(ctx context.Context) error {
	var verdict string
	if err := s.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return fmt.Errorf("check the database: %w", broken(err))
	}
	if verdict != "ok" {
		return fmt.Errorf("the database is damaged (%s); nothing will be added to it; `sqlite3 %s .recover` shows what is left", verdict, dbName)
	}
	return nil
}

// shapes are the objects that the schema of the store's version makes, and those that
// exist.
func (s *Store) shapes(ctx context.Context) (want, got map[string]string, err error) {
	ours, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = ours.Close() }()
	ours.SetMaxOpenConns(1) // each connection would have a database of its own
	for _, text := range schemas()[:s.version] {
		if _, err := ours.ExecContext(ctx, text); err != nil {
			return nil, nil, fmt.Errorf("make the schema: %w", err)
		}
	}
	if want, err = objects(ctx, &Store{db: ours, patience: s.patience}); err != nil {
		return nil, nil, err
	}
	got, err = objects(ctx, s)
	return want, got, err
}

// maxObjects is far above what tare makes and a user adds.
const maxObjects = 1000

// objects are the parts of a database, such as "table trials", with the table that each
// belongs to and the original SQL that made it.
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
		if len(out) > maxObjects {
			err = fmt.Errorf("there are more than %d tables, views and indexes", maxObjects)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return out, nil
}
