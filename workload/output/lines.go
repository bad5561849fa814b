package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/record"
)

// maxLine bounds one of the lines that run writes, in bytes; the longest has
// about 200.
const maxLine = 4 << 10

// Lines reads lines of JSON, such as workload.LaunchLine, into Ts. what names one of them in
// errors ("a launch"). It skips empty lines. check refuses invalid Ts.
func Lines[T any](r io.Reader, what string, check func(T) error) ([]T, error) {
	b, err := Read(r)
	if err != nil {
		return nil, err
	}
	var out []T
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, maxLine)
	for n := 1; sc.Scan(); n++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var l T
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d is not the JSON of %s: %w", n, what, err)
		}
		if err := check(l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, l)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("reading the lines: %w", err)
	}
	return out, nil
}

// Encode returns a distribution in the form of a driver's report: HdrHistogram V2, compressed.
func Encode(h *hdrhistogram.Histogram) (string, error) {
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encoding the histogram: %w", err)
	}
	return string(text), nil
}

// Decode reads what Encode wrote: at least one time in nanoseconds, none of them above most.
func Decode(text string, most int64) (*hdrhistogram.Histogram, error) {
	h, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	// A count above that of the longest run at the highest rate is invalid, and would overflow sums.
	if n := h.TotalCount(); n <= 0 || n > math.MaxInt64>>20 || h.Max() > most {
		return nil, fmt.Errorf("%d values up to %d ns are out of range", n, h.Max())
	}
	return h, nil
}

// Histogram adds a distribution of times in nanoseconds.
func Histogram(rd *record.Reading, name string, h *hdrhistogram.Histogram, labels ...string) error {
	text, err := Encode(h)
	if err != nil {
		return err
	}
	rd.Histograms = append(rd.Histograms, record.Histogram{Name: name, Labels: record.MakeLabels(labels...), Unit: record.Second, Scale: 1e-9, Encoded: []byte(text)})
	return nil
}

// Seconds writes a time in seconds for people: "23.1 ms", "4.2 s".
func Seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

// Median returns the median of at least one value; of an even number, the mean of the middle
// two. It does not reorder the values.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// Slope returns the Theil-Sen slope of y over x (https://en.wikipedia.org/wiki/Theil-Sen_estimator): the median of the slopes of all pairs of points
// that differ in x, which a few disturbed points do not move. At least two points must differ.
func Slope(x, y []float64) float64 {
	var slopes []float64
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			if x[j] != x[i] {
				slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
			}
		}
	}
	return Median(slopes)
}

// Repeats adds a response with one or more values in a trial: a series of them, each at the time
// when it ended, and as samples their median, which is the response, the smallest (stat=min) and
// the largest (stat=max).
func Repeats(rd *record.Reading, name string, unit record.Unit, ends []time.Duration, values []float64) {
	rd.Series = append(rd.Series, record.Series{Name: name, Labels: record.MakeLabels(record.LabelResponse, name),
		Unit: unit, Kind: record.Gauge, T: ends, V: values})
	rd.Value(name, unit, Median(values))
	rd.Value(name, unit, slices.Min(values), "stat", "min")
	rd.Value(name, unit, slices.Max(values), "stat", "max")
}
