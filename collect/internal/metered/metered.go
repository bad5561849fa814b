// Package metered is what the probes of all collectors share: they refuse a reading after
// Close, and their own CPU time is a series.
//
// The data path: 1. a probe holds a Reader made with its collector's name; 2. its Read
// passes the Reader the function that takes the figures; 3. the Reader meters that function
// and appends, as the last sample, the CPU time of all earlier readings.
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

// Read calls take to append the figures to dst, then appends the reader's own cost, without
// the present reading, which has not ended. Errors come from take, or wrap os.ErrClosed.
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

// Seconds returns the CPU time of all readings that have ended.
func (r *Reader) Seconds() float64 { return r.meter.Seconds() }

// Close makes every later Read fail. It returns false if it was closed already.
func (r *Reader) Close() bool {
	first := !r.closed
	r.closed = true
	return first
}
