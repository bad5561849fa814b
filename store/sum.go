package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// Kinds of checksums.
const (
	sumMeta    = "meta"
	sumSession = "session"
	sumSkips   = "skips"
	sumTrial   = "trial"
)

// rowSum continues a checksum with one row of a table: the type and the value of each
// column. buf is reused.
//
// The checksum is CRC-32C. It finds every burst of up to 32 wrong bits, and misses one in
// four billion cases of other damage. The processor computes it at 10 GB/s, so its cost is
// negligible beside reading the rows. A cryptographic hash would promise no more here:
// anybody who changes rows on purpose can change the checksum too.
func rowSum(crc uint32, buf []byte, table byte, row []driver.Value) (uint32, []byte) {
	b := append(buf[:0], table, byte(len(row))) //nolint:gosec // a table has few columns
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.LittleEndian.AppendUint64(append(b, 'i'), uint64(v)) //nolint:gosec // its bits
		case float64:
			b = binary.LittleEndian.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case string:
			b = append(binary.LittleEndian.AppendUint64(append(b, 's'), uint64(len(v))), v...)
		case []byte:
			b = append(binary.LittleEndian.AppendUint64(append(b, 'b'), uint64(len(v))), v...)
		default:
			b = append(b, '?') // SQLite has no other type
		}
	}
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), b), b
}

// scan runs f on every row of a query, which ends after the store's patience. The rows come
// from the driver without conversion: database/sql would double the time, and a large study
// has millions of rows. f must not keep the slice, which is reused.
func (s *Store) scan(ctx context.Context, c *sql.Conn, query string, args []any, f func([]driver.Value) error) error {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return late(ctx, limited, c.Raw(func(conn any) error {
		q, ok := conn.(driver.QueryerContext)
		if !ok {
			return errors.New("the SQLite driver does not support queries; report this as an error of tare")
		}
		rows, err := q.QueryContext(limited, query, named)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		row := make([]driver.Value, len(rows.Columns()))
		for n := 0; ; n++ {
			if n%256 == 0 && limited.Err() != nil {
				return limited.Err()
			}
			if err := rows.Next(row); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := f(row); err != nil {
				return err
			}
		}
	}))
}

// sumOf returns the checksum of a part that is not a trial.
func (s *Store) sumOf(ctx context.Context, c *sql.Conn, kind string, id int64) (uint32, error) {
	var crc uint32
	var buf []byte
	queries := map[string][]string{
		sumMeta:  {"SELECT key, value FROM meta WHERE ?1 = 0 ORDER BY key"},
		sumSkips: {"SELECT ord, cell, reason FROM skips WHERE ?1 = 0 ORDER BY ord"},
		sumSession: {"SELECT * FROM sessions WHERE id = ?1", "SELECT * FROM host WHERE session = ?1",
			"SELECT * FROM host_details WHERE session = ?1 ORDER BY kind, name", "SELECT * FROM host_warnings WHERE session = ?1 ORDER BY ord"},
	}[kind]
	if kind == sumSession && s.version >= 3 {
		queries = append(queries, "SELECT * FROM nodes WHERE session = ?1 ORDER BY ord")
	}
	for i, query := range queries {
		if err := s.scan(ctx, c, query, []any{id}, func(row []driver.Value) error {
			crc, buf = rowSum(crc, buf, byte(i), row) //nolint:gosec // there are five queries
			return nil
		}); err != nil {
			return 0, err
		}
	}
	return crc, nil
}

// seal writes the checksum of a part that is not a trial, in the transaction that changed it.
func (s *Store) seal(ctx context.Context, c *sql.Conn, kind string, id int64) error {
	crc, err := s.sumOf(ctx, c, kind, id)
	if err == nil {
		_, err = c.ExecContext(ctx, "INSERT OR REPLACE INTO checksums VALUES (?, ?, ?)", kind, id, int64(crc))
	}
	return err
}

// sealTrials writes the checksums of the trials after the id first and up to last, from the
// rows as they are read back.
func (s *Store) sealTrials(ctx context.Context, c *sql.Conn, first, last int64) error {
	l := s.newLoader(Pick{All: true})
	marks, err := s.loadRows(ctx, c, first, last, l)
	if err != nil {
		return err
	}
	w := inserter{ctx: ctx, c: c}
	w.into("checksums", "?,?,?")
	for i := range marks.list {
		if marks.list[i].bad {
			return fmt.Errorf("the rows of trial %s are not as tare writes them; restore the folder from a copy or a bundle, if you have one", TrialName(&marks.trials[i]))
		}
		w.row(sumTrial, marks.list[i].id, int64(marks.list[i].crc))
	}
	return w.close()
}

// sums returns the checksums of one kind by id, after the id first and up to last.
func (s *Store) sums(ctx context.Context, c *sql.Conn, kind string, first, last int64) (map[int64]uint32, error) {
	out := make(map[int64]uint32)
	err := s.scan(ctx, c, "SELECT id, crc32c FROM checksums WHERE kind = ? AND id > ? AND id <= ?", []any{kind, first, last}, func(row []driver.Value) error {
		id, ok1 := row[0].(int64)
		crc, ok2 := row[1].(int64)
		if ok1 && ok2 && crc >= 0 && crc <= math.MaxUint32 {
			out[id] = uint32(crc)
		}
		return nil
	})
	return out, err
}

// whole reports whether the single part of a kind matches its checksum. It is always true if
// the schema has no checksums.
func (s *Store) whole(kind string) (ok bool, err error) {
	if s.version < 2 {
		return true, nil
	}
	err = s.reading(context.Background(), func(ctx context.Context, c *sql.Conn) error {
		all, err := s.sums(ctx, c, kind, -1, 0)
		if err != nil {
			return err
		}
		crc, err := s.sumOf(ctx, c, kind, 0)
		want, has := all[0]
		ok = has && crc == want
		return err
	})
	return ok, err
}

// reading runs f in one read transaction, so that it never sees half of a writer's change.
// The transaction ends after the store's patience.
func (s *Store) reading(ctx context.Context, f func(context.Context, *sql.Conn) error) (err error) {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	c, err := s.db.Conn(limited)
	if err != nil {
		return late(ctx, limited, err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.ExecContext(limited, "BEGIN DEFERRED"); err != nil {
		return late(ctx, limited, err)
	}
	defer func() {
		if _, rerr := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err == nil && rerr != nil {
			err = fmt.Errorf("end reading: %w", rerr)
		}
	}()
	return late(ctx, limited, f(limited, c))
}
