package pbench

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"tare/record"
)

// table is a CSV of a tool: timestamp_ms, then a column for each mode, processor, process or
// device. Each row covers the time since the last row.
type table struct {
	ms    []float64 // Unix time
	names []string
	v     [][]float64 // by row; NaN if it is not a number: the process had ended
}

// maxCells bounds what is kept of one CSV.
const maxCells = 8 << 20

func parseTable(text []byte) (*table, error) {
	c := csv.NewReader(bytes.NewReader(text))
	c.ReuseRecord = true
	header, err := c.Read()
	if err != nil || len(header) < 2 || header[0] != "timestamp_ms" {
		return nil, errors.New("the first column is not timestamp_ms")
	}
	out := &table{names: slices.Clone(header)[1:]}
	last := math.Inf(-1)
	for {
		rec, err := c.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		ms, err := strconv.ParseFloat(rec[0], 64)
		if inside := math.Abs(ms) < 4e12; err != nil || !inside || ms < last {
			return nil, fmt.Errorf("the time %.40q is not after the last one", rec[0])
		}
		last = ms
		if len(out.ms)*len(out.names) > maxCells {
			return nil, fmt.Errorf("there are more than %d figures", maxCells)
		}
		row := make([]float64, len(out.names))
		for i := range row {
			if row[i], err = strconv.ParseFloat(rec[i+1], 64); err != nil || math.IsInf(row[i], 0) || math.Abs(row[i]) > 1e15 {
				row[i] = math.NaN()
			}
		}
		out.ms, out.v = append(out.ms, ms), append(out.v, row)
	}
}

// begin returns the trial's start in milliseconds, or the first row's if that is unknown.
func (t *table) begin(start time.Time) float64 {
	if start.IsZero() && len(t.ms) > 0 {
		return t.ms[0]
	}
	return float64(start.UnixMilli())
}

// gauge returns one column, times scale, from the start on.
func (t *table) gauge(s record.Series, column int, scale float64, start time.Time) record.Series {
	from := t.begin(start)
	for i, ms := range t.ms {
		if v := t.v[i][column]; ms >= from && !math.IsNaN(v) {
			s.T, s.V = append(s.T, offset(ms, from)), append(s.V, v*scale)
		}
	}
	s.Kind = record.Gauge
	return s
}

// counter sums columns, times scale, over the time from the start on. Rows are rates since the
// last row, so the first row has no value.
func (t *table) counter(s record.Series, columns []int, scale float64, start time.Time) record.Series {
	from := t.begin(start)
	s.Kind = record.Counter
	sum, last := 0.0, math.NaN()
	for i, ms := range t.ms {
		before := last
		last = ms
		if ms < from || ms-from > 1e11 {
			continue
		}
		if len(s.T) == 0 {
			at := ms
			if !math.IsNaN(before) {
				at = from
			}
			s.T, s.V = append(s.T, offset(at, from)), append(s.V, 0)
		}
		dt := (ms - max(before, from)) / 1e3
		if !(dt > 0) {
			continue
		}
		for _, c := range columns {
			if v := t.v[i][c]; v > 0 { // and not NaN
				sum += v * scale * dt
			}
		}
		s.T, s.V = append(s.T, offset(ms, from)), append(s.V, sum)
	}
	return s
}

// top returns a column's highest value from the start on; 0 without values.
func (t *table) top(column int, start time.Time) float64 {
	out, from := 0.0, t.begin(start)
	for i, ms := range t.ms {
		if ms >= from && t.v[i][column] > out {
			out = t.v[i][column]
		}
	}
	return out
}
