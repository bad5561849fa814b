package proc

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tare/collect/internal/metered"
	"tare/collect/internal/taskiter"
	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

// A single thread gets its own series only if it used this much, and only so many threads of
// a trial do: a server with 500 threads would otherwise fill the results with useless series.
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
	unsettled  bool // has threads that were read only once
	gen        int  // of the search that saw it
	listed     int  // of the search that listed its threads

	// With the BPF iterator, whose scan brings threads and names:
	scope   int
	cover   *cover
	threads []*thread // in the order of numbers
	tids    []int     // their numbers, in one slice, because most records are of idle threads
	seen    []int     // the walk that last met each
	next    int       // expected index of the next record
	met     int       // by the present walk
	walk    int       // to which next and met belong
	begun   uint64    // when it began; 0: not scanned yet
	version int       // of args and so of roles; 0: not read yet
	other   bool      // another process has its number now
}

type thread struct {
	id                threadID
	scope             int // index into scopes, or self
	comm, endpoint    string
	role              record.ThreadRole
	file              *held.File
	run, wait         uint64 // ns, total since the thread began
	prevRun, prevWait uint64 // the same at the last reading
	cover             *cover // nil: not in a cgroup of a scope
	process           *process
	carryRun, carryWt uint64 // of an earlier thread with the same number, seen through a file that is not held
	listRun, listWait uint64 // where its series began
	sum               *sum   // nil until it is classified
	listing           *listing
	busy              bool // it has used listFrom
	refused           bool // it gets no series
	settled           bool // read twice
	gone              bool
	gen               int

	// With the BPF iterator:
	start   uint64 // when it began
	raw     [16]byte
	version int // of the process, when it was classified
	scan    int // the last in which it had run
}

type sumKey struct {
	role     record.ThreadRole
	endpoint string
}

// sum is one role at one endpoint.
type sum struct {
	labels            record.Labels
	run, wait         uint64 // ns, including ended threads
	live              int
	shownRun, shownWt uint64 // values in the last sample
}

// listing is the series of one thread. A number may be used again within a trial; baseRun is
// where the earlier thread ended.
type listing struct {
	labels            record.Labels
	baseRun, baseWait uint64
	taken             bool
}

type probe struct {
	metered.Reader
	o          Options
	scopes     []sandbox.LocalScope
	budget     *held.Budget
	threads    map[threadID]*thread
	order      []*thread // the same, in the order found
	busy       []*thread // of these, those that have used listFrom
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
	gen        int
	lastFind   time.Duration
	cost       time.Duration  // CPU of a search, smoothed
	rounds     time.Duration  // when command lines and all threads were last read
	full       bool           // this search reads them
	tasks      *taskiter.Iter // nil: files are read
	why        string         // why files are read
	records    []taskiter.Record
	changed    bool // processes were added or removed since the iterator got the set
	renewed    bool // a process has another version
	queues     []*queues
	scans      int
	walks      int // of scans, one or two each
	crowd      int // threads of the host
	failures   int // of scans in a row
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
	pairs := append([]string{record.LabelRole, string(k.role)}, more...)
	if k.endpoint != "" {
		pairs = append(pairs, record.LabelEndpoint, k.endpoint)
	}
	return record.MakeLabels(pairs...)
}

// appendAll appends sums by role, then single threads, then its own cost.
func (p *probe) appendAll(dst []record.Sample) ([]record.Sample, error) {
	p.charge()
	if err := p.refreshAll(); err != nil {
		return dst, err
	}
	for _, s := range p.sumOrder {
		s.shownRun, s.shownWt = max(s.shownRun, s.run), max(s.shownWt, s.wait)
		dst = append(dst,
			counter(CPUTime, s.labels, s.shownRun),
			counter(RunWait, s.labels, s.shownWt),
			record.Sample{Name: Threads, Labels: s.labels, Unit: record.Count, Kind: record.Gauge, Value: float64(s.live)})
	}
	dst = p.appendRemainders(dst)
	dst = p.appendQueues(dst)
	return p.appendThreads(dst), nil
}

