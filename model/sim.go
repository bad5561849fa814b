package model

import (
	"cmp"
	"math"
	"math/rand/v2"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	us = int64(1e3)
	ms = int64(1e6)

	sampleEvery   = 100 * ms // the collectors' default of 10 Hz
	progressEvery = 50 * ms  // as the workload net's series
	minorEvery    = 10 * ms
	burstBytes    = 64 << 10    // TCP's largest segment before the adapter splits it
	burstTime     = 40e-6       // small messages coalesce for so long
	segment       = 4096        // bytes that a stage needs before the next one can begin
	histogramMax  = int64(1e12) // ns
)

// costs are the Config's costs in nanoseconds, with the trial's noise.
type costs struct {
	message, call, work  float64 // of a thread, for one burst or request
	softirq, softTail    float64
	helper, helperTail   float64
	exit, wakeCPU, swtch float64
}

// sim is one running trial.
type sim struct {
	Config
	events
	now   int64
	begin int64 // of the measured time
	end   int64
	rng   *rand.Rand
	jit   [1024]float64
	jitAt int
	pace  float64 // of this interval: noise
	costs costs
	msgs  float64 // messages in a burst; 1 in mode rr
	bytes float64 // of a burst

	cores   []core
	helpers []helper
	threads []thread
	conns   []conn
	idle    [16]uint64 // bit of each idle core
	parked  int        // threads on run queues

	host
	quota quotaState
	minor float64 // ns of the VMM's other threads

	inFree, outFree    int64   // when the link is free each way
	toBytes, fromBytes float64 // handed to it each way
	inside             int     // messages in the sandbox
	gate               fifo    // messages that wait for a slot

	batches [][]int32
	free    []int32

	done, doneBytes float64 // in the measured time
	area, latency   float64 // ns
	total           float64 // messages, warm-up included
	calls           float64
	served          float64 // ns of intercepted calls
	histogram       *hdr.Histogram
	base            totals // at the end of the warm-up
	rec             recorder
	nevents         int
}

// conn is a connection at the peer's end.
type conn struct {
	start    int64 // of the request in flight: sent, or due in the open loop
	out      bool  // a request is in flight
	peerFree int64 // when the peer's thread can write again
}

func newSim(c Config) *sim {
	s := &sim{Config: c, pace: 1, histogram: hdr.New(1, histogramMax, 3)}
	s.rng = newRand(c.Seed, 0x7461726500000006)
	if c.Isolation == Native {
		s.Guest.Factor, s.Guest.HaltPoll, s.Guest.VMM = 1, 0, 0
	}
	for i := range s.jit {
		s.jit[i] = s.lognormal(c.Noise.Op)
	}
	s.begin = int64(c.Load.Warmup * 1e9)
	s.end = s.begin + int64(c.Load.Duration*1e9)
	s.price()
	s.build()
	return s
}

func newRand(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // seeded: a trial must be repeatable
}

// lognormal has a mean of 1.
func lognormal(rng *rand.Rand, sigma float64) float64 {
	return math.Exp(sigma*rng.NormFloat64() - sigma*sigma/2)
}

func (s *sim) lognormal(sigma float64) float64 { return lognormal(s.rng, sigma) }

// demand returns the cost of a burst in each stage, without noise. In mode rr a burst is one
// message.
func (c Config) demand() (x costs, msgs, bytes float64) {
	l, k, h := c.Load, c.Kernel, c.Helper
	msgs, bytes = 1, float64(l.Size)
	message, ways, acks := k.PerMessage, 2.0, 1.0 // copied in and out
	if l.Mode == Stream {
		message, ways, acks = k.PerRead, 1, 1.25 // a burst's acknowledgement costs the helper too
		msgs = max(1, math.Floor(min(burstBytes/bytes, burstTime/(c.Path.PeerWrite+bytes*c.Path.PeerByte))))
		bytes *= msgs
	}
	f := 1.0
	if c.Isolation == VM {
		f = c.Guest.Factor
	}
	head, tail := bytes, 0.0
	if l.Mode == RR {
		head = min(head, segment)
		tail = bytes - head
	}
	const ns = 1e9
	return costs{
		message: ns * f * (msgs*message + ways*bytes*k.PerByte),
		call:    ns * msgs * k.Calls * k.Price, work: ns * msgs * l.Work,
		softirq: ns * f * (k.SoftIRQ + head*k.SoftIRQPerByte), softTail: ns * f * tail * k.SoftIRQPerByte,
		helper: ns * (acks*h.PerMessage + head*h.PerByte), helperTail: ns * tail * h.PerByte,
		exit: ns * c.Guest.Exit, wakeCPU: ns * h.WakeCPU, swtch: ns * f * k.Switch,
	}, msgs, bytes
}

