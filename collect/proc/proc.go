// Package proc is the collector of CPU time by thread, summed by the role that
// each thread plays: sentry, gofer, shim, vcpu, workload, harness.
//
// The data path: 1. find lists the processes of every scope (members of its
// cgroups, its pids and their descendants) at every Read while that is cheap;
// 2. their threads are read in one of two ways, chosen by Open: by one walk of a BPF task
// iterator (scan.go, internal/taskiter), which also finds new threads; or from files, where
// find lists new threads and opens their schedstat, and every Read takes one pread a thread;
// 3. a new thread gets a role from the scope; 4. threads are summed by role and end; what a
// thread had used when it ended stays in its sum, so that sums never fall; 5. CPU time that
// the cgroups of an endpoint were charged, but no seen thread used, gets the role unattributed,
// so that the roles add up to the cgroup.
//
// The files are /proc/PID/task/TID/schedstat, "<time on the cpu, ns> <time
// waiting on a run queue, ns> <timeslices>"
// (Documentation/scheduler/sched-stats.rst):
//
//	17634653 11315288 61
//
// /proc/PID/task/TID/stat was rejected: its ticks are 10 ms, as long as a tenth
// of the sampling interval, and it costs more to make and to parse. The kernel updates a
// running thread's figure at its tick, so one reading may be late by 1 to 10 ms; sums over a
// trial are exact. Taskstats' exit records
// (Documentation/accounting/taskstats.rst) would name even the shortest threads,
// but cost a message for each exit of the whole host and need CAP_NET_ADMIN; the
// sums of ended children in /proc/PID/stat are ticks of 10 ms, and only of
// children that were waited for.
package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tare/collect"
	"tare/collect/internal/metered"
	"tare/collect/internal/taskiter"
	"tare/host/cgroup"
	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

// Names of the series.
const (
	CPUTime       = record.CPUTime
	RunWait       = "run_wait"
	Threads       = "threads"
	ThreadCPUTime = "thread_cpu_time"
	ThreadRunWait = "thread_run_wait"
)

// Options are what New decides and tests inject. Zero values mean New's.
type Options struct {
	Root    string                                         // the proc file system, "/proc"
	Rescan  time.Duration                                  // longest pause between searches for new threads, 1 s
	Now     func() time.Duration                           // a monotonic clock
	Spent   func() time.Duration                           // the calling thread's CPU time
	Paths   func(controller, cgroup string) (string, bool) // cgroup directories, as host/cgroup's Hierarchy.Path
	Members func(cgroup string) ([]int, error)             // processes of a cgroup and its descendants
	Self    int                                            // this program's process id, for the role harness; -1: leave it out
	Held    int                                            // descriptors that may be held; 0: by RLIMIT_NOFILE
	Way     Way                                            // how to read threads; "": BPF if it works, else files
}

// Way is how threads are read.
type Way string

// The ways.
const (
	Either Way = ""
	BPF    Way = "bpf"  // a task iterator, or Open fails
	Files  Way = "proc" // schedstat of each thread
)

// Collector is the collector. It keeps what is needed to load the BPF program.
type Collector struct {
	o      Options
	loader *taskiter.Loader
}

// New makes the collector for this host.
func New() *Collector { return NewWith(Options{}) }

// NewWith makes a collector with some parts replaced.
func NewWith(o Options) *Collector {
	o.Root = cmp.Or(o.Root, "/proc")
	o.Rescan = cmp.Or(o.Rescan, time.Second)
	if o.Now == nil {
		o.Now = held.Monotonic
	}
	if o.Spent == nil {
		o.Spent = held.ThreadCPU
	}
	o.Self = cmp.Or(o.Self, os.Getpid())
	return &Collector{o, &taskiter.Loader{}}
}

var (
	_ collect.Collector = (*Collector)(nil)
	_ collect.Sourced   = (*Collector)(nil)
	_ collect.Sourced   = (*probe)(nil)
)

// Name is the word in a study file.
func (*Collector) Name() string { return "proc" }

// About is one sentence for `tare list`.
func (*Collector) About() string {
	return "CPU time and run-queue wait of every thread, by role (Documentation/scheduler/sched-stats.rst)"
}

