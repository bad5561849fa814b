// Package metered is what the probes of all collectors share: they refuse a reading after
// Close, and their own CPU time is a series.
//
// The data path: 1. a probe has a Reader made with its collector's name and the function that takes
// the figures; 2. the Reader's Read is the probe's: it meters that function and appends, as the
// last sample, the CPU time of all earlier readings.
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
	take   func([]record.Sample) ([]record.Sample, error)
	labels record.Labels
	meter  held.Meter
	closed bool
}

// New makes the reader of the collector of that name. take appends the figures.
func New(collector string, take func([]record.Sample) ([]record.Sample, error)) Reader {
	return Reader{name: collector, take: take, labels: record.MakeLabels("collector", collector)}
}

// Series describes the sample that Read adds.
func Series() record.Response {
	return record.Response{Name: record.CollectorCPU, Unit: record.Second, Better: record.Lower, Help: "CPU that reading took, up to the reading before"}
}

// Read appends the figures to dst, then the reader's own cost, without the present reading, which
// has not ended. Errors come from taking the figures, or wrap os.ErrClosed.
func (r *Reader) Read(dst []record.Sample) ([]record.Sample, error) {
	if r.closed {
		return dst, fmt.Errorf("%s collector: Read after Close: %w", r.name, os.ErrClosed)
	}
	r.meter.Start()
	defer r.meter.Stop()
	dst, err := r.take(dst)
	if err != nil {
		return dst, err
	}
	return append(dst, record.Sample{Name: record.CollectorCPU, Labels: r.labels, Unit: record.Second, Kind: record.Counter, Value: r.meter.Seconds()}), nil
}

// Close makes every later Read fail. It returns false if it was closed already.
func (r *Reader) Close() bool {
	first := !r.closed
	r.closed = true
	return first
}
