// Package guest is the collector of figures of the kernel in a virtual machine: its
// processors, run queue, soft interrupts, memory, and the cost of the agent there.
//
// The data path: 1. Open picks the scopes with their own kernel (sandbox.LocalScope.Guest);
// 2. each Read takes the readings that have arrived since the last one, asks for the next,
// and does not wait for it; 3. every figure is a sample with the time of its reading by
// this host's clock (collect.Stamped); 4. counters that the kernel may decrease (idle and
// iowait, proc_stat(5)) keep their maximum.
//
// The agent reads proc_stat(5), proc_meminfo(5) and /proc/softirqs in the guest
// (Documentation/filesystems/proc.rst). A processor's line, in ticks of 10 ms:
//
//	cpu0 15587 0 4353 198676 393 0 99 119 0 0
//
// Time by the guest's clock is not time on a processor of the host. The collector proc has
// the CPU time of the vCPUs' threads.
package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"tare/collect"
	"tare/collect/internal/metered"
	"tare/record"
	"tare/sandbox"
)

// Collector is the collector; it keeps no state.
type Collector struct{}

// New makes the collector.
func New() *Collector { return &Collector{} }

var _ collect.Collector = (*Collector)(nil)

// Name is the word in a study file.
func (*Collector) Name() string { return "guest" }

// About is one sentence for `tare list`.
func (*Collector) About() string {
	return "inside virtual machines: processors by mode, run queue, soft interrupts, memory, the agent's cost (Documentation/filesystems/proc.rst)"
}

// Series describes what Read returns.
func (*Collector) Series() []record.Response {
	return []record.Response{
		{Name: record.GuestCPU, Unit: record.Second, Better: record.Neither, Help: "time of each of a guest's processors, by mode: user, system, idle, iowait, irq, softirq, steal"},
		{Name: record.GuestSoftIRQs, Unit: record.Count, Better: record.Neither, Help: "soft interrupts on each of a guest's processors, by mode: net_rx, net_tx, block"},
		{Name: record.GuestRunnable, Unit: record.Count, Better: record.Neither, Help: "threads on a run queue of the guest, or running"},
		{Name: record.GuestMemory, Unit: record.Byte, Better: record.Higher, Help: "memory available in the guest without swapping (MemAvailable)"},
		{Name: record.AgentCPU, Unit: record.Second, Better: record.Lower, Help: "CPU of the agent in the guest"},
		{Name: record.CollectorCPU, Unit: record.Second, Better: record.Lower, Help: "CPU that reading took on the host, up to the reading before"},
	}
}

// Check never fails: which sandboxes have their own kernel is known only when they run.
func (*Collector) Check() error { return nil }

// Open picks the guests. Without any the probe reads nothing.
func (*Collector) Open(_ context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	p := &probe{}
	p.Reader = metered.New("guest", p.take)
	for _, s := range scopes {
		if s.Guest == nil {
			continue
		}
		if slices.ContainsFunc(p.endpoints, func(e *endpoint) bool { return e.name == s.Endpoint }) {
			return nil, fmt.Errorf("guest collector: the end %s has two guests; the collector can read one for each end", s.Endpoint)
		}
		p.endpoints = append(p.endpoints, &endpoint{name: s.Endpoint, guest: s.Guest, own: labels(s.Endpoint), cpus: map[int]*processor{}})
	}
	return p, nil
}

// labels returns the labels of an endpoint, and pairs.
func labels(endpoint string, pairs ...string) record.Labels {
	if endpoint != "" {
		pairs = append(pairs, record.LabelEndpoint, endpoint)
	}
	if len(pairs) == 0 {
		return ""
	}
	return record.MakeLabels(pairs...)
}

// endpoint is one guest.
type endpoint struct {
	name  string
	guest sandbox.Guest
	own   record.Labels
	cpus  map[int]*processor
	spent counter

	failures int   // Reads that found a failed answer
	last     error // the last failure
}

// processor holds the labels and highest values of a guest's processor, which may
// come and go.
type processor struct {
	time [nModes]counter
	soft [nKinds]counter
}

