package store

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"tare/record"
)

// batchSize is how many trials All holds at a time.
const batchSize = 256

// Trials returns every stored trial in the order of execution. For results that
// may not fit in memory there is All.
func (s *Store) Trials() ([]record.Trial, error) {
	var out []record.Trial
	for t, err := range s.All(context.Background()) {
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// All yields the stored trials in the order of execution, reading a few hundred
// at a time; an error ends it. Trials that another process adds meanwhile may
// or may not be seen, but each is whole.
func (s *Store) All(ctx context.Context) iter.Seq2[record.Trial, error] {
	return s.Some(ctx, Pick{All: true})
}

// Pick says which parts of the trials are read: a trial has some eighty samples,
// of which an analysis wants ten, and rows that are not read cost a tenth of
// those that are.
type Pick struct {
	All          bool     // everything; the other fields do not count
	Labels       []string // samples without labels, and those with a label of one of these names; none has Original
	NoHistograms bool
	Names        []string // samples of these names too, whatever their labels
	Facts        []string // those whose names end so; "" is all of them, nil none
}

// Some is All with the parts of Pick alone. Trials of one cell share their Cell
// then, which is not to be changed.
func (s *Store) Some(ctx context.Context, pick Pick) iter.Seq2[record.Trial, error] {
	return func(yield func(record.Trial, error) bool) {
		bounds, err := s.bounds(ctx)
		if err != nil {
			yield(record.Trial{}, fmt.Errorf("read the trials in %s: %w", s.dir, err))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		var loading sync.WaitGroup
		defer func() {
			cancel()
			close(stop)
			loading.Wait() // then the connections are free again
		}()
		// Loaders take turns, and so does the reader: SQLite takes longer than what
		// is done with the trials. Each is a batch ahead, no more.
		loaded := make([]chan batch, s.readers)
		for w := range loaded {
			loaded[w] = make(chan batch)
			loading.Go(func() {
				l := newLoader(pick)
				for i := w; i+1 < len(bounds); i += len(loaded) {
					trials, err := s.loadBatch(ctx, bounds[i], bounds[i+1], l)
					select {
					case loaded[w] <- batch{trials, err}:
					case <-stop:
						return
					}
				}
			})
		}
		for i := range len(bounds) - 1 {
			b := <-loaded[i%len(loaded)]
			if b.err != nil {
				yield(record.Trial{}, fmt.Errorf("read the trials in %s: %w", s.dir, b.err))
				return
			}
			for i := range b.trials {
				if !yield(b.trials[i], nil) {
					return
				}
			}
		}
	}
}

type batch struct {
	trials []record.Trial
	err    error
}

// bounds returns ids of trials: between one and the next, the first left out,
// there is a batch. Ids rise with the order of execution, because there is one
// writer that appends what has finished.
func (s *Store) bounds(ctx context.Context) ([]int64, error) {
	out := []int64{math.MinInt64}
	n, last := 0, int64(math.MinInt64)
	err := s.each(ctx, "SELECT id FROM trials ORDER BY id", nil, func(r *sql.Rows) error {
		if n > 0 && n%batchSize == 0 {
			out = append(out, last)
		}
		n++
		return r.Scan(&last)
	})
	if n > 0 {
		out = append(out, last)
	}
	return out, err
}

// loadBatch reads the trials after one id and up to another.
func (s *Store) loadBatch(ctx context.Context, first, last int64, l *loader) (out []record.Trial, err error) {
	index := make(map[int64]*record.Trial)
	out = make([]record.Trial, 0, batchSize) // never grows: index points into it
	err = s.each(ctx, `SELECT id, session, seq, block, attempt, cell, status, start, duration_ns,
		failure_phase, failure_kind, failure_reason, failure_tail, failure_role
		FROM trials WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`, []any{first, last, batchSize}, func(r *sql.Rows) error {
		var t record.Trial
		var cell, status, start string
		var id, duration int64
		var f [5]sql.NullString
		if err := r.Scan(&id, &t.Session, &t.Seq, &t.Block, &t.Attempt, &cell, &status, &start, &duration, &f[0], &f[1], &f[2], &f[3], &f[4]); err != nil {
			return err
		}
		t.Status, t.Duration = record.Status(l.same.text(status)), time.Duration(duration)
		if l.cells != nil {
			t.Cell = l.cell(cell)
		}
		var err error
		if t.Start, err = time.Parse(time.RFC3339Nano, start); err != nil {
			return err
		}
		if f[1].Valid {
			t.Failure = &record.Failure{Phase: f[0].String, Kind: f[1].String, Reason: f[2].String, Tail: f[3].String, Role: f[4].String}
		}
		out = append(out, t)
		index[id] = &out[len(out)-1]
		return nil
	})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	for _, p := range l.parts {
		var t *record.Trial // of the row before: a trial's rows come one after the other
		var at int64
		err := s.each(ctx, p.query, append([]any{first, last}, p.args...), func(r *sql.Rows) error {
			return p.scan(r, func(id int64) *record.Trial {
				if t == nil || id != at {
					t, at = index[id], id
				}
				return t
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// each runs f on every row of a query, which ends after the store's patience. The
// rows are done when it returns, so the one connection is free again.
func (s *Store) each(ctx context.Context, query string, args []any, f func(*sql.Rows) error) error {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	rows, err := s.db.QueryContext(limited, query, args...)
	if err != nil {
		return late(ctx, limited, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return late(ctx, limited, rows.Err())
}

// one scans the one row of a query, within the store's patience.
func (s *Store) one(ctx context.Context, query string, args []any, into ...any) error {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return late(ctx, limited, s.db.QueryRowContext(limited, query, args...).Scan(into...))
}

// errLate: a query took longer than any does on a database of tare.
var errLate = fmt.Errorf("a query did not end in time: %s is damaged, or made to hold whoever reads it up; do not use these results", dbName)

// late is the error of a query, which its deadline may have ended.
func late(whole, limited context.Context, err error) error {
	if err != nil && whole.Err() == nil && limited.Err() != nil {
		return errLate
	}
	return err
}