// refreshAll updates all threads, and searches new ones if due. The iterator gets new
// processes before it scans. New files are opened after the known ones are read, so that the
// known ones are read without a pause.
func (p *probe) refreshAll() error {
	if p.tasks == nil {
		p.readAll()
	}
	if p.due() {
		p.search()
	}
	if p.tasks != nil {
		return p.scan()
	}
	return nil
}

// readAll reads the files of the known threads and retires ended threads.
func (p *probe) readAll() {
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

// refresh reads one thread's file; false if the thread has ended.
func (p *probe) refresh(t *thread) bool {
	b, err := t.file.Read(&p.buf)
	if err != nil {
		// After other errors, such as no free descriptor, the last values stay.
		return !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrNotExist)
	}
	run, wait, ok := parseSchedstat(b)
	if !ok {
		return true
	}
	t.advance(run, wait)
	p.note(t)
	return true
}

// note adds a thread that has used enough to get its own series to the list.
func (p *probe) note(t *thread) {
	if !t.busy && t.run >= uint64(listFrom) {
		t.busy = true
		p.busy = append(p.busy, t)
	}
}

// advance takes the kernel's latest figures, and adds their rise to the thread's sum and
// cover.
func (t *thread) advance(run, wait uint64) {
	run, wait = run+t.carryRun, wait+t.carryWt
	if run < t.run || wait < t.wait {
		// Another thread got this number, and the file was not held; or another thread of the
		// process called exec, and took the number of the first: continue where the old one ended.
		t.carryRun, t.carryWt = t.run, t.wait
		run, wait = run+t.carryRun, wait+t.carryWt
	}
	if t.sum != nil {
		t.count(run-t.run, wait-t.wait)
	}
	t.run, t.wait = run, wait
}

func (t *thread) count(run, wait uint64) {
	t.sum.run += run
	t.sum.wait += wait
	if t.cover != nil {
		t.cover.seen += run
	}
}

// retire removes a thread; what it used stays in its sum.
func (p *probe) retire(t *thread) {
	if t.gone {
		return
	}
	t.gone = true
	t.process.live--
	t.sum.live--
	p.unlist(t)
	_ = t.file.Close() // nothing was written
	delete(p.threads, t.id)
}

func (p *probe) compact() {
	ended := func(t *thread) bool { return t.gone }
	p.order = slices.DeleteFunc(p.order, ended)
	p.busy = slices.DeleteFunc(p.busy, ended)
}

func (p *probe) appendThreads(dst []record.Sample) []record.Sample {
	for _, t := range p.busy {
		if t.listing == nil && !p.enlist(t) {
			continue
		}
		dst = append(dst,
			counter(ThreadCPUTime, t.listing.labels, t.listing.baseRun+t.run-t.listRun),
			counter(ThreadRunWait, t.listing.labels, t.listing.baseWait+t.wait-t.listWait))
	}
	return dst
}

// enlist gives a thread its own series if it has used enough.
func (p *probe) enlist(t *thread) bool {
	if t.refused {
		return false
	}
	class, limit := 1, listOthers
	switch t.role {
	case record.RoleHarness, record.RoleShim:
		t.refused = true // the role's sum is enough
		return false
	case record.RoleWorkload:
		class, limit = 0, listWorkload
	}
	l := labels(sumKey{t.role, t.endpoint}, "thread", t.comm, "tid", strconv.Itoa(t.id.tid))
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
		// An earlier series had these labels, perhaps of this thread.
		t.listRun, t.listWait = t.run, t.wait
	}
	e.taken = true
	t.listing = e
	return true
}

// unlist ends a thread's series, and keeps its last values.
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
	p.Reader.Close()
	err := p.tasks.Close()
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
	p.order, p.busy, p.threads, p.procs, p.coverOrder, p.tasks = nil, nil, nil, nil, nil, nil
	return err
}

func counter(name string, l record.Labels, ns uint64) record.Sample {
	return record.Sample{Name: name, Labels: l, Unit: record.Second, Kind: record.Counter, Value: float64(ns) / 1e9}
}
