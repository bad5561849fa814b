package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds on a page, far above what tare writes (256 KiB, 65,536 values). The library
// trusts the sizes that a page declares and allocates room for them; a page of a few bytes
// can declare billions of values.
const (
	maxPage       = 8 << 20 // bytes, both in the file and decompressed
	maxPageValues = 1 << 20
)

var errPage = errors.New("the Parquet file is damaged")

func badPage(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errPage}, args...)...)
}

// chunk reads the pages of one column of one row group, one at a time.
type chunk struct {
	ctx        context.Context // of the whole reading
	in         *bufio.Reader
	headers    *thrift.Decoder
	zstd       *zstd.Decoder
	compressed bool
	left       int64 // values left in the row group

	raw, page []byte // reused
	dict      []int32
	hasDict   bool
	texts     *texts // of a text column
}

func newChunk(ctx context.Context, r io.ReaderAt, m *format.ColumnMetaData, rows int64, dec *zstd.Decoder, t *texts) (*chunk, error) {
	from := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		from = m.DictionaryPageOffset
	}
	if from < 0 || m.TotalCompressedSize < 0 {
		return nil, badPage("a column begins before the file")
	}
	if m.Codec != format.Zstd && m.Codec != format.Uncompressed {
		return nil, fmt.Errorf("the Parquet file is compressed with %v, but tare writes zstd", m.Codec)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(r, from, m.TotalCompressedSize), 32<<10)
	return &chunk{ctx: ctx, in: in, headers: thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in)), zstd: dec,
		compressed: m.Codec == format.Zstd, left: rows, texts: t}, nil
}

// next reads the next page of data: its encoded values, and their number.
func (c *chunk) next() (data []byte, values int, enc format.Encoding, err error) {
	for {
		if err := c.ctx.Err(); err != nil {
			return nil, 0, 0, err
		}
		h := new(format.PageHeader)
		if err := c.headers.Decode(h); err != nil {
			return nil, 0, 0, badPage("a page is missing: %w", err)
		}
		if h.CompressedPageSize < 0 || h.CompressedPageSize > maxPage || h.UncompressedPageSize < 0 || h.UncompressedPageSize > maxPage {
			return nil, 0, 0, badPage("a page says it has %d bytes, %d in the file; tare reads up to %d", h.UncompressedPageSize, h.CompressedPageSize, maxPage)
		}
		c.raw = slices.Grow(c.raw[:0], int(h.CompressedPageSize))[:h.CompressedPageSize]
		if _, err := io.ReadFull(c.in, c.raw); err != nil {
			return nil, 0, 0, badPage("a page ends early: %w", err)
		}
		n, compressed := int32(0), c.compressed
		switch {
		case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
			n = h.DictionaryPageHeader.V.NumValues
		case h.Type == format.DataPage && h.DataPageHeader.Valid:
			n, enc = h.DataPageHeader.V.NumValues, h.DataPageHeader.V.Encoding
		case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
			v := &h.DataPageHeaderV2.V
			n, enc = v.NumValues, v.Encoding
			if v.NumNulls != 0 || v.DefinitionLevelsByteLength != 0 || v.RepetitionLevelsByteLength != 0 {
				return nil, 0, 0, badPage("a page has empty values")
			}
			compressed = compressed && (!v.IsCompressed.Valid || v.IsCompressed.V)
		default:
			return nil, 0, 0, badPage("a page is of type %v", h.Type)
		}
		data := c.raw
		if compressed {
			if c.page, err = c.zstd.DecodeAll(c.raw, c.page[:0]); err != nil {
				return nil, 0, 0, badPage("decompress a page: %w", err)
			}
			data = c.page
		}
		if len(data) != int(h.UncompressedPageSize) {
			return nil, 0, 0, badPage("a page has %d bytes and says %d", len(data), h.UncompressedPageSize)
		}
		if n < 0 || n > maxPageValues {
			return nil, 0, 0, badPage("a page says it has %d values", n)
		}
		if h.Type == format.DictionaryPage {
			if err := c.dictionary(data, int(n)); err != nil {
				return nil, 0, 0, err
			}
			continue
		}
		if n == 0 {
			return nil, 0, 0, badPage("a page is empty")
		}
		if int64(n) > c.left {
			return nil, 0, 0, badPage("its columns have more values than rows")
		}
		c.left -= int64(n)
		return data, int(n), enc, nil
	}
}

// text takes one text from a page and returns its number. The length precedes the text.
func (c *chunk) text(data []byte) (number int32, rest []byte, err error) {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) { //nolint:gosec // a length is not negative
		return 0, nil, badPage("a text is cut")
	}
	n := 4 + int(binary.LittleEndian.Uint32(data))
	number, err = c.texts.of(string(data[4:n]))
	return number, data[n:], err
}

