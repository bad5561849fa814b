package netload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"tare/workload/inside"
	"tare/workload/inside/raw"
)

// The hot loops. Each runs on its own operating-system thread, with blocking RawSyscalls, and
// allocates nothing.
//
// They use RawSyscall, not syscall.Read. The latter informs the Go scheduler, whose monitor then
// takes the P from each call that lasts over 20 us, and polls every 20 us from then on. Measured
// over the loopback of a busy two-core machine, medians of 12 interleaved pairs: 1.29 times the
// round trips, 1.44 times the stream, 0.70 of the CPU. With RawSyscall a blocked thread keeps
// its P: raw.Threads makes enough of them, and the garbage collector, which would wait for a blocked
// thread, is off.

// worker is one connection's thread. The padding keeps the counters of two
// threads off one cache line.
type worker struct {
	cfg   *config
	sock  *socket
	index int
	clock clock

	begin, end int64 // of measuring, nanoseconds of clock; end 0: by count
	count      int64 // operations to measure, when by count
	period     int64 // nanoseconds from one scheduled start to the next; 0: closed loop
	phase      int64 // of this connection's first scheduled start after start
	start      int64
	spin       int64 // open loop: the last part of a wait, spent looking at the clock

	stop, measure *atomic.Bool
	ordered       bool // a stream that ends before stop is set is an error

	_    [64]byte
	ops  atomic.Int64 // finished since the start, warm-up included
	in   atomic.Int64 // bytes received
	out  atomic.Int64 // bytes sent
	_    [64]byte
	hist *hdrhistogram.Histogram

	finished    int64                   // clock at the end of the last measured operation
	lost, stale int64                   // UDP: timeouts, and replies that came after theirs
	noRoom      int64                   // of neighbours: requests that the kernel dropped, because its ARP table was full
	unsent      int64                   // open loop: scheduled in the window, not started by its end
	wake        *hdrhistogram.Histogram // open loop: how late the thread woke, of the measured waits
	busy        time.Duration           // open loop: that the thread ran or waited for a processor, of lasted
	lasted      time.Duration
	err         error
}

// clock returns nanoseconds since a base, from the monotonic clock. One reading is one vDSO call
// of about 25 to 50 ns: 0.3 to 0.6 % of an 8 us round trip.
type clock struct{ base time.Time }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

const (
	// histogramMax is the longest latency of a histogram; longer ones count as this. A dead
	// peer is given up sooner.
	histogramMax = int64(60 * time.Second)
	// digits: three, so that a value is right to 0.1 %.
	digits = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, histogramMax, digits) }

func (w *worker) note(ns int64) { _ = w.hist.RecordValue(max(1, min(ns, histogramMax))) }

// run executes the worker's loop; err holds how it failed.
func (w *worker) run(loop func(*worker) error) {
	raw.Pin()
	if w.period == 0 {
		w.err = loop(w)
		return
	}
	before, from := inside.ThreadBusy(), time.Now()
	w.err = loop(w)
	w.busy, w.lasted = inside.ThreadBusy()-before, time.Since(from)
}

// fail returns the error of a connection. A deadline acts through shutdown, so these errors are
// not the cause; the owner of the deadline adds the cause.
func (w *worker) fail(doing string, ended bool, e unix.Errno) error {
	if ended {
		return fmt.Errorf("connection %d to %s: %s: the other end closed it: %w", w.index, w.sock.peer, doing, errClosed)
	}
	return fmt.Errorf("connection %d to %s: %s: %w", w.index, w.sock.peer, doing, e)
}

var errClosed = errors.New("connection closed")

// sendStream writes messages until told to stop, or count of them after the
// warm-up, and closes its direction.
func sendStream(w *worker) error {
	buf := make([]byte, w.cfg.Size)
	var ops, out, last int64
	for !w.stop.Load() && (last == 0 || ops < last) {
		if last == 0 && w.count > 0 && w.measure.Load() {
			last = ops + w.count
		}
		if e := writeAll(w.sock.fd, buf); e != 0 {
			return w.fail("sending", false, e)
		}
		ops++
		out += int64(len(buf))
		w.out.Store(out)
		w.ops.Store(ops)
	}
	if err := unix.Shutdown(w.sock.fd, unix.SHUT_WR); err != nil {
		return fmt.Errorf("connection %d: closing for writing: %w", w.index, err)
	}
	return nil
}

