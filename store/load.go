package store

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math"
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
	return func(yield func(record.Trial, error) bool) {
		after := int64(math.MinInt64)
		for {
			batch, last, err := s.loadBatch(ctx, after)
			if err != nil {
				yield(record.Trial{}, fmt.Errorf("read trials: %w", err))
				return
			}
			for i := range batch {
				if !yield(batch[i], nil) {
					return
				}
			}
			if len(batch) < batchSize {
				return
			}
			after = last
		}
	}
}

// loadBatch reads the trials after an id, which rises with the order of
// execution, because there is one writer that appends what has finished.
func (s *Store) loadBatch(ctx context.Context, after int64) (out []record.Trial, last int64, err error) {
	index := make(map[int64]*record.Trial)
	out = make([]record.Trial, 0, batchSize) // never grows: index points into it
	first := after
	err = s.each(ctx, `SELECT id, seq, block, attempt, status, start, duration_ns,
		failure_phase, failure_kind, failure_reason, failure_tail, failure_role
		FROM trials WHERE id > ? ORDER BY id LIMIT ?`, []any{after, batchSize}, func(r *sql.Rows) error {
		var t record.Trial
		var start string
		var f [5]sql.NullString
		if err := r.Scan(&last, &t.Seq, &t.Block, &t.Attempt, &t.Status, &start, &t.Duration, &f[0], &f[1], &f[2], &f[3], &f[4]); err != nil {
			return err
		}
		var err error
		if t.Start, err = time.Parse(time.RFC3339Nano, start); err != nil {
			return err
		}
		if f[1].Valid {
			t.Failure = &record.Failure{Phase: f[0].String, Kind: f[1].String, Reason: f[2].String, Tail: f[3].String, Role: f[4].String}
		}
		out = append(out, t)
		index[last] = &out[len(out)-1]
		return nil
	})
	if err != nil || len(out) == 0 {
		return nil, last, err
	}
	for _, p := range parts() {
		err := s.each(ctx, p.query, []any{first, last}, func(r *sql.Rows) error {
			var id int64
			return p.scan(r, &id, func() *record.Trial { return index[id] })
		})
		if err != nil {
			return nil, last, err
		}
	}
	return out, last, nil
}

// part reads one child table of trials.
type part struct {
	query string
	scan  func(r *sql.Rows, id *int64, trial func() *record.Trial) error
}

// parts lists the child tables. A row of a trial that is not in the batch can
// only be in a damaged database and is passed over.
func parts() []part {
	const where = " WHERE trial > ? AND trial <= ? ORDER BY trial, ord"
	return []part{
		{"SELECT trial, factor, level FROM levels" + where, func(r *sql.Rows, id *int64, trial func() *record.Trial) error {
			var l record.Level
			err := r.Scan(id, &l.Factor, &l.Value)
			if t := trial(); err == nil && t != nil {
				t.Cell = append(t.Cell, l)
			}
			return err
		}},
		{"SELECT trial, name, labels, unit, kind, value, original FROM samples" + where, func(r *sql.Rows, id *int64, trial func() *record.Trial) error {
			var p record.Sample
			var v sql.NullFloat64
			err := r.Scan(id, &p.Name, &p.Labels, &p.Unit, &p.Kind, &v, &p.Original)
			if t := trial(); err == nil && t != nil {
				if p.Value = v.Float64; !v.Valid {
					p.Value = math.NaN()
				}
				t.Samples = append(t.Samples, p)
			}
			return err
		}},
		{"SELECT trial, name, labels, unit, scale, encoded FROM histograms" + where, func(r *sql.Rows, id *int64, trial func() *record.Trial) error {
			var h record.Histogram
			err := r.Scan(id, &h.Name, &h.Labels, &h.Unit, &h.Scale, &h.Encoded)
			if t := trial(); err == nil && t != nil {
				t.Histograms = append(t.Histograms, h)
			}
			return err
		}},
		{"SELECT trial, name, offset_ns, duration_ns FROM phases" + where, func(r *sql.Rows, id *int64, trial func() *record.Trial) error {
			var p record.Phase
			err := r.Scan(id, &p.Name, &p.Offset, &p.Duration)
			if t := trial(); err == nil && t != nil {
				t.Phases = append(t.Phases, p)
			}
			return err
		}},
		{"SELECT trial, code, text FROM warnings" + where, func(r *sql.Rows, id *int64, trial func() *record.Trial) error {
			var w record.Warning
			err := r.Scan(id, &w.Code, &w.Text)
			if t := trial(); err == nil && t != nil {
				t.Warnings = append(t.Warnings, w)
			}
			return err
		}},
		{"SELECT trial, name, value FROM facts WHERE trial > ? AND trial <= ?", func(r *sql.Rows, id *int64, trial func() *record.Trial) error {
			var k, v string
			err := r.Scan(id, &k, &v)
			if t := trial(); err == nil && t != nil {
				if t.Facts == nil {
					t.Facts = make(map[string]string)
				}
				t.Facts[k] = v
			}
			return err
		}},
	}
}

// each runs f on every row of a query. The rows are done when it returns, so the
// one connection is free again.
func (s *Store) each(ctx context.Context, query string, args []any, f func(*sql.Rows) error) error {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