// counter is a series that never falls.
type counter struct {
	labels record.Labels
	high   float64
}

func (c *counter) rise(v float64) float64 {
	c.high = max(c.high, v)
	return c.high
}

// Number of modes of time, and of kinds of soft interrupts, in a reading.
const (
	nModes = 7
	nKinds = 3
)

// maxProcessors bounds the processors of a guest that have series.
const maxProcessors = 1024

func (e *endpoint) cpu(number int) *processor {
	c := e.cpus[number]
	if c != nil || len(e.cpus) == maxProcessors {
		return c
	}
	c = &processor{}
	n := strconv.Itoa(number)
	for i, m := range [nModes]string{"user", "system", "idle", "iowait", "irq", "softirq", "steal"} {
		c.time[i].labels = labels(e.name, record.LabelCPU, n, record.LabelMode, m)
	}
	for i, k := range [nKinds]string{"net_rx", "net_tx", "block"} {
		c.soft[i].labels = labels(e.name, record.LabelCPU, n, record.LabelMode, k)
	}
	e.cpus[number] = c
	return c
}

type probe struct {
	metered.Reader
	endpoints []*endpoint
	times     []time.Time
}

var _ collect.Stamped = (*probe)(nil)

// Times implements collect.Stamped.
func (p *probe) Times() []time.Time { return p.times }

// take returns the readings that have arrived and asks for the next.
func (p *probe) take(dst []record.Sample) ([]record.Sample, error) {
	p.times = p.times[:0]
	for _, e := range p.endpoints {
		readings, err := e.guest.Take()
		if err != nil {
			e.failures, e.last = e.failures+1, err
		}
		for i := range readings {
			before := len(dst)
			dst = e.append(dst, &readings[i])
			p.stamp(readings[i].At, len(dst)-before)
		}
		e.guest.Ask()
	}
	p.stamp(time.Now(), 1) // for the reader's own sample
	return dst, nil
}

func (p *probe) stamp(at time.Time, n int) {
	for range n {
		p.times = append(p.times, at)
	}
}

// append adds the samples of one reading.
func (e *endpoint) append(dst []record.Sample, r *sandbox.GuestReading) []record.Sample {
	for i := range r.CPUs {
		c := &r.CPUs[i]
		of := e.cpu(c.Number)
		if of == nil {
			continue
		}
		for i, v := range [nModes]float64{c.User, c.System, c.Idle, c.IOWait, c.IRQ, c.SoftIRQ, c.Steal} {
			s := &of.time[i]
			dst = append(dst, record.Sample{Name: record.GuestCPU, Labels: s.labels, Unit: record.Second, Kind: record.Counter, Value: s.rise(v)})
		}
		for i, v := range [nKinds]float64{c.NetRx, c.NetTx, c.Block} {
			s := &of.soft[i]
			dst = append(dst, record.Sample{Name: record.GuestSoftIRQs, Labels: s.labels, Unit: record.Count, Kind: record.Counter, Value: s.rise(v)})
		}
	}
	return append(dst,
		record.Sample{Name: record.GuestRunnable, Labels: e.own, Unit: record.Count, Kind: record.Gauge, Value: float64(r.Runnable)},
		record.Sample{Name: record.GuestMemory, Labels: e.own, Unit: record.Byte, Kind: record.Gauge, Value: float64(r.Free)},
		record.Sample{Name: record.AgentCPU, Labels: e.own, Unit: record.Second, Kind: record.Counter, Value: e.spent.rise(r.Spent.Seconds())},
	)
}

// Close is idempotent. It does not close the guest, which belongs to the sandbox. Its error
// reports failed answers: Read does not return them, because that would end the series.
func (p *probe) Close() (err error) {
	if !p.Reader.Close() {
		return nil
	}
	for _, e := range p.endpoints {
		if e.failures > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d readings failed, the last one: %w", cmp.Or(e.name, "the guest"), e.failures, e.last))
		}
	}
	return err
}
