package document

import (
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tare/record"
)

func encode(t testing.TB, h *hdrhistogram.Histogram) []byte {
	t.Helper()
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDecodeLikeTheLibrary compares every bucket with the library's, for
// histograms of all precisions, and of values from one to the greatest.
func TestDecodeLikeTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var d decoder
	for _, lowest := range []int64{1, 2, 100, 1000, 1 << 20} {
		for digits := 1; digits <= 5; digits++ {
			highest := lowest * 4_000_000
			h := hdrhistogram.New(lowest, highest, digits)
			for range 300 {
				if err := h.RecordValues(r.Int64N(highest), 1+r.Int64N(1000)); err != nil {
					t.Fatal(err)
				}
			}
			for _, v := range []int64{0, 1, lowest, highest} {
				if err := h.RecordValue(v); err != nil {
					t.Fatal(err)
				}
			}
			geo, counts, err := d.decode(encode(t, h))
			if err != nil {
				t.Fatalf("lowest %d, %d digits: %v", lowest, digits, err)
			}
			type bucket struct{ to, n int64 }
			var got, want []bucket
			for _, c := range counts {
				got = append(got, bucket{geo.highest(c.index), int64(c.n)})
			}
			for _, b := range h.Distribution() {
				if b.Count > 0 {
					want = append(want, bucket{b.To, b.Count})
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(bucket{})); diff != "" {
				t.Errorf("lowest %d, %d digits (-library +ours):\n%s", lowest, digits, diff)
			}
		}
	}
}

// TestCurveIsOfTheMergedEvents compares a curve with a histogram that had every
// event recorded, at every quantile.
func TestCurveIsOfTheMergedEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	b := New(testStudy(t))
	all := hdrhistogram.New(1, 60e9, 3)
	for i := range 5 {
		h := hdrhistogram.New(1, 60e9, 3)
		for range 20_000 {
			v := int64(20_000 * (1 + r.ExpFloat64()) * float64(1+i))
			_, _ = h.RecordValue(v), all.RecordValue(v)
		}
		b.addHistogram(1, &record.Histogram{Name: "latency", Unit: record.Second, Scale: 1e-9, Encoded: encode(t, h)})
	}
	b.addHistogram(1, &record.Histogram{Name: "latency", Unit: record.Second, Scale: 1e-9, Encoded: []byte("garbage")})
	curves := b.distributions()
	if len(curves) != 1 || curves[0].Count != all.TotalCount() {
		t.Fatalf("%d curves, the first of %d events; want one of %d", len(curves), curves[0].Count, all.TotalCount())
	}
	c := curves[0]
	if len(c.Quantiles) < 55 || c.Quantiles[0] != 0 || c.Quantiles[len(c.Quantiles)-1] != 1 {
		t.Errorf("the quantiles are %v", c.Quantiles)
	}
	for i, q := range c.Quantiles {
		if want := round(float64(all.ValueAtPercentile(100*q))*1e-9, 4); c.Values[i] != want && q > 0 {
			t.Errorf("at %v: %v, want %v", q, c.Values[i], want)
		}
	}
}

// TestCountsBeyond32Bits: a bucket may have more events than one count holds.
func TestCountsBeyond32Bits(t *testing.T) {
	h := hdrhistogram.New(1, 1000, 3)
	_, _ = h.RecordValues(7, 3<<31), h.RecordValues(9, 1<<31)
	b := New(testStudy(t))
	for range 3 {
		b.addHistogram(0, &record.Histogram{Name: "x", Scale: 1, Encoded: encode(t, h)})
	}
	c := b.distributions()[0]
	if c.Count != 3*h.TotalCount() {
		t.Errorf("%d events, want %d", c.Count, 3*h.TotalCount())
	}
	for i, q := range c.Quantiles {
		if want := h.ValueAtPercentile(100 * q); q > 0 && c.Values[i] != float64(want) {
			t.Errorf("at %v: %v, want %v", q, c.Values[i], want)
		}
	}
}

func FuzzHistogram(f *testing.F) {
	h := hdrhistogram.New(1, 60e9, 3)
	for i := range int64(1000) {
		_ = h.RecordValue(i * i * 100)
	}
	f.Add(encode(f, h))
	f.Add(encode(f, hdrhistogram.New(1, 10, 1)))
	f.Add([]byte("HISTFAAAACB4nJNpmSzMwMDAxQABzFCaEUoz2X+AsQA/LAKZ"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d decoder
		geo, counts, err := d.decode(b)
		if err != nil {
			return
		}
		last, buckets := int64(-1), int32(0)
		for _, c := range counts {
			v := geo.highest(c.index)
			if v > last {
				buckets++
			}
			if v < last || c.n == 0 {
				t.Fatalf("bucket %d up to %d, after %d, has %d events", c.index, v, last, c.n)
			}
			last = v
		}
		if len(b) > 4096 {
			return // the library makes room for every bucket
		}
		want, err := hdrhistogram.DecodePacked(b)
		if err != nil {
			return // it is stricter with headers
		}
		if want.Populated() != buckets {
			t.Fatalf("%d buckets, the library reads %d", buckets, want.Populated())
		}
	})
}
