package store

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SchemaVersion is the version of results.db that this program writes. It reads
// this one and every older one.
const SchemaVersion = 3

// applicationID marks the file as ours (PRAGMA application_id): "TARE".
const applicationID = 0x54415245

//go:embed schema.sql
var schemaSQL string

//go:embed schema2.sql
var schema2SQL string

//go:embed schema3.sql
var schema3SQL string

// schemas are the steps from an empty file to each version of the schema.
func schemas() []string { return []string{schemaSQL, schema2SQL, schema3SQL} }

// ErrNewer means that a later tare wrote the folder in a schema that this one does not know.
var ErrNewer = errors.New("written by a newer tare")

// errUnfinished: Create died before its transaction; nothing is in the file.
var errUnfinished = fmt.Errorf("the folder was never completed, and nothing was stored in it: %w", ErrNoResults)

// createSchema makes the tables that a version lacks; 0 is an empty file. It runs inside
// Create's transaction, which includes user_version and application_id, so that a database has
// either everything or version 0.
func createSchema(ctx context.Context, c *sql.Conn, from int) error {
	for _, text := range schemas()[from:] {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, SchemaVersion))
	return err
}

// upgrade converts an older database to this schema, in one transaction. Its trials get
// checksums of their present state: they show later damage. What is damaged already, as
// far as the older schema shows it, was refused before.
func (s *Store) upgrade(ctx context.Context) error {
	if s.version == SchemaVersion {
		return nil
	}
	bounds, err := s.bounds(ctx) // ids may have gaps of any size
	if err != nil {
		return err
	}
	from := s.version
	s.version = SchemaVersion // what is sealed below is read as this schema has it
	err = s.transact(ctx, func(ctx context.Context, c *sql.Conn) error {
		if err := createSchema(ctx, c, from); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, "DELETE FROM checksums"); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, "UPDATE meta SET value = ? WHERE key = 'schema'", strconv.Itoa(SchemaVersion)); err != nil {
			return err
		}
		sessions, err := s.sessionIDs(ctx, c)
		err = errors.Join(err, s.seal(ctx, c, sumMeta, 0), s.seal(ctx, c, sumSkips, 0))
		for i := 0; i < len(sessions) && err == nil; i++ {
			err = s.seal(ctx, c, sumSession, sessions[i])
		}
		for i := 0; i+1 < len(bounds) && err == nil; i++ {
			err = s.sealTrials(ctx, c, bounds[i], bounds[i+1])
		}
		return err
	})
	if err != nil {
		s.version = from
	}
	return err
}

// checkSchema returns the version of an opened database, or says why it cannot
// be used.
func (s *Store) checkSchema(ctx context.Context) (int, error) {
	var version, app int
	if err := s.one(ctx, "PRAGMA user_version", nil, &version); err != nil {
		return 0, unreadable(err)
	}
	if err := s.one(ctx, "PRAGMA application_id", nil, &app); err != nil {
		return 0, unreadable(err)
	}
	switch {
	case version == 0 && app == 0:
		return 0, errUnfinished
	case app != applicationID:
		return 0, fmt.Errorf("this is an SQLite database, but not one of tare (application id %#x)", app)
	case version > SchemaVersion:
		return 0, fmt.Errorf("schema %d, and this program knows schema %d: %w; use that version, or a later one", version, SchemaVersion, ErrNewer)
	case version < 1:
		return 0, fmt.Errorf("schema %d does not exist; the file is damaged", version)
	}
	return version, nil
}

// unreadable explains an error of the first queries. An I/O error is not a fault of the
// database: SQLite could not make its log or its index beside it.
func unreadable(err error) error {
	var told *damagedError
	if err = broken(err); errors.As(err, &told) {
		return err
	}
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_IOERR {
		return fmt.Errorf("SQLite cannot write files beside the database: the disk may be full; free some space and try again: %w", err)
	}
	return fmt.Errorf("cannot read it as a results database: %w", err)
}
