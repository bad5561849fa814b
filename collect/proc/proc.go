// Package proc is the collector of CPU time by thread, summed by the role that
// each thread plays: sentry, gofer, shim, vcpu, workload, harness.
//
// The data path: 1. find lists the processes of every scope (members of its
// cgroups, its pids and their descendants), then their threads, at every Read
// while that is cheap; 2. a new thread gets a role from the scope and a descriptor of its schedstat,
// held; 3. every Read takes run time and run-queue wait of all known threads by
// one pread each; 4. threads are summed by role and end; what a thread had used
// when it ended stays in its sum, so that sums never fall; 5. what the cgroups
// of an end were charged and no thread of theirs was seen to use is the role
// unattributed, so that roles add up to the cgroup.
//
// The source is /proc/PID/task/TID/schedstat, "<time on the cpu, ns> <time
// waiting on a run queue, ns> <timeslices>"
// (Documentation/scheduler/sched-stats.rst):
//
//	17634653 11315288 61
//
// /proc/PID/task/TID/stat was rejected: its ticks are 10 ms, as long as a tenth
// of the sampling interval, and it costs more to make and to parse. The kernel
// brings a running thread's figure up to date at its own tick, so one reading
// may be late by 1 to 10 ms; sums over a trial are exact. Taskstats' exit records
// (Documentation/accounting/taskstats.rst) would name even the shortest threads,
// but cost a message for each exit of the whole host and need CAP_NET_ADMIN; the
// sums of ended children in /proc/PID/stat are ticks of 10 ms, and only of
// children that were waited for.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tare/collect"
	"tare/collect/internal/held"
	"tare/internal/cgroup"
	"tare/record"
	"tare/sandbox"
)

// Names of the series.
const (
	CPUTime       = "cpu_time"
	RunWait       = "run_wait"
	Threads       = "threads"
	ThreadCPUTime = "thread_cpu_time"
	ThreadRunWait = "thread_run_wait"
	CollectorCPU  = "collector_cpu"
)

// Options are what New decides and tests inject. Zero values mean New's.
type Options struct {
	Root    string                                         // the proc file system, "/proc"
	Rescan  time.Duration                                  // longest pause between searches for new threads, 1 s
	Now     func() time.Duration                           // a monotonic clock
	Spent   func() time.Duration                           // the calling thread's CPU time
	Paths   func(controller, cgroup string) (string, bool) // cgroup directories, as internal/cgroup's Hierarchy.Path
	Members func(cgroup string) ([]int, error)             // processes of a cgroup and its descendants
	Self    int                                            // this program's process id, for the role harness; -1: leave it out
	Held    int                                            // descriptors that may be held; 0: by RLIMIT_NOFILE
	NoTids  bool                                           // sums by role only
}

// Collector is the collector; it keeps no state.
type Collector struct{ o Options }

// New makes the collector for this host.
func New() *Collector { return NewWith(Options{}) }

// NewWith makes a collector with some parts replaced.
func NewWith(o Options) *Collector {
	if o.Root == "" {
		o.Root = "/proc"
	}
	if o.Rescan == 0 {
		o.Rescan = time.Second
	}
	if o.Now == nil {
		o.Now = held.Monotonic
	}
	if o.Spent == nil {
		o.Spent = held.ThreadCPU
	}
	if o.Self == 0 {
		o.Self = os.Getpid()
	}
	return &Collector{o}
}

var _ collect.Collector = (*Collector)(nil)

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
		{Name: RunWait, Unit: record.Second, Better: record.Lower, Help: "time runnable but waiting for a processor, summed likewise"},
		{Name: Threads, Unit: record.Count, Better: record.Neither, Help: "threads alive of one role and end"},
		{Name: ThreadCPUTime, Unit: record.Second, Better: record.Lower, Help: "time on a processor of one thread that has used any; the first 64 workload threads and 192 others"},
		{Name: ThreadRunWait, Unit: record.Second, Better: record.Lower, Help: "time that thread waited for a processor"},
		{Name: CollectorCPU, Unit: record.Second, Better: record.Lower, Help: "CPU that reading took, up to the reading before"},
	}
}

// Check says why the source is missing on this host.
func (c *Collector) Check() error {
	path := filepath.Join(c.o.Root, "self", "schedstat")
	b, err := os.ReadFile(path) //nolint:gosec // a fixed file under the injected root
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is missing: the kernel was built without CONFIG_SCHED_INFO; leave the collector proc out of the study, cgroup gives sums", path)
	}
	if err != nil {
		return fmt.Errorf("proc collector: %w", err)
	}
	if _, _, ok := parseSchedstat(b); !ok {
		return fmt.Errorf("%s says %.60q, not two numbers; leave the collector proc out of the study", path, b)
	}
	return nil
}

// Open finds the scopes' threads and holds their files. It fails only when the
// proc file system or the cgroups cannot be read at all.
func (c *Collector) Open(_ context.Context, scopes []sandbox.Scope) (collect.Probe, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	o := c.o
	if (o.Members == nil || o.Paths == nil) && slices.ContainsFunc(scopes, func(s sandbox.Scope) bool { return len(s.Cgroups) > 0 }) {
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
	p := &probe{
		o: o, scopes: scopes, budget: budget,
		threads: map[threadID]*thread{},
		procs:   map[int]*process{},
		sums:    map[sumKey]*sum{},
		listed:  map[record.Labels]*listing{},
		claimed: map[int]bool{},
		buf:     make([]byte, 4096),
	}
	p.openCovers(o.Paths)
	p.find()
	for _, t := range p.order { // what they had used before is nobody's
		t.fromRun, t.fromWait, t.coverFrom = t.run, t.wait, t.run
		t.prevRun, t.prevWait = t.run, t.wait
	}
	return p, nil
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
