package agent

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deaf is how long one write to the peer may take. A peer that reads nothing for so long is
// treated as gone.
const deaf = 30 * time.Second

// mostUnread bounds the answers kept for a client that asks but does not read, in bytes:
// four of the longest answers.
const mostUnread = 4 << 20

var (
	errSession = errors.New("agent: the session has ended")
	errDeaf    = fmt.Errorf("agent: the client has read nothing for %s", deaf)
	errUnread  = fmt.Errorf("agent: the client has left %d MiB of answers unread", mostUnread>>20)
)

// outbox sends frames to the client. Output of commands waits for its turn, in the goroutine
// that brings it. All other frames are queued and go before output. Nobody waits for them,
// above all not the agent's reading goroutine.
type outbox struct {
	w     io.Writer
	free  func() bool // reports whether a short write would not wait
	guard guard
	turn  chan struct{} // has one element while somebody writes
	work  chan struct{} // has one if something is queued
	ended chan struct{} // closed when nothing more will be written

	mu     sync.Mutex
	queued []byte // whole frames
	spare  []byte // spare room for queued
	err    error  // why it ended
}

func newOutbox(w io.Writer) *outbox {
	o := &outbox{w: w, free: writable(w), turn: make(chan struct{}, 1), work: make(chan struct{}, 1), ended: make(chan struct{})}
	o.guard.expired = func() { o.end(errDeaf) }
	return o
}

// say queues a frame. An error means that its body is too long.
func (o *outbox) say(t frameType, id uint32, body any) error {
	o.mu.Lock()
	b, err := appendBody(o.queued, t, id, body)
	full := len(b) > mostUnread
	if err == nil && !full {
		o.queued = b
	}
	o.mu.Unlock()
	if full {
		o.end(errUnread)
	}
	// Passing it to another goroutine takes as long as the rest of an answer.
	if !o.outputNow() {
		select {
		case o.work <- struct{}{}:
		default:
		}
	}
	return err
}

// shortWrite is how much a pipe accepts at once if poll(2) reports it writable, in bytes:
// PIPE_BUF of pipe(7).
const shortWrite = 4096

// outputNow writes what is queued, if it can do so without waiting.
func (o *outbox) outputNow() bool {
	select {
	case o.turn <- struct{}{}:
	default:
		return false
	}
	defer func() { <-o.turn }()
	if !o.free() {
		return false
	}
	queued, ok := o.take(shortWrite)
	return ok && o.write(queued, nil) == nil
}

// writable returns a function that asks the kernel whether w can be written to.
func writable(w io.Writer) func() bool {
	var raw syscall.RawConn
	if c, ok := w.(syscall.Conn); ok {
		raw, _ = c.SyscallConn() // nil if w has no descriptor
	}
	return func() (can bool) {
		if raw == nil {
			return false
		}
		err := raw.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}} //nolint:gosec // descriptors are small
			n, err := unix.Poll(fds, 0)
			can = err == nil && n == 1 && fds[0].Revents == unix.POLLOUT
		})
		return can && err == nil
	}
}

// run writes what is queued, until the end.
func (o *outbox) run() {
	for {
		select {
		case <-o.work:
			_ = o.output(nil) // o.err says why it ended
		case <-o.ended:
			return
		}
	}
}

// output writes what is queued and then a frame. It waits for its turn.
func (o *outbox) output(frame []byte) error {
	select {
	case o.turn <- struct{}{}:
	case <-o.ended:
		return o.why()
	}
	defer func() { <-o.turn }()
	queued, _ := o.take(mostUnread)
	return o.write(queued, frame)
}

// take takes what is queued, unless it is more than most bytes. The caller has the turn to
// write. What is queued from now on goes into another buffer.
func (o *outbox) take(most int) (queued []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queued) > most {
		return nil, false
	}
	queued = o.queued
	o.queued, o.spare = o.spare[:0], nil
	return queued, true
}

// write writes what was taken from the queue, then frame. The caller has the turn to write.
func (o *outbox) write(taken, frame []byte) error {
	for _, b := range [][]byte{taken, frame} {
		if len(b) == 0 {
			continue
		}
		if err := o.guard.write(o.w, b); err != nil {
			o.end(fmt.Errorf("agent: cannot write to the client: %w", err))
			return err
		}
	}
	if cap(taken) <= maxSmall {
		o.spare = taken
	}
	return nil
}

// settle waits until the queue is written, at most d.
func (o *outbox) settle(d time.Duration) {
	written := make(chan struct{})
	go func() {
		_ = o.output(nil)
		close(written)
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-written:
	case <-t.C:
	}
}

// end ends all writing, except a write that is in progress. The first reason counts.
func (o *outbox) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		close(o.ended)
	}
}

func (o *outbox) why() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// guard notices a write that does not end. Its timer starts at a write and looks again after
// deaf. It is not set for each write, because that wakes Go's runtime; raw.go says what
// that costs.
type guard struct {
	expired func()

	mu    sync.Mutex
	began time.Time // start of the write in progress; zero: none
	armed bool      // the timer runs
}

// write writes to w. Only one write is in progress at a time.
func (g *guard) write(w io.Writer, p []byte) error {
	g.mu.Lock()
	g.began = time.Now()
	if !g.armed {
		g.armed = true
		time.AfterFunc(deaf, g.look)
	}
	g.mu.Unlock()
	_, err := w.Write(p)
	g.mu.Lock()
	g.began = time.Time{}
	g.mu.Unlock()
	return err
}

func (g *guard) look() {
	g.mu.Lock()
	if g.armed = !g.began.IsZero(); !g.armed {
		g.mu.Unlock()
		return
	}
	left := deaf - time.Since(g.began)
	g.mu.Unlock()
	if left > 0 {
		time.AfterFunc(left, g.look)
		return
	}
	g.expired()
}
