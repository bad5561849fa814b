package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tare/record"
)

// TestManyPages: series of all lengths over many pages, split and interleaved, come back
// unchanged; those that are not wanted are left out.
func TestManyPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var want []record.Series
	for i := range 300 {
		s := record.Series{Name: []string{"cpu_time", "thread_cpu_time", "memory"}[i%3], Labels: record.MakeLabels("tid", strconv.Itoa(i)), Unit: record.Second, Kind: record.Counter}
		for j := range 1 + rng.IntN(1200) {
			s.T, s.V = append(s.T, time.Duration(rng.Int64N(1e12)-1e11)), append(s.V, float64(j)*rng.Float64())
		}
		want = append(want, s)
	}
	b, err := encodeSeries(&parquetzstd.Codec{}, append(want, want...)) // each comes again, and is one
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].T, want[i].V = append(want[i].T, want[i].T...), append(want[i].V, want[i].V...)
	}
	got, err := decodeSeries(context.Background(), bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("series (-want +got):\n%.2000s", d)
	}
	some, err := decodeSeries(context.Background(), bytes.NewReader(b), int64(len(b)), func(name string, l record.Labels) bool { return name == "memory" && l.Get("tid") == "5" })
	if err != nil || len(some) != 1 {
		t.Fatalf("%d series, %v", len(some), err)
	}
	if d := cmp.Diff(want[5], some[0]); d != "" {
		t.Errorf("the series that is wanted (-want +got):\n%.2000s", d)
	}
	// Rows that alternate between series are stored as packed groups, not as runs.
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[row](&buf, parquet.Compression(&parquetzstd.Codec{}))
	for i := range 5000 {
		if _, err := w.Write([]row{{int64(i), "s" + strconv.Itoa(rng.IntN(5)), "", "1", "gauge", float64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mixed, err := decodeSeries(context.Background(), bytes.NewReader(buf.Bytes()), int64(buf.Len()), nil)
	n := 0
	for _, s := range mixed {
		for i := range s.T {
			if float64(s.T[i]) != s.V[i] {
				t.Fatalf("%s: %v at %d", s.Name, s.V[i], s.T[i])
			}
			n++
		}
	}
	if err != nil || len(mixed) != 5 || n != 5000 {
		t.Errorf("%d readings of %d series, %v", n, len(mixed), err)
	}
}

// hostileSeries is a small file with very many identical rows.
func hostileSeries(t testing.TB, rows int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[row](&buf, parquet.Compression(&parquetzstd.Codec{}), parquet.PageBufferSize(4<<20))
	batch := make([]row, 1<<16)
	for i := range batch {
		batch[i] = row{Name: "cpu_time", Unit: "s", Kind: "counter"}
	}
	for left := rows; left > 0; left -= len(batch) {
		if _, err := w.Write(batch[:min(left, len(batch))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestSmallFileOfManyRows: the memory that a file takes is bounded, whatever its size. One of
// 17 kB took 5.4 GB.
func TestSmallFileOfManyRows(t *testing.T) {
	b := hostileSeries(t, maxKept+1<<19)
	if len(b) > 100<<10 {
		t.Fatalf("the file has %d bytes: the test shows nothing", len(b))
	}
	allocated := func(want Want, wanted error) uint64 {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeSeries(context.Background(), bytes.NewReader(b), int64(len(b)), want)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, wanted) {
			t.Errorf("got %v, want %v", err, wanted)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	// The readings that are kept take 128 MB. Growing the room for them as they come
	// allocates five times as much in total.
	if n := allocated(nil, errTooMany); n > 1<<30 {
		t.Errorf("%d bytes were allocated before the file was refused", n)
	}
	if n := allocated(func(string, record.Labels) bool { return false }, nil); n > 64<<20 {
		t.Errorf("%d bytes were allocated for series that nobody wants", n)
	}
}

// TestPagesThatLie: a page cannot make a reader believe that it has more than it has.
func TestPagesThatLie(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPage))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	uvarint := func(all ...uint64) (b []byte) {
		for _, u := range all {
			b = binary.AppendUvarint(b, u)
		}
		return b
	}
	for name, c := range map[string]struct {
		data   []byte
		values int32
		enc    format.Encoding
		says   int32 // bytes; 0: the truth
		want   string
	}{
		"values":       {make([]byte, 8), 1 << 30, format.Plain, 0, "says it has 1073741824 values"},
		"rows":         {make([]byte, 8*200), 200, format.Plain, 0, "more values than rows"},
		"bytes":        {make([]byte, 8), 1, format.Plain, 1 << 30, "tare reads up to"},
		"fewer bytes":  {make([]byte, 80), 1, format.Plain, 8, "has 80 bytes and says 8"},
		"a bomb":       {make([]byte, 4*maxPage), 1, format.Plain, 8, "decompress"},
		"plain":        {make([]byte, 8), 2, format.Plain, 0, "2 values has 8 bytes"},
		"times":        {append(uvarint(128, 4, 1<<31-1, 0), make([]byte, 64)...), 2, format.DeltaBinaryPacked, 0, "says it has 2147483647"},
		"no encoding":  {make([]byte, 8), 1, format.ByteStreamSplit, 0, "encoded as"},
		"nothing":      {nil, 0, format.Plain, 0, "a page is empty"},
		"a cut header": {uvarint(128), 2, format.DeltaBinaryPacked, 0, "cut"},
	} {
		t.Run(name, func(t *testing.T) {
			packed := enc.EncodeAll(c.data, nil)
			if c.says == 0 {
				c.says = int32(len(c.data))
			}
			header, err := thrift.Marshal(new(thrift.CompactProtocol), &format.PageHeader{Type: format.DataPage, UncompressedPageSize: c.says, CompressedPageSize: int32(len(packed)),
				DataPageHeader: thrift.Null[format.DataPageHeader]{Valid: true, V: format.DataPageHeader{NumValues: c.values, Encoding: c.enc}}})
			if err != nil {
				t.Fatal(err)
			}
			page := append(header, packed...)
			x, err := newChunk(context.Background(), bytes.NewReader(page), &format.ColumnMetaData{Codec: format.Zstd, TotalCompressedSize: int64(len(page))}, 100, dec, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := x.nextTimes(nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	x := &chunk{dict: []int32{3, 4}}
	runs, err := x.indexes(nil, append(uvarint((1<<31-1)<<1), 1), 1, 50) // one run of two thousand millions
	if err != nil || len(runs) != 1 || runs[0] != (run{4, 50}) {
		t.Errorf("a long run: %v, %v", runs, err)
	}
	for _, bad := range [][]byte{{}, uvarint(0), uvarint(2), append(uvarint(2), 9), uvarint(1 << 40), append(uvarint(3), 1)} {
		if runs, err := x.indexes(nil, bad, 8, 50); err == nil {
			t.Errorf("%v was read as %v", bad, runs)
		}
	}
}

// ending is a context that ends when it has been asked so many times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestSeriesEndWithTheContext: a small file of many rows takes long, so reading looks at the
// context for each page and each row group.
func TestSeriesEndWithTheContext(t *testing.T) {
	var groups bytes.Buffer
	w := parquet.NewGenericWriter[row](&groups)
	for range 100 {
		_, err := w.Write([]row{{Name: "cpu_time", Unit: "s", Kind: "counter"}})
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"pages": hostileSeries(t, 2<<20), "groups": groups.Bytes()} {
		if _, err := decodeSeries(t.Context(), bytes.NewReader(b), int64(len(b)), nil); err != nil {
			t.Fatal(err)
		}
		for _, after := range []int{0, 1, 8} {
			if _, err := decodeSeries(&ending{t.Context(), after}, bytes.NewReader(b), int64(len(b)), nil); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: it ended after %d questions with %v", name, after, err)
			}
		}
	}
}

// TestLongFooter: the library would read a long footer at once. Files of 43 MB with 32,000 row
// groups took a second each.
func TestLongFooter(t *testing.T) {
	b := hostileSeries(t, 1000)
	b = append(make([]byte, 2*maxFooter), b[len(b)-8:]...)
	binary.LittleEndian.PutUint32(b[len(b)-8:], maxFooter+1)
	if _, err := decodeSeries(t.Context(), bytes.NewReader(b), int64(len(b)), nil); err == nil || !strings.Contains(err.Error(), "its footer has 4194305 bytes; tare reads up to") {
		t.Error(err)
	}
	if _, err := decodeSeries(t.Context(), bytes.NewReader(b[:4]), 4, nil); err == nil {
		t.Error("4 bytes are a file")
	}
}