// dictionary gives each text of a dictionary its number.
func (c *chunk) dictionary(data []byte, n int) (err error) {
	if c.texts == nil || c.hasDict {
		return badPage("it has more than one dictionary")
	}
	c.hasDict = true
	for range n {
		var number int32
		if number, data, err = c.text(data); err != nil {
			return err
		}
		c.dict = append(c.dict, number)
	}
	return nil
}

// run is how often a text repeats in a row.
type run struct {
	text int32
	n    int
}

func add(runs []run, text int32, n int) []run {
	if k := len(runs) - 1; k >= 0 && runs[k].text == text {
		runs[k].n += n
		return runs
	}
	return append(runs, run{text, n})
}

// nextTexts returns the texts of the next page. They stay runs, as they are stored.
func (c *chunk) nextTexts(runs []run) ([]run, error) {
	data, left, enc, err := c.next()
	if err != nil {
		return nil, err
	}
	runs = runs[:0]
	switch enc {
	case format.Plain:
		for ; left > 0; left-- {
			var number int32
			if number, data, err = c.text(data); err != nil {
				return nil, err
			}
			runs = add(runs, number, 1)
		}
		return runs, nil
	case format.RLEDictionary:
		if len(data) == 0 || data[0] > 32 {
			return nil, badPage("a page of texts has no width")
		}
		return c.indexes(runs, data[1:], int(data[0]), left)
	}
	return nil, badPage("texts are encoded as %v", enc)
}

// indexes reads positions in the dictionary: runs of one position, and packed groups of
// eight (https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE).
func (c *chunk) indexes(runs []run, data []byte, width, left int) ([]run, error) {
	for left > 0 {
		u, k := binary.Uvarint(data)
		if k <= 0 || u>>1 == 0 || u>>1 > math.MaxInt32 {
			return nil, badPage("a run of texts is cut")
		}
		data = data[k:]
		bytes, n := (width+7)/8, int(u>>1)
		if u&1 == 1 {
			bytes, n = n*width, 8*n
		}
		if bytes > len(data) {
			return nil, badPage("a run of texts is cut")
		}
		n = min(n, left) // the last group is filled up
		step := n
		if u&1 == 1 {
			step = 1
		}
		for i := 0; i < n; i += step {
			at := uint64(0)
			for b := range width { // of one value, the lowest bit first
				bit := b
				if u&1 == 1 {
					bit += i * width
				}
				at |= uint64(data[bit/8]>>(bit%8)&1) << b
			}
			if at >= uint64(len(c.dict)) {
				return nil, badPage("a text is not in its dictionary")
			}
			runs = add(runs, c.dict[at], step)
		}
		data, left = data[bytes:], left-n
	}
	return runs, nil
}

// nextTimes returns the times of the next page.
func (c *chunk) nextTimes(out []int64) ([]int64, error) {
	data, n, enc, err := c.next()
	if err != nil {
		return nil, err
	}
	if enc == format.Plain {
		return words(out, data, n, func(u uint64) int64 { return int64(u) }) //nolint:gosec // its bits
	}
	if enc != format.DeltaBinaryPacked {
		return nil, badPage("times are encoded as %v", enc)
	}
	// The decoder allocates room for as many as the third number says.
	head, total := data, uint64(0)
	for range 3 {
		u, k := binary.Uvarint(head)
		if k <= 0 {
			return nil, badPage("a page of times is cut")
		}
		head, total = head[k:], u
	}
	if total != uint64(n) { //nolint:gosec // n is not negative
		return nil, badPage("a page of %d times says it has %d", n, total)
	}
	out, err = new(delta.BinaryPackedEncoding).DecodeInt64(out[:0], data)
	if err == nil && len(out) != n {
		err = badPage("a page of %d times has %d", n, len(out))
	}
	return out, err
}

// nextValues returns the values of the next page.
func (c *chunk) nextValues(out []float64) ([]float64, error) {
	data, n, enc, err := c.next()
	if err == nil && enc != format.Plain {
		err = badPage("values are encoded as %v", enc)
	}
	if err != nil {
		return nil, err
	}
	return words(out, data, n, math.Float64frombits)
}

// words reads values of eight bytes, as they are.
func words[T any](out []T, data []byte, n int, of func(uint64) T) ([]T, error) {
	if len(data) != 8*n {
		return nil, badPage("a page of %d values has %d bytes", n, len(data))
	}
	out = out[:0]
	for i := range n {
		out = append(out, of(binary.LittleEndian.Uint64(data[8*i:])))
	}
	return out, nil
}
