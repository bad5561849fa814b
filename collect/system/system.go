// Package system is the collector of the whole machine: processor time by mode, context
// switches, run queue, pressure stall, memory.
//
// The data path: 1. Open holds /proc/stat, /proc/meminfo and /proc/pressure/*;
// 2. each Read takes each by one pread and parses the bytes without allocating; 3. counters
// that the kernel may decrease (idle and iowait, proc_stat(5)) keep their maximum.
//
// Sources: Documentation/filesystems/proc.rst ("Miscellaneous kernel statistics
// in /proc/stat", "meminfo") and Documentation/accounting/psi.rst. The first line
// of /proc/stat, in ticks of 10 ms:
//
//	cpu  15587 0 4353 198676 393 0 99 119 0 0
//
// Time of a guest's vCPUs is part of user. Only this collector sees what belongs to no
// sandbox: other load, interrupts, a hypervisor's steal.
package system

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tare/collect"
	"tare/collect/internal/metered"
	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

// Collector is the collector; it keeps no state.
type Collector struct{ root string }

// New makes the collector for this host.
func New() *Collector { return NewAt("/proc") }

// NewAt makes a collector that reads another tree than /proc.
func NewAt(root string) *Collector { return &Collector{root} }

var _ collect.Collector = (*Collector)(nil)

// Name is the word in a study file.
func (*Collector) Name() string { return "system" }

// About is one sentence for `tare list`.
func (*Collector) About() string {
	return "the whole machine: processor time by mode, context switches, run queue, pressure, memory (Documentation/filesystems/proc.rst, accounting/psi.rst)"
}

// Names of the series.
const (
	cpuName        = record.SystemCPU
	interruptsName = "system_cpu_softirq"
	switchesName   = "system_context_switches"
	forksName      = "system_forks"
	runningName    = "system_running"
	blockedName    = "system_blocked"
	softirqsName   = "system_softirqs"
	pressureName   = "system_pressure"
	availableName  = "system_memory_available"
	cacheName      = "system_page_cache"
)

// Series describes what Read returns.
func (*Collector) Series() []record.Response {
	return []record.Response{
		{Name: cpuName, Unit: record.Second, Better: record.Neither, Help: "time of all processors, by mode: user, nice, system, idle, iowait, irq, softirq, steal"},
		{Name: interruptsName, Unit: record.Second, Better: record.Neither, Help: "time of one processor in soft and hard interrupts since the collector was opened; only of processors that served any"},
		{Name: switchesName, Unit: record.Count, Better: record.Lower, Help: "context switches"},
		{Name: forksName, Unit: record.Count, Better: record.Lower, Help: "processes and threads started"},
		{Name: runningName, Unit: record.Count, Better: record.Neither, Help: "threads running or ready to run, this program's included"},
		{Name: blockedName, Unit: record.Count, Better: record.Lower, Help: "threads waiting for a disk"},
		{Name: softirqsName, Unit: record.Count, Better: record.Neither, Help: "soft interrupts, by kind: net_tx, net_rx, block"},
		{Name: pressureName, Unit: record.Second, Better: record.Lower, Help: "time in which some or all threads waited for a resource: cpu, io, memory"},
		{Name: availableName, Unit: record.Byte, Better: record.Higher, Help: "memory available without swapping (MemAvailable)"},
		{Name: cacheName, Unit: record.Byte, Better: record.Neither, Help: "pages of files in memory, except tmpfs: Active(file) + Inactive(file)"},
		metered.Series(),
	}
}

// Check says why the source is missing on this host.
func (c *Collector) Check() error {
	b, err := os.ReadFile(c.root + "/stat")
	if err != nil {
		return fmt.Errorf("system collector: %w; mount the proc file system", err)
	}
	if _, ok := parseStat(b, nil); !ok {
		return fmt.Errorf("system collector: %s/stat does not start with the line of all processors", c.root)
	}
	return nil
}

// Open opens the files. It leaves out pressure on kernels without it (CONFIG_PSI, or psi=0).
func (c *Collector) Open(context.Context, []sandbox.LocalScope) (collect.Probe, error) {
	p := &probe{buf: make([]byte, 16384)}
	p.Reader = metered.New("system", p.take)
	b := held.DefaultBudget()
	var err error
	if p.stat, err = held.Open(c.root+"/stat", b); err != nil {
		return nil, fmt.Errorf("system collector: %w", err)
	}
	if p.meminfo, err = optional(c.root+"/meminfo", b); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	for _, r := range []string{"cpu", "io", "memory"} {
		f, err := optional(c.root+"/pressure/"+r, b)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if f == nil {
			continue
		}
		if _, err := f.Read(&p.buf); err != nil { // EOPNOTSUPP with psi=0
			_ = f.Close() // nothing was written
			continue
		}
		p.pressure = append(p.pressure, pressure{
			file: f,
			some: record.MakeLabels("resource", r, "who", "some"),
			full: record.MakeLabels("resource", r, "who", "full"),
		})
	}
	return p, nil
}

// optional opens a file; nil if it is missing.
func optional(path string, b *held.Budget) (*held.File, error) {
	f, err := held.Open(path, b)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("system collector: %w", err)
	}
	return f, nil
}
