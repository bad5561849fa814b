package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/record"
)

// TrialName returns the name of a trial's files and row: its place in the order of
// execution, and its attempt.
func TrialName(t *record.Trial) string {
	return fmt.Sprintf("%06d-%d", t.Seq, t.Attempt)
}

// errCommit marks an error after which the row may or may not exist.
var errCommit = errors.New("commit")

// Append stores a finished trial, also a failed one. When it returns nil, the trial and its
// evidence are durable on disk. After an error nothing of the trial is in the results, and
// the store is still usable, so a caller may free disk space and append again.
func (s *Store) Append(ctx context.Context, t *record.Trial, e record.Evidence) error {
	if !s.writable {
		return ErrReadOnly
	}
	if t.Seq < 1 || t.Attempt < 1 {
		return fmt.Errorf("store a trial: seq %d and attempt %d must count from 1", t.Seq, t.Attempt)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := TrialName(t)
	var n int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM trials WHERE name = ?", name).Scan(&n); err != nil {
		return fmt.Errorf("store trial %s: %w", name, err)
	}
	if n > 0 {
		return fmt.Errorf("store trial %s: it is stored already; a trial is never changed", name)
	}
	files, err := s.writeEvidence(name, e)
	if err != nil {
		return fmt.Errorf("store the evidence of trial %s: %w", name, err)
	}
	err = s.transact(ctx, func(ctx context.Context, c *sql.Conn) error {
		id, err := insertTrial(ctx, c, s.session, name, t, files)
		if err != nil {
			return err
		}
		return s.sealTrials(ctx, c, id-1, id)
	})
	if err != nil {
		// After a failed commit, a later recovery of the log may still find the row, so keep
		// its files. Open handles them if it does not.
		if !errors.Is(err, errCommit) {
			s.removeEvidence(name)
		}
		return fmt.Errorf("store trial %s: %w", name, err)
	}
	t.Session = s.session
	if s.appended++; s.appended <= earlyTrials || s.appended%laterTrials == 0 {
		s.checkpoint()
	}
	return nil
}

// Number of trials after which the log is moved into the database: at first after each trial,
// so that a lost log never loses a study, and later so often that it loses only a few trials.
// A checkpoint costs about as much as the flush of a trial.
const (
	earlyTrials = 8
	laterTrials = 16
)

// checkpoint moves the log into the database file, as far as readers allow. After an error,
// the log still has everything.
func (s *Store) checkpoint() {
	_, _ = s.db.Exec("PRAGMA wal_checkpoint(PASSIVE)")
}

// transact runs f in one transaction on one connection. It issues BEGIN and COMMIT itself
// because sql.Tx drops a transaction whose COMMIT failed (a full disk), while SQLite keeps it
// open and refuses the next one.
func (s *Store) transact(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = f(ctx, c)
	if err == nil {
		if _, err = c.ExecContext(ctx, "COMMIT"); err == nil {
			return nil
		}
		err = fmt.Errorf("%w: %w", errCommit, err)
	}
	// Without ctx's deadline: the transaction must end even if ctx has. An error means
	// only that SQLite has rolled back by itself.
	_, _ = c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// evidenceFile is one row of the table evidence.
type evidenceFile struct {
	kind, name, file string
	bytes            int64
	sha256           string // hexadecimal
}

// insertTrial inserts a trial and returns its id.
func insertTrial(ctx context.Context, c *sql.Conn, session int64, name string, t *record.Trial, files []evidenceFile) (int64, error) {
	var f [5]any
	if t.Failure != nil {
		f = [5]any{t.Failure.Phase, t.Failure.Kind, t.Failure.Reason, t.Failure.Tail, t.Failure.Role}
	}
	res, err := c.ExecContext(ctx, `INSERT INTO trials (name, session, seq, block, attempt, cell, status, start, duration_ns,
		failure_phase, failure_kind, failure_reason, failure_tail, failure_role, node) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		name, session, t.Seq, t.Block, t.Attempt, t.Cell.Key(), string(t.Status), timeText(t.Start), int64(t.Duration),
		f[0], f[1], f[2], f[3], f[4], t.Node)
	if err != nil {
		return 0, err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return 0, err
	}
	w := inserter{ctx: ctx, c: c}
	w.into("levels", "?,?,?,?")
	for i, l := range t.Cell {
		w.row(id, i, l.Factor, l.Value)
	}
	w.into("samples", "?,?,?,?,?,?,?,?")
	for i, p := range t.Samples {
		w.row(id, i, p.Name, string(p.Labels), string(p.Unit), string(p.Kind), p.Value, p.Original)
	}
	w.into("histograms", "?,?,?,?,?,?,?")
	for i, h := range t.Histograms {
		w.row(id, i, h.Name, string(h.Labels), string(h.Unit), h.Scale, nonNil(h.Encoded))
	}
	w.into("phases", "?,?,?,?,?")
	for i, p := range t.Phases {
		w.row(id, i, p.Name, int64(p.Offset), int64(p.Duration))
	}
	w.into("warnings", "?,?,?,?")
	for i, x := range t.Warnings {
		w.row(id, i, x.Code, x.Text)
	}
	w.into("facts", "?,?,?")
	for _, k := range slices.Sorted(maps.Keys(t.Facts)) {
		w.row(id, k, t.Facts[k])
	}
	w.into("evidence", "?,?,?,?,?,?")
	for _, f := range files {
		w.row(id, f.kind, f.name, f.file, f.bytes, f.sha256)
	}
	return id, w.close()
}

// inserter fills one table after another, maxRows at a time, and keeps the first error. A
// statement with many rows costs little more than one with a single row.
type inserter struct {
	ctx    context.Context
	c      *sql.Conn
	table  string
	values string // placeholders of one row
	rows   int
	args   []any
	err    error
}

// maxRows keeps a statement far below SQLite's 32766 placeholders.
const maxRows = 64

func (w *inserter) into(table, values string) {
	w.flush()
	w.table, w.values = table, values
}

func (w *inserter) row(args ...any) {
	w.args = append(w.args, args...)
	if w.rows++; w.rows == maxRows {
		w.flush()
	}
}

func (w *inserter) flush() {
	if w.rows > 0 && w.err == nil {
		more := strings.Repeat(",("+w.values+")", w.rows-1)
		if _, err := w.c.ExecContext(w.ctx, "INSERT INTO "+w.table+" VALUES ("+w.values+")"+more, w.args...); err != nil { //nolint:gosec // table and values are constants of this file
			w.err = fmt.Errorf("table %s: %w", w.table, err)
		}
	}
	w.rows, w.args = 0, w.args[:0]
}

func (w *inserter) close() error {
	w.flush()
	return w.err
}

// nonNil keeps an empty histogram from becoming NULL.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