// receiveStream reads to the end of the stream, with reads of the message size
// (as iperf3 does: message size is the size of system calls at both ends).
func receiveStream(w *worker) error {
	buf := make([]byte, w.cfg.Size)
	var in int64
	for {
		n, e := rawRead(w.sock.fd, buf)
		if e != 0 {
			return w.fail("receiving", false, e)
		}
		if n == 0 {
			if w.ordered && !w.stop.Load() {
				return w.fail("receiving", true, 0)
			}
			return nil
		}
		in += int64(n)
		w.in.Store(in)
		w.ops.Store(in / int64(len(buf)))
	}
}

// answerTCP replies to each request until the client closes.
func answerTCP(w *worker) error {
	req, rep := make([]byte, w.cfg.Size), make([]byte, w.cfg.replySize())
	var ops int64
	for {
		ended, e := readAll(w.sock.fd, req)
		if e != 0 {
			return w.fail("receiving a request", false, e)
		}
		if ended {
			return nil
		}
		if e := writeAll(w.sock.fd, rep); e != 0 {
			return w.fail("sending a reply", false, e)
		}
		ops++
		w.count1(ops, len(req), len(rep))
	}
}

// answerUDP replies to each datagram until told to stop. The sequence number in
// its first bytes goes back with the reply.
func answerUDP(w *worker) error {
	req, rep := make([]byte, w.cfg.Size+1), make([]byte, w.cfg.replySize())
	seq := min(8, w.cfg.Size, len(rep))
	var ops int64
	for {
		n, e := rawRead(w.sock.fd, req)
		if w.stop.Load() {
			return nil
		}
		if e == unix.ECONNREFUSED { // an ICMP error of an earlier reply: the client reports it
			continue
		}
		if e != 0 {
			return w.fail("receiving a request", false, e)
		}
		if n != w.cfg.Size {
			continue // not a request of this session
		}
		copy(rep[:seq], req)
		if _, e := rawWrite(w.sock.fd, rep); e != 0 && e != unix.ECONNREFUSED {
			return w.fail("sending a reply", false, e)
		}
		ops++
		w.count1(ops, w.cfg.Size, len(rep))
	}
}

// count1 publishes the counters of request/response loops.
func (w *worker) count1(ops int64, in, out int) {
	w.in.Store(ops * int64(in))
	w.out.Store(ops * int64(out))
	w.ops.Store(ops)
}

// ask is the client's loop of request and response, over a round trip of either
// protocol. In the closed loop one clock reading serves as the end of an
// operation and the start of the next.
func ask(w *worker, trip func(seq uint64) error) error {
	var ops, measured int64
	t0 := w.clock.now()
	scheduled := w.start + w.phase
	for {
		if w.period > 0 {
			if w.end > 0 && scheduled >= w.end {
				return nil
			}
			t0 = scheduled
			if now := w.clock.now(); now < scheduled {
				if !w.sleepUntil(scheduled) {
					return nil
				}
			} else if w.end > 0 && now >= w.end {
				w.backlog(scheduled)
				return nil
			}
			scheduled += w.period
		} else if w.end > 0 && t0 >= w.end {
			return nil
		}
		if w.stop.Load() {
			return nil
		}
		if err := trip(uint64(ops)); err != nil {
			return err
		}
		if w.stop.Load() {
			return nil // the session is being abandoned, so this round trip may be incomplete
		}
		t1 := w.clock.now()
		ops++
		w.count1(ops, w.cfg.replySize(), w.cfg.Size)
		if t0 >= w.begin {
			w.note(t1 - t0)
			w.finished = t1
			if measured++; measured == w.count {
				return nil
			}
		}
		t0 = t1
	}
}

