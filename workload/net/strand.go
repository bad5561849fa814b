package netload

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"tare/workload/inside/raw"
	"tare/workload/net/uperf"
)

// tick is how often a blocked strand checks whether its transaction is over: SO_RCVTIMEO and
// SO_SNDTIMEO of every socket. uperf interrupts its strands by a signal, after which Go's runtime
// would restart the call. A shutdown, as in other modes, would end connections that later
// transactions use. Only operations that block have the cost, a kernel timer.
const tick = raw.Tick

// outcome of an operation.
type outcome int

const (
	done   outcome = iota
	over           // the transaction has ended, or the session is abandoned
	failed         // see strand.why and strand.errno
)

// strand is one thread of a profile at one end; its peer has the same index.
type strand struct {
	run    *profileRun
	index  int
	group  int // from 0
	of     int // strands in the group
	nth    int // of the group, from 0
	master bool
	tasks  []*task
	buf    []byte
	rand   *rand.Rand
	clock  clock
	peer   raw.Addr // its address; the ports are below
	ports  listening
	tcp    int // listening socket, -1 if it has none
	udp    int
	greets uint32 // UDP connections made

	conns    []conn
	task     *task
	measured bool
	deadline int64 // of a master's transaction that a duration bounds; else 0
	due      int64 // when the present iteration was due
	now      int64 // the last reading of the clock
	budget   int64 // left of a spread step
	finished int64 // clock at the end of the last operation
	why      string
	errno    unix.Errno
	line     int

	_          [64]byte
	ops        atomic.Int64
	in, out    atomic.Int64
	iterations atomic.Int64 // of the present transaction
	want       atomic.Int64 // at the peer: iterations of the master, valid when ending
	ending     atomic.Bool  // at the peer: the master has ended the transaction
	_          [64]byte

	errors, lost atomic.Int64
	cut, unsent  int64
	firstError   string
	hist         *hdrhistogram.Histogram // of iterations, in the present transaction
	byOp         map[uperf.Op]*hdrhistogram.Histogram
}

// conn is an open connection.
type conn struct {
	id             int // 0: without a name
	fd             int
	udp, nonblock  bool
	loose          bool  // data may be unread at its end
	sent, received int64 // bytes, of TCP
}

// find returns the connection of that name that was opened last.
func (s *strand) find(id int) *conn {
	for i := len(s.conns) - 1; i >= 0; i-- {
		if s.conns[i].id == id {
			return &s.conns[i]
		}
	}
	return nil
}

// fail records an error; err makes its text only when needed.
func (s *strand) fail(why string, e unix.Errno) outcome {
	s.why, s.errno = why, e
	return failed
}

// err returns the last failure.
func (s *strand) err() error {
	end := "server"
	if s.master {
		end = "client"
	}
	where := fmt.Sprintf("the profile's line %d, strand %d at the %s: %s", s.line, s.index, end, s.why)
	switch s.errno {
	case 0:
		return fmt.Errorf("%s", where)
	case unix.EADDRNOTAVAIL:
		return fmt.Errorf("%s: %w: every port is in use or was until a minute ago; lower iterations, or use more strands", where, s.errno)
	case unix.EMFILE:
		return fmt.Errorf("%s: %w: raise the limit of open files (ulimit -n)", where, s.errno)
	}
	return fmt.Errorf("%s: %w", where, s.errno)
}

// ended reports whether the present transaction is over, for a strand that could go on. It is
// called between operations, and every tick of a blocked one.
func (s *strand) ended() bool {
	switch t := s.task; {
	case s.run.stop.Load():
		return true
	case s.master:
		return s.deadline > 0 && !t.opens && s.now >= s.deadline
	case !s.ending.Load():
		return false
	case t.opens:
		return t.iterations == 0 && s.iterations.Load() >= s.want.Load()
	default:
		return t.iterations == 0 || t.loose
	}
}

// blocked is ended for a strand that has waited a tick.
func (s *strand) blocked() bool {
	s.now = s.clock.now()
	return s.ended()
}

// work runs one transaction from begin on.
func (s *strand) work(t *task, begin int64, measured bool) error {
	s.task, s.measured, s.budget, s.deadline = t, measured, t.budget, 0
	s.iterations.Store(0)
	s.now, s.finished = begin, begin
	if s.master && t.Duration > 0 {
		s.deadline = begin + int64(t.Duration)
	}
	period, due := int64(0), begin
	if t.Rate > 0 && (s.master || s.first(t)) {
		period = int64(1e9 / t.Rate)
		due += period * int64(s.nth) / int64(s.of) // strands take turns
	}
iterations:
	for n := int64(0); t.iterations == 0 || n < t.iterations; n++ {
		s.now = s.clock.now()
		if s.ended() || s.deadline > 0 && s.now >= s.deadline {
			break
		}
		s.due = s.now
		if period > 0 {
			if s.deadline > 0 && due >= s.deadline || !s.sleepUntil(due) {
				break
			}
			s.due = due
			due += period
		}
		before := len(s.conns)
		switch s.once(t) {
		case failed:
			return s.err()
		case over:
			for t.opens && !s.master && len(s.conns) > before { // connections of an iteration that the master did not begin
				raw.Close(s.conns[len(s.conns)-1].fd)
				s.conns = s.conns[:len(s.conns)-1]
			}
			if s.master && s.measured && s.now-s.due > int64(tick) { // it hung when the time was over
				s.note(s.hist, s.now-s.due)
				s.cut++
			}
			break iterations
		case done:
		}
		s.iterations.Store(n + 1)
		if s.master && s.measured {
			s.note(s.hist, s.now-s.due)
		}
	}
	if period > 0 && s.master && s.deadline > 0 {
		// Iterations that were due and did not start have waited until now.
		for ; due < s.deadline && s.measured; due += period {
			s.note(s.hist, s.deadline-due)
			s.unsent++
		}
	}
	return nil
}

func (s *strand) note(h *hdrhistogram.Histogram, ns int64) {
	_ = h.RecordValue(max(1, min(ns, histogramMax)))
}

// first reports whether the strand's first transfer sends. Then a rate paces the peer too, which
// would otherwise write ahead.
func (s *strand) first(t *task) bool {
	for i := range t.steps {
		switch t.steps[i].op {
		case uperf.Write, uperf.Send:
			return true
		case uperf.Read, uperf.Recv, uperf.Connect, uperf.Accept:
			return false
		case uperf.Disconnect, uperf.Think, uperf.Nop:
		}
	}
	return false
}

// sleepUntil waits for an iteration's time; false when the transaction is over.
func (s *strand) sleepUntil(t int64) bool {
	for {
		s.now = s.clock.now()
		switch {
		case s.now >= t:
			return true
		case s.run.stop.Load() || !s.master && s.ended():
			return false
		case t-s.now <= s.run.spin:
			continue
		}
		ts := unix.NsecToTimespec(min(t-s.now-s.run.spin, int64(tick)))
		rawSleep(&ts)
	}
}

// close closes all connections and sockets.
func (s *strand) close() {
	for _, c := range s.conns {
		raw.Close(c.fd)
	}
	s.conns = nil
	for _, fd := range []int{s.tcp, s.udp} {
		if fd >= 0 {
			raw.Close(fd)
		}
	}
	s.tcp, s.udp = -1, -1
}
