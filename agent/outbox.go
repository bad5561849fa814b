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

// deaf is how long one write to the peer may take. A peer that reads nothing for so long
// is as good as gone.
const deaf = 30 * time.Second

// mostUnread bounds what is kept for a client that asks and does not read the answers, in
// bytes: four of the longest.
const mostUnread = 4 << 20

var (
	errSession = errors.New("agent: the session has ended")
	errDeaf    = fmt.Errorf("agent: the client has read nothing for %s", deaf)
	errUnread  = fmt.Errorf("agent: the client has left %d MiB of answers unread", mostUnread>>20)
)

// outbox is the agent's side of what goes to the client. Output of commands waits for its
// turn, in the goroutine that brings it. All else is queued, goes before output, and
// nobody waits for it: the agent's reading goroutine least of all.
type outbox struct {
	w     io.Writer
	free  func() bool // a short write would not wait
	guard guard
	turn  chan struct{} // has one element while somebody writes
	work  chan struct{} // has one if something is queued
	ended chan struct{} // closed when nothing is to be written any more

	mu     sync.Mutex
	queued []byte // whole frames
	spare  []byte // room for queued
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
	// To have another goroutine write it takes as long as the rest of an answer.
	if !o.outputNow() {
		select {
		case o.work <- struct{}{}:
		default:
		}
	}
	return err
}

// shortWrite is what a pipe that poll(2) says can be written to takes at once, in bytes:
// PIPE_BUF of pipe(7).
const shortWrite = 4096

// outputNow writes what is queued, if nobody waits for that.
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

// writable returns what asks the kernel whether w can be written to.
func writable(w io.Writer) func() bool {
	var raw syscall.RawConn
	if c, ok := w.(syscall.Conn); ok {
		raw, _ = c.SyscallConn() // nil where it is none
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
			_ = o.output(nil) // the end says why
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

// take takes what is queued, unless it is more than most bytes, for who has the turn. What
// is queued from now on lies elsewhere.
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

// write is output for who has the turn, of what was taken.
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

// settle waits until what is queued was written, at most d.
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

// end ends all writing but a write that is under way. The first reason counts.
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

// guard notices a write that does not end. Its timer runs from one of many writes to the
// next look, deaf later, and is not set for each: that wakes Go's runtime, and raw.go says
// what that costs.
type guard struct {
	expired func()

	mu    sync.Mutex
	began time.Time // the write that is under way; zero: none is
	armed bool      // the timer runs
}

// write writes to w. One write is under way at a time.
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
