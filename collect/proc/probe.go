package proc

import (
	"errors"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tare/collect/internal/held"
	"tare/record"
	"tare/sandbox"
)

// Single threads get series of their own only when they used this much, and
// only so many of them in a trial: a server with 500 threads would otherwise
// fill the results with lines that nobody reads.
const (
	listFrom     = 10 * time.Millisecond
	listWorkload = 64
	listOthers   = 192
)

type threadID struct{ pid, tid int }

type process struct {
	dir, tasks string
	name       *held.File // its comm
	comm       string
	args       []string
	live       int  // threads known
	unsettled  bool // has threads that were looked at only once
	gen        int  // of the search that saw it
	listed     int  // of the search that listed its threads
}

type thread struct {
	id                threadID
	scope             int // index into scopes, or self
	comm, end         string
	role              sandbox.Role
	file              *held.File
	run, wait         uint64 // ns, total since the thread began
	prevRun, prevWait uint64 // the same a reading before
	cover             *cover // nil: not in a cgroup of a scope
	coverFrom         uint64 // run time before it came under the cover
	process           *process
	carryRun, carryWt uint64 // of an earlier thread with the same number, seen through a file that is not held
	fromRun, fromWait uint64 // what was counted for another role before
	listRun, listWait uint64 // where its series began
	sum               *sum
	listing           *listing
	refused           bool // no series of its own
	settled           bool // looked at twice
	gone              bool
	gen               int
}

type sumKey struct {
	role sandbox.Role
	end  string
}

// sum is one role at one end.
type sum struct {
	labels            record.Labels
	goneRun, goneWait uint64 // of threads that ended, or changed to another role
	liveRun, liveWait uint64
	live              int
	shownRun, shownWt uint64 // last values given out
}

// keep takes over for good what a thread had used in this role up to run and
// wait.
func (s *sum) keep(t *thread, run, wait uint64) {
	s.goneRun += run - t.fromRun
	s.goneWait += wait - t.fromWait
}

// listing is the series of one thread. Numbers can come back within a trial;
// baseRun is where the thread before ended.
type listing struct {
	labels            record.Labels
	baseRun, baseWait uint64
	taken             bool
}

type probe struct {
	o          Options
	scopes     []sandbox.Scope
	budget     *held.Budget
	threads    map[threadID]*thread
	order      []*thread // the same, in the order found
	procs      map[int]*process
	sums       map[sumKey]*sum
	sumOrder   []*sum
	listed     map[record.Labels]*listing
	nListed    [2]int // workload, others
	parents    map[int][]int
	claimed    map[int]bool
	covers     []*cover // by scope; nil: without cgroups
	coverOrder []*cover
	buf        []byte
	text       []byte
	meter      held.Meter
	gen        int
	lastFind   time.Duration
	cost       time.Duration // CPU of a search, smoothed
	rounds     time.Duration // when command lines and all threads were last read
	full       bool          // this search reads them
	closed     bool
}

func (p *probe) sumOf(k sumKey) *sum {
	s := p.sums[k]
	if s == nil {
		s = &sum{labels: labels(k)}
		p.sums[k] = s
		p.sumOrder = append(p.sumOrder, s)
	}
	return s
}

func labels(k sumKey, more ...string) record.Labels {
	pairs := append([]string{"role", string(k.role)}, more...)
	if k.end != "" {
		pairs = append(pairs, "end", k.end)
	}
	return record.MakeLabels(pairs...)
}

// Read appends sums by role, then single threads, then its own cost.
func (p *probe) Read(dst []record.Sample) ([]record.Sample, error) {
	if p.closed {
		return dst, errClosed
	}
	p.meter.Start()
	defer p.meter.Stop()
	p.charge()
	p.refreshAll()
	if p.due() {
		p.search()
	}
	for _, s := range p.sumOrder {
		s.liveRun, s.liveWait, s.live = 0, 0, 0
	}
	for _, t := range p.order {
		t.sum.liveRun += t.run - t.fromRun
		t.sum.liveWait += t.wait - t.fromWait
		t.sum.live++
		if t.cover != nil {
			t.cover.live += t.run - t.coverFrom
		}
	}
	for _, s := range p.sumOrder {
		s.shownRun = max(s.shownRun, s.goneRun+s.liveRun)
		s.shownWt = max(s.shownWt, s.goneWait+s.liveWait)
		dst = append(dst,
			counter(CPUTime, s.labels, s.shownRun),
			counter(RunWait, s.labels, s.shownWt),
			record.Sample{Name: Threads, Labels: s.labels, Unit: record.Count, Kind: record.Gauge, Value: float64(s.live)})
	}
	dst = p.appendRemainders(dst)
	if !p.o.NoTids {
		dst = p.appendThreads(dst)
	}
	return append(dst, record.Sample{Name: CollectorCPU, Labels: "collector=proc", Unit: record.Second, Kind: record.Counter, Value: p.meter.Seconds()}), nil
}

