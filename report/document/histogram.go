package document

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zlib"
)

// Bounds of a histogram that is read: those of three digits over a minute in
// nanoseconds have 26,000 buckets and take 2 KiB.
const (
	maxEncoded = 1 << 20
	maxPayload = 8 << 20
	maxIndex   = 1 << 24 // of buckets, and of counts
)

// geometry says which values a bucket of an HdrHistogram holds.
type geometry struct {
	unit int // log2 of the smallest value that is told apart
	half int // log2 of half the buckets to each doubling
}

// count is a bucket that is not empty. More events than fit are several counts of
// the same bucket: nearly all fit, and there are two million of them.
type count struct {
	index int32
	n     uint32
}

// decoder reads histograms in the V2 compressed encoding of HdrHistogram into
// their buckets that are not empty. The library's own decoder
// (hdrhistogram-go, DecodePacked, which the tests compare this one with) makes a
// new inflater for each, and that was a quarter of the time that a report of
// 30,000 trials took. The zero value is ready.
type decoder struct {
	binary  []byte
	payload bytes.Buffer
	inflate io.ReadCloser
	counts  []count
	spare   []count
}

var errHistogram = errors.New("this is not an HdrHistogram in the V2 compressed encoding")

// The encoding (https://github.com/HdrHistogram/HdrHistogram, EncodableHistogram
// and Histogram.encodeIntoByteBuffer): base64 of a cookie, a length and a zlib
// stream; in it a header of 40 bytes and then a ZigZag LEB128 number for each
// bucket, where -n stands for n empty ones.
const (
	cookieV2           = 0x1c849303
	cookieV2Compressed = 0x1c849304
	cookieMask         = 0xffffff0f // less the word size
	headerSize         = 40
)

// decode returns the geometry and the buckets, which are d's until the next call.
func (d *decoder) decode(encoded []byte) (geometry, []count, error) {
	var g geometry
	if len(encoded) > maxEncoded {
		return g, nil, fmt.Errorf("%w: it has %d bytes", errHistogram, len(encoded))
	}
	var err error
	if d.binary, err = base64.StdEncoding.AppendDecode(d.binary[:0], encoded); err != nil || len(d.binary) < 8 {
		return g, nil, fmt.Errorf("%w: it is not base64 of 8 bytes or more", errHistogram)
	}
	b := d.binary
	if n := binary.BigEndian.Uint32(b[4:]); binary.BigEndian.Uint32(b)&cookieMask != cookieV2Compressed || int64(n) > int64(len(b)-8) {
		return g, nil, fmt.Errorf("%w: the outer header is wrong", errHistogram)
	} else if err := d.unpack(b[8 : 8+n]); err != nil {
		return g, nil, fmt.Errorf("%w: %w", errHistogram, err)
	}
	p := d.payload.Bytes()
	if len(p) < headerSize || binary.BigEndian.Uint32(p)&cookieMask != cookieV2 || int64(binary.BigEndian.Uint32(p[4:])) != int64(len(p)-headerSize) {
		return g, nil, fmt.Errorf("%w: the inner header is wrong", errHistogram)
	}
	digits, lowest := binary.BigEndian.Uint32(p[12:]), int64(binary.BigEndian.Uint64(p[16:])) //nolint:gosec // a negative one is put right below
	if digits > 5 {
		return g, nil, fmt.Errorf("%w: it has %d digits", errHistogram, digits)
	}
	g.unit = bits.Len64(uint64(max(lowest, 1))) - 1
	g.half = max(bits.Len64(uint64(2*math.Pow10(int(digits)))-1), 1) - 1
	if g.unit+g.half > 61 {
		return g, nil, fmt.Errorf("%w: its buckets are beyond 64 bits", errHistogram)
	}
	counts, err := d.buckets(p[headerSize:], g)
	return g, counts, err
}

func (d *decoder) unpack(b []byte) (err error) {
	r := bytes.NewReader(b)
	if d.inflate == nil {
		d.inflate, err = zlib.NewReader(r)
	} else if again, ok := d.inflate.(zlib.Resetter); ok {
		err = again.Reset(r, nil)
	}
	if err != nil {
		return err
	}
	d.payload.Reset()
	n, err := d.payload.ReadFrom(io.LimitReader(d.inflate, maxPayload+1))
	if err == nil && n > maxPayload {
		err = fmt.Errorf("it unpacks to more than %d bytes", maxPayload)
	}
	return err
}

func (d *decoder) buckets(p []byte, g geometry) ([]count, error) {
	d.counts = d.counts[:0]
	last := int64(64-g.unit-g.half) << g.half // one more would be a value beyond 63 bits
	var at, total int64
	for len(p) > 0 {
		v, n := zigzag(p)
		if n == 0 {
			return nil, fmt.Errorf("%w: a number in it does not end", errHistogram)
		}
		p = p[n:]
		switch {
		case v < 0 && v > -maxIndex:
			at -= v
		case v < 0 || at >= min(last, maxIndex):
			return nil, fmt.Errorf("%w: it has too many buckets", errHistogram)
		default:
			if v > 0 {
				if total += v; total < 0 {
					return nil, fmt.Errorf("%w: it has too many events", errHistogram)
				}
				for ; v > math.MaxUint32; v -= math.MaxUint32 {
					if len(d.counts) > maxIndex {
						return nil, fmt.Errorf("%w: it has too many events", errHistogram)
					}
					d.counts = append(d.counts, count{int32(at), math.MaxUint32})
				}
				d.counts = append(d.counts, count{int32(at), uint32(v)}) //nolint:gosec // the loop made it fit
			}
			at++
		}
	}
	return d.counts, nil
}

// zigzag reads a number of at most nine bytes: seven bits in each of eight, all
// eight of the ninth. n is 0 when it does not end.
func zigzag(p []byte) (v int64, n int) {
	var u uint64
	for i := range 9 {
		if i == len(p) {
			return 0, 0
		}
		if c := p[i]; i == 8 {
			u, n = u|uint64(c)<<56, 9
		} else {
			u |= uint64(c&0x7f) << (7 * i)
			if c < 0x80 {
				n = i + 1
			}
		}
		if n > 0 {
			break
		}
	}
	return int64(u>>1) ^ -int64(u&1), n
}

// merge adds counts to those of a curve and returns them. Both are in order.
func (d *decoder) merge(into, counts []count) []count {
	out := d.spare[:0]
	i, j := 0, 0
	for i < len(into) || j < len(counts) {
		switch {
		case j == len(counts) || i < len(into) && into[i].index < counts[j].index:
			out = append(out, into[i])
			i++
		case i == len(into) || counts[j].index < into[i].index:
			out = append(out, counts[j])
			j++
		case into[i].n > math.MaxUint32-counts[j].n:
			out = append(out, into[i], counts[j])
			i, j = i+1, j+1
		default:
			out = append(out, count{into[i].index, into[i].n + counts[j].n})
			i, j = i+1, j+1
		}
	}
	d.spare = out
	if len(out) > cap(into) {
		into = make([]count, 0, len(out)+len(out)/8) // later trials bring few buckets more
	}
	return append(into[:0], out...)
}

// highest is the greatest value that is counted in a bucket.
func (g geometry) highest(index int32) int64 {
	bucket, sub := int(index>>g.half)-1, int64(index&(1<<g.half-1))+1<<g.half
	if bucket < 0 {
		bucket, sub = 0, sub-1<<g.half
	}
	shift := bucket + g.unit
	return sub<<shift + 1<<shift - 1
}
