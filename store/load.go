package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"tare/record"
)

// batchSize is how many trials All holds at a time.
const batchSize = 256

// Bounds on memory: a database may come from someone else, and a bundle of one megabyte
// unpacks to 200. A trial of tare has about 10 KiB of rows.
const (
	maxLoaded = 64 << 20  // bytes of rows that a loader holds
	maxPicked = 8_000_000 // samples that Some picks in all; the reader usually keeps them
	perTrial  = 8         // a trial takes as much memory as so many samples
)

// errMuch: trials have more rows than a loader may hold.
var errMuch = fmt.Errorf("more than %d MiB of rows, which no study has", maxLoaded>>20)

// Trials returns every stored trial in the order of execution. Use All for results that may
// not fit in memory.
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

// All yields the stored trials in the order of execution, and reads a few hundred at a time.
// An error ends it. It may or may not yield trials that another process adds meanwhile, but
// each is complete.
func (s *Store) All(ctx context.Context) iter.Seq2[record.Trial, error] {
	return s.Some(ctx, Pick{All: true})
}

// Pick says which parts of the trials are read. A trial has some eighty samples, of which an
// analysis needs ten, and a row that is skipped costs a tenth of one that is read.
type Pick struct {
	All          bool     // everything; the other fields do not count
	Labels       []string // samples without labels, and those with a label of one of these names; without Original
	NoHistograms bool
	Names        []string // also samples of these names, with any labels
	Facts        []string // facts whose names have one of these endings; "" matches all, nil none
}

// Some is All with only the parts of Pick. Trials of one cell share their Cell; callers must
// not change it.
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
			loading.Wait() // until the connections are free again
		}()
		// The loaders take turns, and the reader takes their batches in turn, because SQLite takes
		// longer than the use of the trials. Each loader is at most one batch ahead.
		loaded := make([]chan batch, s.readers)
		for w := range loaded {
			loaded[w] = make(chan batch)
			loading.Go(func() {
				l := s.newLoader(pick)
				give := func(b batch) bool {
					select {
					case loaded[w] <- b:
						return true
					case <-stop:
						return false
					}
				}
				for i := w; i+1 < len(bounds); i += len(loaded) {
					err := s.loadParts(ctx, bounds[i], bounds[i+1], l, give)
					if !give(batch{err: err, last: true}) {
						return
					}
				}
			})
		}
		picked := 0
		for i := 0; i+1 < len(bounds); {
			b := <-loaded[i%len(loaded)]
			if b.last {
				i++
			}
			for k := range b.trials {
				if picked += perTrial + len(b.trials[k].Samples); picked > s.mostPicked && !pick.All {
					b.err = fmt.Errorf("they have more than %d trials or samples to analyse, which no study has; do not use these results", s.mostPicked)
					break
				}
				if !yield(b.trials[k], nil) {
					return
				}
			}
			if b.err != nil {
				yield(record.Trial{}, fmt.Errorf("read the trials in %s: %w", s.dir, b.err))
				return
			}
		}
	}
}

// batch is some trials between two bounds, and whether they are the last there.
type batch struct {
	trials []record.Trial
	err    error
	last   bool
}

// loadParts gives the trials after the id first and up to last, in parts that fit into memory.
// It leaves out a single trial that does not. give returns false if nobody wants more.
func (s *Store) loadParts(ctx context.Context, first, last int64, l *loader, give func(batch) bool) error {
	trials, err := s.loadBatch(ctx, first, last, l)
	if !errors.Is(err, errMuch) {
		if err == nil {
			give(batch{trials: trials})
		}
		return err
	}
	var n, middle int64
	var name string
	if err := s.one(ctx, "SELECT count(*), max(name) FROM trials NOT INDEXED WHERE id > ? AND id <= ?", []any{first, last}, &n, &name); err != nil {
		return err
	}
	if n < 2 {
		s.note(Damage{DamagedTrial, name, "it has " + errMuch.Error()})
		return nil
	}
	if err := s.one(ctx, "SELECT id FROM trials NOT INDEXED WHERE id > ? AND id <= ? ORDER BY id LIMIT 1 OFFSET ?", []any{first, last, n/2 - 1}, &middle); err != nil {
		return err
	}
	if err := s.loadParts(ctx, first, middle, l, give); err != nil {
		return err
	}
	return s.loadParts(ctx, middle, last, l, give)
}