var errClosed = errors.New("proc collector: Read after Close")

// refreshAll reads the known threads and lets those go that have ended.
func (p *probe) refreshAll() {
	gone := false
	for _, t := range p.order {
		t.prevRun, t.prevWait = t.run, t.wait
		if !p.refresh(t) {
			p.retire(t)
			gone = true
		}
	}
	if gone {
		p.compact()
	}
}

// refresh reads one thread's file; false when the thread has ended.
func (p *probe) refresh(t *thread) bool {
	b, err := t.file.Read(&p.buf)
	if err != nil {
		// Anything else, such as no free descriptor, leaves the last values.
		return !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrNotExist)
	}
	run, wait, ok := parseSchedstat(b)
	if !ok {
		return true
	}
	run, wait = run+t.carryRun, wait+t.carryWt
	if run < t.run || wait < t.wait {
		// Another thread got this number, and the file was not held: go on
		// from where the old one ended.
		t.carryRun, t.carryWt = t.run, t.wait
		run, wait = run+t.carryRun, wait+t.carryWt
	}
	t.run, t.wait = run, wait
	return true
}

// retire keeps a thread's totals in its sum and lets it go.
func (p *probe) retire(t *thread) {
	if t.gone {
		return
	}
	t.gone = true
	t.process.live--
	t.sum.keep(t, t.run, t.wait)
	if t.cover != nil {
		t.cover.gone += t.run - t.coverFrom
	}
	p.unlist(t)
	_ = t.file.Close() // nothing was written
	delete(p.threads, t.id)
}

func (p *probe) compact() {
	kept := p.order[:0]
	for _, t := range p.order {
		if !t.gone {
			kept = append(kept, t)
		}
	}
	clear(p.order[len(kept):])
	p.order = kept
}

func (p *probe) appendThreads(dst []record.Sample) []record.Sample {
	for _, t := range p.order {
		if t.listing == nil && !p.enlist(t) {
			continue
		}
		dst = append(dst,
			counter(ThreadCPUTime, t.listing.labels, t.listing.baseRun+t.run-t.listRun),
			counter(ThreadRunWait, t.listing.labels, t.listing.baseWait+t.wait-t.listWait))
	}
	return dst
}

// enlist gives a thread a series of its own if it deserves one.
func (p *probe) enlist(t *thread) bool {
	if t.refused || t.run < uint64(listFrom) {
		return false
	}
	class, limit := 1, listOthers
	switch t.role {
	case sandbox.Harness, sandbox.Shim:
		t.refused = true // their sums say enough
		return false
	case sandbox.Workload:
		class, limit = 0, listWorkload
	}
	l := labels(sumKey{t.role, t.end}, "thread", t.comm, "tid", strconv.Itoa(t.id.tid))
	e := p.listed[l]
	switch {
	case e == nil && p.nListed[class] >= limit, e != nil && e.taken:
		t.refused = true
		return false
	case e == nil:
		e = &listing{labels: l}
		p.listed[l] = e
		p.nListed[class]++
	}
	if t.listRun, t.listWait = 0, 0; e.baseRun > 0 {
		// Somebody had these labels before, perhaps this thread itself.
		t.listRun, t.listWait = t.run, t.wait
	}
	e.taken = true
	t.listing = e
	return true
}

// unlist ends a thread's series, and keeps where it stood.
func (p *probe) unlist(t *thread) {
	t.refused = false
	if e := t.listing; e != nil {
		e.baseRun += t.run - t.listRun
		e.baseWait += t.wait - t.listWait
		e.taken = false
		t.listing = nil
	}
}

// Close releases every descriptor. It is idempotent.
func (p *probe) Close() error {
	p.closed = true
	var err error
	for _, t := range p.order {
		err = errors.Join(err, t.file.Close())
	}
	for _, pr := range p.procs {
		err = errors.Join(err, pr.name.Close())
	}
	for _, c := range p.coverOrder {
		for _, u := range c.usages {
			err = errors.Join(err, u.file.Close())
		}
	}
	p.order, p.threads, p.procs, p.coverOrder = nil, nil, nil, nil
	return err
}

func counter(name string, l record.Labels, ns uint64) record.Sample {
	return record.Sample{Name: name, Labels: l, Unit: record.Second, Kind: record.Counter, Value: float64(ns) / 1e9}
}