// Series describes what Read returns.
func (*Collector) Series() []record.Response {
	return []record.Response{
		{Name: CPUTime, Unit: record.Second, Better: record.Lower, Help: "time on a processor, summed over the threads of one role and end since the collector was opened; threads that ended included; role unattributed: charged to the end's cgroups, by threads too short-lived to be seen"},
		{Name: RunWait, Unit: record.Second, Better: record.Lower, Help: "time runnable but waiting for a processor, summed in the same way"},
		{Name: Threads, Unit: record.Count, Better: record.Neither, Help: "threads alive of one role and end"},
		{Name: ThreadCPUTime, Unit: record.Second, Better: record.Lower, Help: "time on a processor of one thread that has used any; the first 64 workload threads and 192 others"},
		{Name: record.QueuedConnections, Unit: record.Count, Better: record.Lower, Help: "connections that wait at the ports of an end until its program accepts them; of pods that are not the study's"},
		{Name: ThreadRunWait, Unit: record.Second, Better: record.Lower, Help: "time that thread waited for a processor"},
		metered.Series(),
	}
}

// Check says why the source is missing on this host.
func (c *Collector) Check() error {
	path := filepath.Join(c.o.Root, "self", "schedstat")
	b, err := os.ReadFile(path) //nolint:gosec // a fixed file under the injected root
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is missing: the kernel was built without CONFIG_SCHED_INFO; leave the collector proc out of the study (the collector cgroup has sums)", path)
	}
	if err != nil {
		return fmt.Errorf("proc collector: %w", err)
	}
	if _, _, ok := parseSchedstat(b); !ok {
		return fmt.Errorf("%s has %.60q; expected two numbers; leave the collector proc out of the study", path, b)
	}
	return nil
}

// Open finds the scopes' threads and opens their files. It fails only if the proc file system
// or the cgroups cannot be read at all.
func (c *Collector) Open(_ context.Context, scopes []sandbox.LocalScope) (collect.Probe, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	o := c.o
	if (o.Members == nil || o.Paths == nil) && slices.ContainsFunc(scopes, func(s sandbox.LocalScope) bool { return len(s.Cgroups) > 0 }) {
		h, err := cgroup.Detect()
		if err != nil {
			return nil, fmt.Errorf("proc collector: find cgroups: %w", err)
		}
		if o.Members == nil {
			o.Members = members(h)
		}
		if o.Paths == nil {
			o.Paths = h.Path
		}
	}
	budget := held.DefaultBudget()
	if o.Held > 0 {
		budget = held.NewBudget(o.Held)
	}
	tasks, why, err := c.iterator()
	if err != nil {
		return nil, err
	}
	p := &probe{
		tasks: tasks, why: why,
		o: o, scopes: scopes, budget: budget,
		threads: map[threadID]*thread{},
		procs:   map[int]*process{},
		sums:    map[sumKey]*sum{},
		listed:  map[record.Labels]*listing{},
		claimed: map[int]bool{},
		buf:     make([]byte, 4096),
	}
	p.Reader = metered.New("proc", p.appendAll)
	p.openCovers(o.Paths)
	p.openQueues()
	p.find()
	if p.tasks != nil {
		if err := p.scan(); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	for _, t := range p.order {
		t.prevRun, t.prevWait = t.run, t.wait
	}
	for _, s := range p.sumOrder { // what threads used before Open does not count
		s.run, s.wait = 0, 0
	}
	for _, c := range p.coverOrder {
		c.seen = 0
	}
	return p, nil
}

// iterator loads the BPF program, or returns why files are read instead. If Root is not the
// kernel's proc file system, it has other threads than BPF sees.
func (c *Collector) iterator() (_ *taskiter.Iter, why string, _ error) {
	switch {
	case c.o.Way == Files:
		return nil, "that was asked for", nil
	case c.o.Root != "/proc":
		why = "its root is " + c.o.Root
		if c.o.Way == BPF {
			return nil, "", errors.New("proc collector: no BPF task iterator: " + why)
		}
		return nil, why, nil
	}
	it, err := c.loader.Load()
	if err == nil {
		return it, "", nil
	}
	if c.o.Way == BPF {
		return nil, "", fmt.Errorf("proc collector: no BPF task iterator: %w", err)
	}
	return nil, err.Error(), nil
}

// Source says how threads are read on this host, and why.
func (c *Collector) Source() string {
	it, why, err := c.iterator()
	if err != nil {
		return err.Error()
	}
	_ = it.Close() // this was only a try
	return source(it != nil, why)
}

// Source says how this probe reads threads, and why.
func (p *probe) Source() string { return source(p.why == "", p.why) }

func source(bpf bool, why string) string {
	if bpf {
		return "BPF task iterator"
	}
	return "files of /proc: " + why
}

// parseSchedstat reads run time and run-queue wait in nanoseconds.
func parseSchedstat(b []byte) (run, wait uint64, ok bool) {
	run, b, ok = held.Uint(b)
	if !ok {
		return 0, 0, false
	}
	wait, _, ok = held.Uint(b)
	return run, wait, ok
}
