// Package disk is the collector of the host's disks: how long each had a request, how long
// its requests waited and were served, and how many bytes were read and written.
//
// The data path: 1. Open lists the disks, /sys/block/NAME with a device behind it,
// and holds /proc/diskstats; 2. each Read takes that file by one pread and parses the
// lines of those disks without allocating; 3. counters that the kernel writes in 32 bits
// continue after an overflow.
//
// Source: Documentation/admin-guide/iostats.rst. A line, with its fields from the
// fourth on as the document numbers them (times in milliseconds, sectors of 512 bytes):
//
//	254       0 vda 601766 133297 54210298 425181 70356 160522 32860216 233355 0 86644 665166 37486 46 15589488 5879 8085 749
//
// Partitions, loop devices and device mapper's volumes are left out: the disk below them
// does their work, which would count twice.
package disk

import (
	"context"
	"fmt"
	"os"
	"slices"

	"tare/collect"
	"tare/collect/internal/metered"
	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

// Collector is the collector; it keeps no state.
type Collector struct{ proc, sys string }

// New makes the collector for this host.
func New() *Collector { return NewAt("/proc", "/sys") }

// NewAt makes a collector that reads other trees than /proc and /sys.
func NewAt(proc, sys string) *Collector { return &Collector{proc, sys} }

var _ collect.Collector = (*Collector)(nil)

// Name is the word in a study file.
func (*Collector) Name() string { return "disk" }

// About is one sentence for `tare list`.
func (*Collector) About() string {
	return "the host's disks: time with a request, time of requests in the queue, requests, flushes, bytes read and written (Documentation/admin-guide/iostats.rst)"
}

// Series describes what Read returns.
func (*Collector) Series() []record.Response {
	return []record.Response{
		{Name: record.DeviceBusy, Unit: record.Second, Better: record.Neither, Help: "time in which a disk had at least one request (io_ticks), by device"},
		{Name: record.DeviceQueue, Unit: record.Second, Better: record.Lower, Help: "time that its requests waited and were served, summed over requests, by device"},
		{Name: record.DeviceRead, Unit: record.Byte, Better: record.Neither, Help: "bytes read, by device"},
		{Name: record.DeviceWrote, Unit: record.Byte, Better: record.Neither, Help: "bytes written, by device"},
		{Name: record.DeviceRequests, Unit: record.Count, Better: record.Neither, Help: "reads and writes completed, by device; device_queue divided by it is the time of a request"},
		{Name: record.DeviceFlushes, Unit: record.Count, Better: record.Neither, Help: "flushes of its cache completed, by device (Linux 5.5)"},
		{Name: record.DeviceFlushTime, Unit: record.Second, Better: record.Neither, Help: "time that these took, by device"},
		metered.Series(),
	}
}

// Check says why the source is missing on this host.
func (c *Collector) Check() error {
	names, err := c.disks()
	if err != nil {
		return fmt.Errorf("disk collector: %w", err)
	}
	b, err := os.ReadFile(c.proc + "/diskstats")
	if err != nil {
		return fmt.Errorf("disk collector: %w; mount the proc file system", err)
	}
	for len(b) > 0 {
		var line []byte
		line, b = held.Line(b)
		if name, _, ok := parse(line); ok && slices.Contains(names, string(name)) {
			return nil
		}
	}
	return fmt.Errorf("disk collector: no disk of %s/block is in %s/diskstats; on a machine without disks, leave the collector out of the study", c.sys, c.proc)
}

// disks lists the block devices that are hardware, or a hypervisor's device.
func (c *Collector) disks() ([]string, error) {
	all, err := os.ReadDir(c.sys + "/block")
	if err != nil {
		return nil, fmt.Errorf("%w; mount the sys file system", err)
	}
	var out []string
	for _, e := range all {
		if _, err := os.Stat(c.sys + "/block/" + e.Name() + "/device"); err == nil {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// Open lists the disks and opens the file. It ignores the scopes, because all share the
// disks.
func (c *Collector) Open(context.Context, []sandbox.LocalScope) (collect.Probe, error) {
	names, err := c.disks()
	if err != nil {
		return nil, fmt.Errorf("disk collector: %w", err)
	}
	p := &probe{buf: make([]byte, 16384)}
	p.Reader = metered.New("disk", p.take)
	for _, n := range names {
		p.disks = append(p.disks, device{name: n, labels: record.MakeLabels(record.LabelDevice, n)})
	}
	if p.file, err = held.Open(c.proc+"/diskstats", held.DefaultBudget()); err != nil {
		return nil, fmt.Errorf("disk collector: %w", err)
	}
	return p, nil
}

type device struct {
	name   string
	labels record.Labels
	raw    figures // as last read
	sum    figures // continued after overflows
	seen   bool
}

type probe struct {
	metered.Reader
	file  *held.File
	disks []device
	buf   []byte
}

// take reads the file once. A disk that was removed keeps its last figures.
func (p *probe) take(dst []record.Sample) ([]record.Sample, error) {
	b, err := p.file.Read(&p.buf)
	if err != nil {
		return dst, fmt.Errorf("disk collector: %w", err)
	}
	for len(b) > 0 {
		var line []byte
		line, b = held.Line(b)
		name, f, ok := parse(line)
		if !ok {
			continue
		}
		for i := range p.disks {
			if string(name) == p.disks[i].name {
				p.disks[i].take(f)
			}
		}
	}
	for i := range p.disks {
		if p.disks[i].seen {
			dst = p.disks[i].samples(dst)
		}
	}
	return dst, nil
}

// Close releases the descriptor. It is idempotent.
func (p *probe) Close() error {
	p.Reader.Close()
	return p.file.Close()
}