// price applies the trial's noise to the costs.
func (s *sim) price() {
	s.costs, s.msgs, s.bytes = s.demand()
	guest, helper := s.lognormal(s.Noise.Trial), s.lognormal(s.Noise.Trial)
	x := &s.costs
	for _, v := range []*float64{&x.message, &x.call, &x.work, &x.softirq, &x.softTail, &x.exit, &x.swtch} {
		*v *= guest
	}
	for _, v := range []*float64{&x.helper, &x.helperTail, &x.wakeCPU} {
		*v *= helper
	}
}

func (s *sim) build() {
	l := s.Load
	n := s.Host.Cores
	if s.Isolation == VM {
		n = s.Guest.Boot + s.Guest.Hotplugged
	}
	s.cores = make([]core, n)
	for i := range s.cores {
		s.cores[i] = core{entity: entity{id: int32(i), core: true}, last: -1}
		s.setIdle(i, true)
	}
	if s.Isolation != Native {
		s.helpers = make([]helper, s.Helper.Threads)
		for i := range s.helpers {
			s.helpers[i].entity = entity{id: int32(n + i)} //nolint:gosec // few: Config.Check bounds it
		}
	}
	s.threads = make([]thread, cmp.Or(l.Threads, l.Connections))
	for i := range s.threads {
		s.threads[i].core = int32(i % n) //nolint:gosec // few: Config.Check bounds it
	}
	s.conns = make([]conn, l.Connections)
	s.quota = quotaState{on: s.Quota.Cores > 0, full: s.Quota.Cores * s.Quota.Period * 1e9,
		period: int64(s.Quota.Period * 1e9), slice: s.Quota.Slice * 1e9}
	s.quota.pool = s.quota.full
	s.rec.init(s)
}

// run goes from event to event until the measured time is over.
func (s *sim) run() {
	gap := 50 * us // connections do not start all at once
	if s.Load.Rate > 0 {
		gap = int64(1e9 / s.Load.Rate)
	}
	for i := range s.conns {
		n := 1
		if s.Load.Mode == Stream {
			n = s.Load.Window
		}
		s.conns[i].start = int64(i) * gap
		for range n {
			s.push(int64(i)*gap, evSend, 0, int32(i))
		}
	}
	if s.quota.on {
		s.push(s.rng.Int64N(s.quota.period), evPeriod, 0, 0) // periods do not depend on the trial's start
	}
	if s.Isolation == VM {
		s.push(minorEvery, evMinor, 0, 0)
	}
	s.push(0, evSample, 0, 0)
	s.push(progressEvery, evProgress, 0, 0)
	s.push(s.begin, evMeasure, 0, 0)
	for len(s.heap) > 0 && s.heap[0].at <= s.end {
		e := s.pop()
		s.now = e.at
		s.nevents++
		s.handle(&e)
	}
	s.now = s.end
	s.read()
}

// read takes a reading of every counter, one at a time.
func (s *sim) read() {
	s.settle()
	if s.rec.sampled != s.now {
		s.rec.sample(s)
	}
}

func (s *sim) handle(e *event) {
	switch e.kind() {
	case evReady:
		s.ready(s.entity(e.a))
	case evFinish:
		s.finish(s.entity(e.a))
	case evSend:
		s.peer(e.b)
	case evArrive:
		s.arrive(e.b)
	case evInject:
		s.inject(e.a, int(e.b))
	case evPeriod:
		s.refill()
		s.push(s.now+s.quota.period, evPeriod, 0, 0)
	case evSample:
		s.read()
		s.pace = s.lognormal(s.Noise.Interval)
		s.push(s.now+sampleEvery, evSample, 0, 0)
	case evProgress:
		s.rec.progress(s)
		s.push(s.now+progressEvery, evProgress, 0, 0)
	case evMinor:
		if s.active < s.Host.Cores { // else they wait
			x := s.Guest.VMM * float64(minorEvery) * s.jitter()
			s.minor += x
			s.charge(x)
			s.quota.pool -= x
		}
		s.push(s.now+minorEvery, evMinor, 0, 0)
	case evMeasure:
		s.read() // a point at the window's edge, as in a real trial
		s.base = s.totals()
	}
}

func (s *sim) jitter() float64 {
	s.jitAt++
	return s.jit[s.jitAt&(len(s.jit)-1)] * s.pace
}

// batch takes a slice from the free list; put gives it back.
func (s *sim) batch() int32 {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b
	}
	s.batches = append(s.batches, nil)
	return int32(len(s.batches) - 1) //nolint:gosec // few: messages under way
}

func (s *sim) put(b int32) {
	s.batches[b] = s.batches[b][:0]
	s.free = append(s.free, b)
}

// fifo is a queue that keeps its memory.
type fifo struct {
	items []int32
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(x int32) {
	if q.head > 64 && q.head*2 > len(q.items) {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	q.items = append(q.items, x)
}

func (q *fifo) pop() int32 {
	x := q.items[q.head]
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return x
}