// bounds returns ids of trials that separate batches: a batch has the trials after one id and
// up to the next. Ids rise with the order of execution, because one writer appends finished
// trials.
func (s *Store) bounds(ctx context.Context) ([]int64, error) {
	out := []int64{math.MinInt64}
	n, last := 0, int64(math.MinInt64)
	stored := int64(math.MinInt64) // the last trial that has a checksum; read first, since more may be added
	if s.version >= 2 {
		if err := s.one(ctx, "SELECT coalesce(max(id), ?) FROM checksums WHERE kind = ?", []any{stored, sumTrial}, &stored); err != nil {
			return nil, err
		}
	}
	err := s.each(ctx, "SELECT id FROM trials NOT INDEXED ORDER BY id", nil, func(r *sql.Rows) error {
		if n > 0 && n%batchSize == 0 {
			out = append(out, last)
		}
		n++
		return r.Scan(&last)
	})
	if last = max(last, stored); last > math.MinInt64 {
		out = append(out, last)
	}
	return out, err
}

// mark is what a batch has for a trial in addition to the trial.
type mark struct {
	id  int64
	crc uint32 // over its rows
	bad bool   // tare would not write such a row
}

// loaded is a batch: trials and, in the same order, their marks.
type loaded struct {
	trials []record.Trial
	list   []mark
}

// loadRows reads all rows of the trials after the id first and up to last.
func (s *Store) loadRows(ctx context.Context, c *sql.Conn, first, last int64, l *loader) (out loaded, err error) {
	index := make(map[int64]int)
	var buf []byte
	held := 0
	for table, p := range l.parts {
		at, i := int64(0), -1 // of the previous row: a trial's rows are consecutive
		err := s.scan(ctx, c, p.query, []any{first, last}, func(row []driver.Value) error {
			id, ok := row[0].(int64)
			if !ok {
				return fmt.Errorf("a row of table %d has no number for its trial: %s is damaged; restore the results from a copy or a bundle", table, dbName)
			}
			if table == 0 {
				index[id] = len(out.list)
				out.trials, out.list = append(out.trials, record.Trial{}), append(out.list, mark{id: id})
			}
			if i < 0 || id != at {
				at = id
				if i, ok = index[id]; !ok {
					i = -1
					return nil
				}
			}
			m := &out.list[i]
			m.crc, buf = rowSum(m.crc, buf, byte(table), row) //nolint:gosec // there are eight tables
			if held += len(buf); held > s.mostLoaded {
				return errMuch
			}
			p.scan(fields{row, &m.bad}, &out.trials[i])
			return nil
		})
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// loadBatch reads the trials after the id first and up to last, and leaves out those that
// do not verify.
func (s *Store) loadBatch(ctx context.Context, first, last int64, l *loader) ([]record.Trial, error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	got, err := s.loadRows(ctx, c, first, last, l)
	if err != nil {
		return nil, err
	}
	var want map[int64]uint32
	if s.version >= 2 {
		if want, err = s.sums(ctx, c, sumTrial, first, last); err != nil {
			return nil, err
		}
	}
	kept := got.trials[:0]
	for i, m := range got.list {
		crc, ok := want[m.id]
		delete(want, m.id)
		name := TrialName(&got.trials[i])
		switch {
		case m.bad:
			s.note(Damage{DamagedTrial, name, "its rows are not as tare writes them"})
		case s.version >= 2 && !ok:
			s.note(Damage{DamagedTrial, name, "it has no checksum"})
		case s.version >= 2 && crc != m.crc:
			s.note(Damage{DamagedTrial, name, "its rows are not those that were stored: their checksum differs"})
		default:
			kept = append(kept, got.trials[i])
		}
	}
	for id := range want {
		s.note(Damage{DamagedTrial, fmt.Sprintf("number %d", id), "it was stored, but its row is gone"})
	}
	return kept, nil
}

// each runs f on every row of a query, which ends after the store's patience. It closes the
// rows before it returns, so the single connection is free again.
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

// one scans the single row of a query, within the store's patience.
func (s *Store) one(ctx context.Context, query string, args []any, into ...any) error {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return late(ctx, limited, s.db.QueryRowContext(limited, query, args...).Scan(into...))
}

// errLate: a query took longer than any query takes on a database of tare.
var errLate = fmt.Errorf("a query did not end in time: %s is damaged, or was built to block its readers; do not use these results", dbName)

// late returns errLate if the query's deadline has ended it, else err.
func late(whole, limited context.Context, err error) error {
	if err != nil && whole.Err() == nil && limited.Err() != nil {
		return errLate
	}
	return broken(err)
}

// damagedError wraps SQLite's error for a file with a damaged structure.
type damagedError struct{ err error }

func (e *damagedError) Error() string {
	return fmt.Sprintf("%s is damaged and cannot be read: %v; restore the folder from a copy or a bundle, if you have one", dbName, e.err)
}

func (e *damagedError) Unwrap() error { return e.err }

// broken returns a damagedError if an error of SQLite comes from damage.
func broken(err error) error {
	var told *damagedError
	var e *sqlite.Error
	if errors.As(err, &told) || !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG:
		return &damagedError{err}
	}
	return err
}
