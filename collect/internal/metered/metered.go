// Package metered is what the probes of all collectors have in common: a reading is
// refused after Close, and the CPU that it takes is a series of its own.
//
// The data path: 1. a probe holds a Reader made with its collector's name; 2. its Read
// hands the Reader the function that takes the figures; 3. the Reader meters that
// function and appends, as the last sample, what all the readings before took.
package metered

import (
	"fmt"
	"os"

	"tare/internal/held"
	"tare/record"
)

// Reader meters the readings of one probe.
type Reader struct {
	name   string
	labels record.Labels
	meter  held.Meter
	closed bool
}

// New makes the reader of the collector of that name.
func New(collector string) Reader {
	return Reader{name: collector, labels: record.MakeLabels("collector", collector)}
}

// Series describes the sample that Read adds.
func Series() record.Response {
	return record.Response{Name: record.CollectorCPU, Unit: record.Second, Better: record.Lower, Help: "CPU that reading took, up to the reading before"}
}

// Read has take append the figures to dst, then appends the reader's own cost. The
// reading under way is not in that: it ends after its samples are given. Errors are
// take's, or wrap os.ErrClosed.
func (r *Reader) Read(dst []record.Sample, take func([]record.Sample) ([]record.Sample, error)) ([]record.Sample, error) {
	if r.closed {
		return dst, fmt.Errorf("%s collector: Read after Close: %w", r.name, os.ErrClosed)
	}
	r.meter.Start()
	defer r.meter.Stop()
	dst, err := take(dst)
	if err != nil {
		return dst, err
	}
	return append(dst, record.Sample{Name: record.CollectorCPU, Labels: r.labels, Unit: record.Second, Kind: record.Counter, Value: r.Seconds()}), nil
}

// Seconds is the CPU time of all readings that have ended.
func (r *Reader) Seconds() float64 { return r.meter.Seconds() }

// Close has every later Read refused. It is false when that was so already.
func (r *Reader) Close() bool {
	first := !r.closed
	r.closed = true
	return first
}
