package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"tare/record"
)

// Bounds on a series file: ten series a thread, a thousand threads and twenty minutes at
// 10 Hz stay below them. maxKept bounds what is kept from it.
const (
	maxSeriesFile = 1 << 30
	maxSeriesRows = 120e6
	maxFooter     = 4 << 20 // bytes that describe columns and row groups; tare writes some kB
)

// row is one point of one series: the long form, which DuckDB, pandas and
// Grafana group by name and labels without knowing us.
type row struct {
	T      int64   `parquet:"t_ns,delta"`
	Name   string  `parquet:"name,dict"`
	Labels string  `parquet:"labels,dict"`
	Unit   string  `parquet:"unit,dict"`
	Kind   string  `parquet:"kind,dict"`
	Value  float64 `parquet:"value"`
}

// encodeSeries returns a Parquet file. Series without points have no rows. Reuse the codec,
// which caches its encoders. Pages are no larger than the points need, because their buffers
// are made, and cleared, for each column.
func encodeSeries(codec *zstd.Codec, all []record.Series) ([]byte, error) {
	points := 0
	for i := range all {
		points += len(all[i].T)
	}
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[row](&buf, parquet.Compression(codec),
		parquet.CreatedBy("tare", "", ""), parquet.PageBufferSize(min(max(16*points, 4<<10), 256<<10)))
	batch := make([]row, 0, 1024)
	flush := func() error {
		_, err := w.Write(batch)
		batch = batch[:0]
		return err
	}
	for i := range all {
		s := &all[i]
		if len(s.T) != len(s.V) {
			return nil, fmt.Errorf("series %s %s has %d times and %d values", s.Name, s.Labels, len(s.T), len(s.V))
		}
		for j := range s.T {
			batch = append(batch, row{int64(s.T[j]), s.Name, string(s.Labels), string(s.Unit), string(s.Kind), s.V[j]})
			if len(batch) == cap(batch) {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// MaxReading is how many series files a process reads at the same time. A hostile one takes up
// to 300 MB until its readings are used.
const MaxReading = 2

// reading has an element for each file that is being read, whichever store reads it.
var reading = make(chan struct{}, MaxReading) //nolint:gochecknoglobals // the memory is the process's

// Series returns a trial's time series in the order in which they were stored. A trial without
// series is not an error.
func (s *Store) Series(t *record.Trial) (out []record.Series, err error) {
	err = s.SeriesOf(context.Background(), t, nil, func(all []record.Series) { out = all })
	return out, err
}

// SeriesOf gives use the wanted series; the others take no memory. It first waits until fewer than
// MaxReading files are being read; a file is being read until use returns. It checks ctx while
// it waits, and between pages and row groups.
func (s *Store) SeriesOf(ctx context.Context, t *record.Trial, want Want, use func([]record.Series)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case reading <- struct{}{}:
		defer func() { <-reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	out, err := s.series(ctx, t, want)
	if err == nil {
		use(out)
	}
	return err
}

func (s *Store) series(ctx context.Context, t *record.Trial, want Want) ([]record.Series, error) {
	f, size, err := s.evidence(t, "series", "", seriesDir+"/"+TrialName(t)+".parquet")
	if errors.Is(err, fs.ErrNotExist) {
		if _, derr := s.fileDigest(t, "series", ""); errors.Is(derr, errNoRow) {
			return nil, nil
		} else if derr != nil {
			err = derr
		}
	}
	var out []record.Series
	if err == nil {
		defer func() { _ = f.Close() }()
		out, err = decodeSeries(ctx, f, size, want)
	}
	if err != nil {
		return nil, fmt.Errorf("series of trial %s: %w", TrialName(t), err)
	}
	return out, nil
}

// decodeSeries reads a Parquet file that may be damaged or made by someone else. It turns
// panics of the library into errors.
func decodeSeries(ctx context.Context, r io.ReaderAt, size int64, want Want) (out []record.Series, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("the Parquet file is damaged: %v", p)
		}
	}()
	if size > maxSeriesFile {
		return nil, fmt.Errorf("the file has %d bytes, more than the %d that are read", size, maxSeriesFile)
	}
	if err := checkFooter(r, size); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("the Parquet file is damaged: %w", err)
	}
	if !parquet.SameNodes(f.Schema(), parquet.SchemaOf(row{})) {
		return nil, errors.New("the Parquet file does not have the columns of tare's series")
	}
	x := seriesReader{ctx: ctx, want: want}
	err = x.readRows(r, f)
	return x.out, err
}

// checkFooter bounds the footer, which the library reads at once and slowly: it lists each
// column of each row group. Its length precedes the last four bytes
// (https://parquet.apache.org/docs/file-format/).
func checkFooter(r io.ReaderAt, size int64) error {
	var b [4]byte
	if size < 8 {
		return badPage("it has %d bytes", size)
	}
	if _, err := r.ReadAt(b[:], size-8); err != nil {
		return badPage("its end cannot be read: %w", err)
	}
	if n := binary.LittleEndian.Uint32(b[:]); n > maxFooter {
		return badPage("it says that its footer has %d bytes; tare reads up to %d", n, maxFooter)
	}
	return nil
}
