package store

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"tare/record"
)

// readRows reads a file by columns, one row group after the other. The names of a
// row are small numbers then, which differ from those of the row before only
// where a series begins: rows of texts, which the library would make, take ten
// times as long, and a trial may have a quarter of a million.
func readRows(f *parquet.File) ([]record.Series, error) {
	var x seriesReader
	for _, g := range f.RowGroups() {
		if err := x.group(g); err != nil {
			return nil, err
		}
	}
	return x.out, nil
}

// Places of the columns of row.
const (
	columnT = iota
	columnName
	columnLabels
	columnUnit
	columnKind
	columnValue
	columns
)

// texts gives each text of a column a number.
type texts struct {
	number map[string]int32
	list   []string
}

func (t *texts) of(s string) int32 {
	n, ok := t.number[s]
	if !ok {
		if t.number == nil {
			t.number = make(map[string]int32)
		}
		n = int32(len(t.list)) //nolint:gosec // at most one a row, and rows are bounded
		t.number[s] = n
		t.list = append(t.list, s)
	}
	return n
}

// identity is what tells series apart: numbers of name, labels, unit and kind.
type identity [4]int32

type seriesReader struct {
	texts [columns]texts
	index map[identity]int
	out   []record.Series
}

// group reads one row group.
func (x *seriesReader) group(g parquet.RowGroup) error {
	chunks := g.ColumnChunks()
	if len(chunks) != columns {
		return errors.New("the Parquet file is damaged: it has other columns than it says")
	}
	var t []int64
	var v []float64
	var names [4][]int32
	err := eachPage(chunks[columnT], func(p parquet.Page) error {
		data := p.Data()
		t = append(t, data.Int64()...)
		return nil
	})
	if err == nil {
		err = eachPage(chunks[columnValue], func(p parquet.Page) error {
			data := p.Data()
			v = append(v, data.Double()...)
			return nil
		})
	}
	for i := range names {
		if err == nil {
			names[i], err = x.texts[columnName+i].column(chunks[columnName+i])
		}
	}
	if err != nil {
		return err
	}
	for i := range names {
		if len(names[i]) != len(t) || len(v) != len(t) {
			return errors.New("the Parquet file is damaged: its columns have different lengths")
		}
	}
	for from := 0; from < len(t); {
		id := identity{names[0][from], names[1][from], names[2][from], names[3][from]}
		to := from + 1
		for to < len(t) && names[1][to] == id[1] && names[0][to] == id[0] && names[2][to] == id[2] && names[3][to] == id[3] {
			to++
		}
		s := x.series(id)
		if s.T == nil { // most series are in one piece
			s.T = make([]time.Duration, 0, to-from)
		}
		for _, at := range t[from:to] {
			s.T = append(s.T, time.Duration(at))
		}
		s.V = append(s.V, v[from:to]...)
		from = to
	}
	return nil
}

// series is the one of an identity; valid until the next call.
func (x *seriesReader) series(id identity) *record.Series {
	at, ok := x.index[id]
	if !ok {
		if x.index == nil {
			x.index = make(map[identity]int)
		}
		at = len(x.out)
		x.index[id] = at
		text := func(i int) string { return x.texts[columnName+i].list[id[i]] }
		x.out = append(x.out, record.Series{Name: text(0), Labels: record.Labels(text(1)), Unit: record.Unit(text(2)), Kind: record.Kind(text(3))})
	}
	return &x.out[at]
}

// column reads a column of texts. Where the file has a dictionary, each of its
// texts is looked at once.
func (t *texts) column(c parquet.ColumnChunk) (out []int32, err error) {
	var dict parquet.Dictionary
	var numbers []int32 // of the dictionary's texts
	err = eachPage(c, func(p parquet.Page) error {
		data := p.Data()
		if d := p.Dictionary(); d != nil {
			if d != dict {
				dict, numbers = d, make([]int32, d.Len())
				for i := range numbers {
					numbers[i] = t.of(d.Index(int32(i)).String())
				}
			}
			for _, i := range data.Int32() {
				if i < 0 || int(i) >= len(numbers) {
					return errors.New("the Parquet file is damaged: a text is not in its dictionary")
				}
				out = append(out, numbers[i])
			}
			return nil
		}
		if data.Kind() != encoding.ByteArray {
			return errors.New("the Parquet file is damaged: a text is none")
		}
		bytes, offsets := data.ByteArray()
		for i := 1; i < len(offsets); i++ {
			out = append(out, t.of(string(bytes[offsets[i-1]:offsets[i]])))
		}
		return nil
	})
	return out, err
}

// eachPage hands over the pages of a column, each until take returns.
func eachPage(c parquet.ColumnChunk, take func(parquet.Page) error) (err error) {
	pages := c.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	for rows := int64(0); ; {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("the Parquet file is damaged: %w", err)
		}
		n := p.NumRows()
		err = take(p)
		parquet.Release(p)
		if rows += n; err == nil && (n == 0 || rows > maxSeriesRows) {
			err = errors.New("the Parquet file is damaged: it does not end")
		}
		if err != nil {
			return err
		}
	}
}
