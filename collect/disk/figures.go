package disk

import (
	"math"

	"tare/internal/held"
	"tare/record"
)

// figures are the fields of a line that are used. iostats.rst: times are unsigned ints,
// which overflow after 49.7 days; sectors are unsigned longs.
type figures struct {
	read, wrote, busy, queue uint64 // sectors; milliseconds
	requests                 uint64 // reads and writes
	flushes, flushTime       uint64 // milliseconds; 0 before Linux 5.5
}

// Indexes of the fields after the name.
const (
	fieldReads     = 0
	fieldRead      = 2
	fieldWrites    = 4
	fieldWrote     = 6
	fieldBusy      = 9
	fieldQueue     = 10
	fields         = 11 // that every kernel since 2.6 has
	fieldFlushes   = 15
	fieldFlushTime = 16
	allFields      = 17
)

// sector is 512 bytes in this file, whatever the disk's sector size is.
const sector = 512

// parse reads one line; ok is false if it is not a line of a disk.
func parse(line []byte) (name []byte, f figures, ok bool) {
	_, rest, ok := held.Uint(line) // major
	if ok {
		_, rest, ok = held.Uint(rest) // minor
	}
	if !ok {
		return nil, f, false
	}
	for len(rest) > 0 && rest[0] == ' ' {
		rest = rest[1:]
	}
	end := 0
	for end < len(rest) && rest[end] != ' ' {
		end++
	}
	if name, rest = rest[:end], rest[end:]; end == 0 {
		return nil, f, false
	}
	for i := range allFields {
		var n uint64
		if n, rest, ok = held.Uint(rest); !ok {
			return name, f, i >= fields
		}
		switch i {
		case fieldReads, fieldWrites:
			f.requests += n
		case fieldRead:
			f.read = n
		case fieldWrote:
			f.wrote = n
		case fieldBusy:
			f.busy = n
		case fieldQueue:
			f.queue = n
		case fieldFlushes:
			f.flushes = n
		case fieldFlushTime:
			f.flushTime = n
		}
	}
	return name, f, true
}

// take adds the rise since the last reading. The first reading counts as it is.
func (d *device) take(f figures) {
	d.sum.read += rise(d.raw.read, f.read)
	d.sum.wrote += rise(d.raw.wrote, f.wrote)
	d.sum.busy += rise(d.raw.busy, f.busy)
	d.sum.queue += rise(d.raw.queue, f.queue)
	d.sum.requests += rise(d.raw.requests, f.requests)
	d.sum.flushes += rise(d.raw.flushes, f.flushes)
	d.sum.flushTime += rise(d.raw.flushTime, f.flushTime)
	d.raw, d.seen = f, true
}

// rise returns how far a counter has risen. A counter that fell has overflowed 32 bits, or,
// if it was far from that, has started again from zero.
func rise(from, to uint64) uint64 {
	switch {
	case to >= from:
		return to - from
	case from <= math.MaxUint32 && from > math.MaxUint32/2:
		return math.MaxUint32 - from + 1 + to
	}
	return to
}

func (d *device) samples(dst []record.Sample) []record.Sample {
	add := func(name string, u record.Unit, v float64) {
		dst = append(dst, record.Sample{Name: name, Labels: d.labels, Unit: u, Kind: record.Counter, Value: v})
	}
	add(record.DeviceBusy, record.Second, float64(d.sum.busy)/1e3)
	add(record.DeviceQueue, record.Second, float64(d.sum.queue)/1e3)
	add(record.DeviceRead, record.Byte, float64(d.sum.read)*sector)
	add(record.DeviceWrote, record.Byte, float64(d.sum.wrote)*sector)
	add(record.DeviceRequests, record.Count, float64(d.sum.requests))
	add(record.DeviceFlushes, record.Count, float64(d.sum.flushes))
	add(record.DeviceFlushTime, record.Second, float64(d.sum.flushTime)/1e3)
	return dst
}