// backlog records the operations that were due in the window and never started: each has waited
// at least until the window's end. To leave them out would be coordinated omission.
func (w *worker) backlog(scheduled int64) {
	for ; scheduled < w.end; scheduled += w.period {
		if scheduled >= w.begin {
			w.note(w.end - scheduled)
			w.unsent++
		}
	}
}

// sleepUntil sleeps in steps of at most 50 ms, so that it sees a stop; then it returns false. It
// uses clock_nanosleep(2), because the wake-up of time.Sleep goes through the poller and another
// thread. An idle processor takes tens of microseconds to wake up, more in a virtual machine,
// which would count as latency, so the last part of the wait polls the clock.
func (w *worker) sleepUntil(t int64) bool {
	const step = int64(50 * time.Millisecond)
	for {
		now := w.clock.now()
		if now >= t {
			if t >= w.begin {
				_ = w.wake.RecordValue(max(1, min(now-t, histogramMax)))
			}
			return true
		}
		if w.stop.Load() {
			return false
		}
		if t-now <= w.spin {
			continue
		}
		ts := unix.NsecToTimespec(min(t-now-w.spin, step))
		rawSleep(&ts)
	}
}

func askTCP(w *worker) error {
	req, rep := make([]byte, w.cfg.Size), make([]byte, w.cfg.replySize())
	fd := w.sock.fd
	return ask(w, func(uint64) error {
		if e := writeAll(fd, req); e != 0 {
			return w.fail("sending a request", false, e)
		}
		if ended, e := readAll(fd, rep); ended || e != 0 {
			return w.fail("waiting for a reply", ended, e)
		}
		return nil
	})
}

// askUDP waits udpRetry for a reply, then sends the request again. A sequence
// number of up to 8 bytes (as many as fit both messages) tells a late reply of
// an earlier attempt from the present one.
func askUDP(w *worker) error {
	req, rep := make([]byte, max(8, w.cfg.Size)), make([]byte, w.cfg.replySize()+1)
	msg := req[:w.cfg.Size]
	seq := min(8, w.cfg.Size, w.cfg.replySize())
	fd := w.sock.fd
	send := func() unix.Errno { _, e := rawWrite(fd, msg); return e }
	if w.cfg.Neighbours > 0 {
		send = w.sendAround(msg)
	}
	return ask(w, func(n uint64) error {
		binary.LittleEndian.PutUint64(req, n)
		for tries := 0; ; tries++ {
			if tries*int(udpRetry/time.Millisecond) >= int(w.cfg.timeout()/time.Millisecond) {
				return w.unanswered(tries)
			}
			if w.stop.Load() {
				return nil
			}
			switch e := send(); {
			case e == unix.ENOBUFS && w.cfg.Neighbours > 0: // it stays without a reply
				w.noRoom++
			case e != 0 && !w.refused(e):
				return w.fail("sending a request", false, e)
			}
			for {
				k, e := rawRead(fd, rep)
				if e == unix.EAGAIN || w.refused(e) {
					w.lost++
					if e != unix.EAGAIN {
						time.Sleep(udpRetry) // it was refused at once: avoid a busy loop
					}
					break
				}
				if e != 0 {
					return w.fail("waiting for a reply", false, e)
				}
				if k == w.cfg.replySize() && string(rep[:seq]) == string(req[:seq]) {
					return nil
				}
				if k == 0 && w.stop.Load() {
					return nil
				}
				w.stale++
			}
		}
	})
}

// refused says that an ICMP error came, of this request or of one before: the server is not there yet, or a
// neighbour does not answer.
func (w *worker) refused(e unix.Errno) bool {
	return e == unix.ECONNREFUSED || e == unix.EHOSTUNREACH && w.cfg.Neighbours > 0
}

// unanswered is the error of a client that gives up.
func (w *worker) unanswered(tries int) error {
	why := "the server died, or the network drops its datagrams"
	if w.noRoom > 0 {
		why = fmt.Sprintf("the client's kernel had no room in its ARP table for %d requests; use fewer neighbours, or a larger arp-limit", w.noRoom)
	}
	return fmt.Errorf("connection %d to %s: %d requests in a row without a reply in %v each: %s", w.index, w.sock.peer, tries, udpRetry, why)
}
