package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// altered is a results folder in which somebody ran a few SQL statements.
func altered(t *testing.T, statements ...string) string {
	t.Helper()
	s := newStore(t)
	appendN(t, s, 1, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	alter(t, s.Dir(), statements...)
	return s.Dir()
}

// golden is a copy of what the program of a schema wrote, in which somebody ran a few SQL
// statements.
func golden(t *testing.T, version string, statements ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", version))); err != nil {
		t.Fatal(err)
	}
	alter(t, dir, statements...)
	return dir
}

func alter(t *testing.T, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, dbName))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	for _, q := range statements {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// within runs f, which must end soon.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

const endless = "WITH RECURSIVE e(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM e) "

// TestShape: a database whose tables are not tables, or have triggers, is refused before
// anything reads it. An endless view blocked readers for ever.
func TestShape(t *testing.T) {
	for name, c := range map[string]struct {
		statements []string
		want       string
	}{
		"an endless view for trials": {[]string{"PRAGMA foreign_keys = OFF", "DROP TABLE trials",
			"CREATE VIEW trials AS " + endless + "SELECT n AS id, '000001-1' AS name, 1 AS session FROM e"}, "has the view trials"},
		"an endless view for sessions": {[]string{"PRAGMA foreign_keys = OFF", "DROP TABLE sessions",
			"CREATE VIEW sessions AS " + endless + "SELECT n AS id, '' AS started, '' AS tare_version FROM e"}, "has the view sessions"},
		"another view":      {[]string{"DROP VIEW cells", "CREATE VIEW cells AS " + endless + "SELECT n AS cell FROM e"}, "its view cells differs"},
		"another column":    {[]string{"ALTER TABLE facts ADD COLUMN more TEXT"}, "its table facts differs"},
		"a trigger":         {[]string{"CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM samples; END"}, "drop it first"},
		"an index on ours":  {[]string{"CREATE INDEX mine ON trials (cell)"}, "drop it first"},
		"a missing index":   {[]string{"DROP INDEX samples_name"}, "lacks the index samples_name"},
		"a user's own view": {[]string{"CREATE VIEW mine AS SELECT * FROM responses", "CREATE TABLE notes (x)", "CREATE INDEX n ON notes (x)"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := altered(t, c.statements...)
			within(t, func() {
				for _, open := range []func(string) (*Store, error){OpenReadOnly, Open} {
					s, err := open(dir)
					if err == nil {
						_ = s.Close()
					}
					if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
						t.Errorf("got %v, want %q", err, c.want)
					}
				}
			})
		})
	}
}

// TestQueriesEnd: each query has its own deadline. Its message differs from that of a user's
// interrupt.
func TestQueriesEnd(t *testing.T) {
	s := newStore(t)
	s.patience = time.Second // a deadline between the driver's last look and its first step would go unseen
	within(t, func() {
		var n int
		if err := s.one(t.Context(), endless+"SELECT count(*) FROM e", nil, &n); !errors.Is(err, errLate) {
			t.Errorf("a query that never ends: %v", err)
		}
		if err := s.each(t.Context(), endless+"SELECT n FROM e", nil, func(*sql.Rows) error { return nil }); !errors.Is(err, errLate) {
			t.Errorf("rows that never end: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.one(ctx, "SELECT 1", nil, &n); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled query: %v", err)
		}
	})
	appendN(t, s, 1, 1) // the connection is still good
}

// TestLimits: every connection has the limits that SQLite recommends.
func TestLimits(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 1)
	r, err := OpenReadOnly(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for name, x := range map[string]*Store{"writer": s, "reader": r} {
		var held []*sql.Conn
		for range x.readers {
			c, err := x.db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
			for q, want := range map[string]string{
				"SELECT length(zeroblob(100 << 20))":                    "too big",
				"SELECT 1" + strings.Repeat(" ", 200_000):               "too big",
				"PRAGMA trusted_schema":                                 "0",
				"PRAGMA cell_size_check":                                "1",
				"SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4": "too many terms",
			} {
				var got string
				if err := c.QueryRowContext(t.Context(), q).Scan(&got); err != nil {
					got = err.Error()
				}
				if !strings.Contains(got, want) {
					t.Errorf("%s: %.60s gives %q, want %q", name, q, got, want)
				}
			}
		}
		for _, c := range held {
			_ = c.Close()
		}
	}
}
