package store

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"tare/record"
)

// Indexes of the columns of row.
const (
	columnT = iota
	columnName
	columnLabels
	columnUnit
	columnKind
	columnValue
	columns
)

// Bounds on what is kept from a file. A trial of ten minutes with 1,200 series at 10 Hz
// stays below them.
const (
	maxKept  = 8e6     // readings, of 16 bytes
	perKept  = 16      // readings that a series counts in addition to its own
	maxTexts = 1 << 18 // different names, labels, units or kinds
	maxText  = 1 << 20 // bytes of one
)

// errTooMany: the file would take more memory than a reader gives to one file.
var errTooMany = fmt.Errorf("the file has more than %d readings, more than tare reads; read it with DuckDB or pandas", int64(maxKept))

// texts maps each text of a column to a number.
type texts struct {
	number map[string]int32
	list   []string
	bytes  int
}

func (t *texts) of(s string) (int32, error) {
	n, ok := t.number[s]
	if ok {
		return n, nil
	}
	if t.number == nil {
		t.number = make(map[string]int32)
	}
	if t.bytes += len(s); len(s) > maxText || len(t.list) >= maxTexts || t.bytes > 16*maxText {
		return 0, badPage("it has more names than tare writes")
	}
	n = int32(len(t.list)) //nolint:gosec // below maxTexts
	t.number[s] = n
	t.list = append(t.list, s)
	return n, nil
}

// identity identifies a series: the numbers of its name, labels, unit and kind.
type identity [4]int32

// Want chooses series by name and labels; nil chooses all.
type Want func(name string, labels record.Labels) bool

type seriesReader struct {
	ctx   context.Context
	want  Want
	texts [4]texts
	index map[identity]int // to out; -1: not wanted
	out   []record.Series
	kept  int64
	rows  int64 // of the groups so far: the number in the footer may be wrong
}

// readRows reads a file in pages. It holds one page of each column in memory, and the
// readings that are wanted. The names of a row stay runs of numbers, as they are stored. The
// library would make rows of texts, which takes ten times as long.
func (x *seriesReader) readRows(r io.ReaderAt, f *parquet.File) error {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxPage))
	if err != nil {
		return err
	}
	defer dec.Close()
	x.index = make(map[identity]int)
	groups := f.Metadata().RowGroups
	for i := range groups {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		if err := x.group(r, &groups[i], dec); err != nil {
			return err
		}
	}
	return nil
}

// lockstep is the position in a row group, in all columns.
type lockstep struct {
	chunks [columns]*chunk
	t, v   struct{ at int }
	times  []int64
	values []float64
	runs   [4][]run // the rest of the page of each text column
	pages  [4][]run // the page itself, for reuse
}

// fill reads the next page of each column whose last one is used up. It returns how many
// rows all columns have left in their pages.
func (l *lockstep) fill() (n int, err error) {
	if l.t.at == len(l.times) {
		l.t.at = 0
		if l.times, err = l.chunks[columnT].nextTimes(l.times); err != nil {
			return 0, err
		}
	}
	if l.v.at == len(l.values) {
		l.v.at = 0
		if l.values, err = l.chunks[columnValue].nextValues(l.values); err != nil {
			return 0, err
		}
	}
	n = min(len(l.times)-l.t.at, len(l.values)-l.v.at)
	for i := range l.runs {
		if len(l.runs[i]) == 0 {
			if l.pages[i], err = l.chunks[columnName+i].nextTexts(l.pages[i]); err != nil {
				return 0, err
			}
			l.runs[i] = l.pages[i]
		}
		n = min(n, l.runs[i][0].n)
	}
	return n, nil
}

// group reads one row group.
func (x *seriesReader) group(r io.ReaderAt, g *format.RowGroup, dec *zstd.Decoder) (err error) {
	if len(g.Columns) != columns || g.NumRows < 0 {
		return badPage("its columns differ from those it declares")
	}
	if x.rows += min(g.NumRows, maxSeriesRows+1); x.rows > maxSeriesRows {
		return fmt.Errorf("the file has more than the %d rows that are read", int64(maxSeriesRows))
	}
	var l lockstep
	for i := range l.chunks {
		var t *texts
		if i >= columnName && i <= columnKind {
			t = &x.texts[i-columnName]
		}
		if l.chunks[i], err = newChunk(x.ctx, r, &g.Columns[i].MetaData, g.NumRows, dec, t); err != nil {
			return err
		}
	}
	for left := g.NumRows; left > 0; {
		n, err := l.fill()
		if err != nil {
			return err
		}
		id := identity{l.runs[0][0].text, l.runs[1][0].text, l.runs[2][0].text, l.runs[3][0].text}
		if err := x.take(id, l.times[l.t.at:l.t.at+n], l.values[l.v.at:l.v.at+n]); err != nil {
			return err
		}
		l.t.at, l.v.at, left = l.t.at+n, l.v.at+n, left-int64(n)
		for i := range l.runs {
			if l.runs[i][0].n -= n; l.runs[i][0].n == 0 {
				l.runs[i] = l.runs[i][1:]
			}
		}
	}
	return nil
}

// take keeps readings of one series.
func (x *seriesReader) take(id identity, t []int64, v []float64) error {
	at, ok := x.index[id]
	if !ok {
		text := func(i int) string { return x.texts[i].list[id[i]] }
		at = -1
		if x.kept += perKept; x.want == nil || x.want(text(0), record.Labels(text(1))) {
			at = len(x.out)
			x.out = append(x.out, record.Series{Name: text(0), Labels: record.Labels(text(1)), Unit: record.Unit(text(2)), Kind: record.SampleType(text(3))})
		}
		x.index[id] = at
	}
	if at >= 0 {
		x.kept += int64(len(t))
	}
	if x.kept > maxKept {
		return errTooMany
	}
	if at < 0 {
		return nil
	}
	s := &x.out[at]
	s.T = slices.Grow(s.T, len(t))
	for _, at := range t {
		s.T = append(s.T, time.Duration(at))
	}
	s.V = append(s.V, v...)
	return nil
}
