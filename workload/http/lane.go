package httpload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"tare/workload/inside"
	"tare/workload/inside/raw"
)

// lane is a thread of a load, with connections of its own. Like a thread of wrk it waits for all of them at once, with epoll(7). It
// uses system calls of the package raw and allocates nothing for a request: the garbage collector is off. With TLS it tells the Go scheduler when it
// waits, because handshakes are made by goroutines, and the collector is on.
type lane struct {
	*open
	stop  *atomic.Bool
	conns []conn
	idle  [][]int32 // connections without a request, by place; the last is used first
	down  []int32   // those that are not open
	turn  []int     // closed loop: of the requests of each place

	epoll, bell int // the bell rings when a handshake has ended
	shaken      chan shook
	shaking     sync.WaitGroup
	events      []unix.EpollEvent
	buf         []byte

	next   uint64 // open loop: number of the next request
	step   uint64 // the lanes take the numbers in turn
	spin   int64  // open loop: the end of each wait, spent looking at the clock
	slept  bool   // for the next request
	flying int    // requests without their answer
	looked int64  // when timeouts were looked for
	tally  *tally
}

// conn is a connection, or room for one.
type conn struct {
	fd     int // -1: it is not open
	gen    int32
	secure *tls.Conn // nil: plain HTTP
	place  int
	used   bool // an answer has come over it
	busy   bool // with a request
	up     bool
	answer answer

	request   *request
	number    uint64
	due, sent int64 // nanoseconds since the start; due: open loop
}

// shook is the end of a handshake.
type shook struct {
	i    int
	conn *tls.Conn
	err  error
}

func (o *open) newLane(index, lanes int, stop *atomic.Bool) (*lane, error) {
	l := &lane{open: o, stop: stop, next: uint64(index), step: uint64(lanes), //nolint:gosec // small
		idle: make([][]int32, len(o.places)), turn: make([]int, len(o.places)), shaken: make(chan shook, o.connections),
		events: make([]unix.EpollEvent, 256), buf: make([]byte, 64<<10), tally: o.newTally()}
	for k := index; k < o.connections; k += lanes {
		l.down = append(l.down, int32(len(l.conns))) //nolint:gosec // small
		l.conns = append(l.conns, conn{fd: -1, place: k % len(o.places)})
	}
	for i := range l.idle {
		l.idle[i] = make([]int32, 0, len(l.conns))
		l.turn[i] = index
	}
	if o.rate > 0 {
		l.spin = raw.Spin(mostSpin, o.rate)
	}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot wait for answers: epoll: %w", err)
	}
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		if e := raw.Watch(l.epoll, l.bell, -1, 0); e != 0 {
			err = e
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot wait for handshakes: eventfd: %w", err)
	}
	return l, nil
}

// mostSpin is longer than what most processors take to wake up.
const mostSpin = 50 * time.Microsecond

func (l *lane) now() int64 { return int64(time.Since(l.start)) }

// run loads until the time is over and all answers have come.
func (l *lane) run(ctx context.Context) error {
	raw.Pin()
	before, from := inside.ThreadBusy(), time.Now()
	defer func() { l.tally.busy, l.tally.lasted = inside.ThreadBusy()-before, time.Since(from) }()
	if l.rate == 0 {
		l.down = l.down[:0]
		for i := range l.conns {
			if err := l.again(ctx, i, l.now()); err != nil {
				return err
			}
		}
	}
	for !l.stop.Load() {
		gap, err := l.send(ctx)
		if err != nil {
			return err
		}
		now := l.now()
		if l.flying == 0 && (l.next >= l.total || now > l.until) {
			return nil
		}
		if now-l.looked > int64(raw.Tick) {
			if err := l.timeouts(now); err != nil {
				return err
			}
		}
		n, err := l.wait(gap)
		if err != nil {
			return err
		}
		for _, ev := range l.events[:n] {
			if err := l.event(ctx, ev); err != nil {
				return err
			}
			if _, err := l.send(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// close closes all connections, after run. Handshakes end by themselves, or with their context.
func (l *lane) close() {
	l.shaking.Wait()
	for len(l.shaken) > 0 {
		if h := <-l.shaken; h.conn != nil {
			_ = h.conn.Close()
		}
	}
	for i := range l.conns {
		l.drop(&l.conns[i])
	}
	raw.Close(l.bell)
	raw.Close(l.epoll)
}

// send sends what is due in the open loop. It returns the time until the next request is due.
func (l *lane) send(ctx context.Context) (gap int64, err error) {
	for l.next < l.total {
		due, now := l.due(l.next), l.now()
		if due > now {
			l.slept = true
			return due - now, nil
		}
		if now > l.until {
			break // requests that are not sent by the end count as unsent
		}
		if l.slept {
			l.slept = false
			note(l.tally.wake, time.Duration(now-due))
		}
		r := &l.requests[l.next%uint64(len(l.requests))]
		i := l.pick(r.place)
		if i < 0 {
			break
		}
		number := l.next
		l.next += l.step
		if err := l.begin(ctx, i, r, number, due, now); err != nil {
			return 0, err
		}
	}
	return int64(raw.Tick), nil
}

// pick returns a connection to a place that has nothing to do: the last used, else one that is not open, else the one to another place
// that was used longest ago; -1 if none is free.
func (l *lane) pick(place int) int {
	if k := len(l.idle[place]); k > 0 {
		i := l.idle[place][k-1]
		l.idle[place] = l.idle[place][:k-1]
		return int(i)
	}
	if k := len(l.down); k > 0 {
		i := int(l.down[k-1])
		l.down = l.down[:k-1]
		l.conns[i].place = place
		return i
	}
	for p := range l.idle {
		if len(l.idle[p]) > 0 {
			i := int(l.idle[p][0])
			l.idle[p] = slices.Delete(l.idle[p], 0, 1)
			l.drop(&l.conns[i])
			l.conns[i].place = place
			return i
		}
	}
	return -1
}

// again begins the next request of a connection in the closed loop.
func (l *lane) again(ctx context.Context, i int, now int64) error {
	if now > l.until {
		l.drop(&l.conns[i])
		return nil
	}
	p := l.conns[i].place
	all := l.places[p].requests
	r := &l.requests[all[l.turn[p]%len(all)]]
	l.turn[p]++
	l.next++
	return l.begin(ctx, i, r, l.next-1, now, now)
}

func (l *lane) begin(ctx context.Context, i int, r *request, number uint64, due, now int64) error {
	c := &l.conns[i]
	c.request, c.number, c.due, c.sent, c.busy = r, number, due, now, true
	c.answer.reset()
	l.flying++
	if c.up {
		return l.write(ctx, i)
	}
	return l.connect(ctx, i)
}

// connect opens a connection, over which the request will go.
func (l *lane) connect(ctx context.Context, i int) error {
	c := &l.conns[i]
	c.gen++
	c.used, c.up = false, false
	p := &l.places[c.place]
	if p.secure {
		l.shaking.Go(func() { l.shake(ctx, i, p.address) })
		return nil
	}
	var e unix.Errno
	if c.fd, e = raw.Socket(p.peer.Family(), unix.SOCK_STREAM|unix.SOCK_NONBLOCK); e != 0 {
		c.fd = -1
		return l.wrong(c, fmt.Errorf("cannot open a connection: %w", e))
	}
	_ = raw.Option(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if e = raw.Connect(c.fd, &p.peer); e != 0 && e != unix.EINPROGRESS {
		return l.wrong(c, fmt.Errorf("the server does not accept a connection: %w", e))
	}
	if e := raw.Watch(l.epoll, c.fd, int32(i), c.gen); e != 0 { //nolint:gosec // small
		return l.wrong(c, fmt.Errorf("cannot wait for its answer: %w", e))
	}
	return nil
}

// shake opens a connection with TLS, in a goroutine.
func (l *lane) shake(ctx context.Context, i int, address string) {
	h := shook{i: i}
	conn, took, err := l.target.dial(ctx, address)
	if h.err = err; err == nil {
		l.handshakes.note(conn, took)
		h.conn, _ = conn.(*tls.Conn)
		if h.err = h.conn.NetConn().(*link).take(); h.err != nil { //nolint:forcetypeassert // dial makes it
			_ = h.conn.Close()
			h.conn = nil
		}
	}
	l.shaken <- h
	_, _ = unix.Write(l.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// rung takes the connections whose handshakes have ended.
func (l *lane) rung(ctx context.Context) error {
	var count [8]byte
	_, _ = unix.Read(l.bell, count[:])
	for len(l.shaken) > 0 {
		h := <-l.shaken
		c := &l.conns[h.i]
		if h.err != nil {
			return l.wrong(c, h.err)
		}
		c.secure, c.fd, c.up = h.conn, h.conn.NetConn().(*link).fd, true //nolint:forcetypeassert // dial makes it
		if e := raw.Watch(l.epoll, c.fd, int32(h.i), c.gen); e != 0 {    //nolint:gosec // small
			return l.wrong(c, fmt.Errorf("cannot wait for its answer: %w", e))
		}
		if err := l.write(ctx, h.i); err != nil {
			return err
		}
	}
	return nil
}

// drop closes a connection. Later events of it are not its successor's.
func (l *lane) drop(c *conn) {
	switch {
	case c.secure != nil:
		_ = c.secure.Close()
	case c.fd >= 0:
		raw.Close(c.fd)
	}
	c.fd, c.secure, c.up = -1, nil, false
	c.gen++
}

func (l *lane) write(ctx context.Context, i int) error {
	c := &l.conns[i]
	var err error
	if c.secure != nil {
		_, err = c.secure.Write(c.request.bytes)
	} else {
		err = sendAll(c.fd, c.request.bytes, l.target.timeout)
	}
	if err != nil {
		return l.broken(ctx, i, err)
	}
	return nil
}

// wait waits for events, at most for so many nanoseconds, and in the open loop not to their end.
func (l *lane) wait(gap int64) (n int, err error) {
	ms := 0
	if gap >= int64(raw.Tick) {
		ms = int(raw.Tick.Milliseconds())
	}
	var e unix.Errno
	switch {
	case l.target.tls == nil && ms == 0 && gap > l.spin:
		_, e = raw.Poll(l.epoll, unix.POLLIN, gap-l.spin)
	case l.target.tls != nil && ms == 0 && gap > l.spin:
		ts := unix.NsecToTimespec(gap - l.spin)
		_, err = unix.Ppoll([]unix.PollFd{{Fd: int32(l.epoll), Events: unix.POLLIN}}, &ts, nil) //nolint:gosec // a descriptor
	case l.target.tls != nil && ms > 0:
		n, err = unix.EpollWait(l.epoll, l.events, ms)
		if n > 0 {
			return n, nil
		}
		ms = 0
	}
	if err == nil || errors.Is(err, unix.EINTR) {
		err = nil
		if e == 0 {
			n, e = raw.Events(l.epoll, l.events, ms)
		}
	}
	if e != 0 {
		err = e
	}
	if err != nil {
		return 0, fmt.Errorf("waiting for answers: %w", err)
	}
	return n, nil
}

func (l *lane) event(ctx context.Context, ev unix.EpollEvent) error {
	if ev.Fd < 0 {
		return l.rung(ctx)
	}
	i := int(ev.Fd)
	c := &l.conns[i]
	if ev.Pad != c.gen || c.fd < 0 {
		return nil // of a connection that was closed
	}
	if c.up {
		return l.read(ctx, i, ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
	}
	switch e := raw.Connect(c.fd, &l.places[c.place].peer); e {
	case unix.EINPROGRESS:
		return nil
	case 0:
		c.up = true
		return l.write(ctx, i)
	default:
		return l.wrong(c, fmt.Errorf("the server does not accept a connection: %w", e))
	}
}

// read takes what has come over a connection. ended says that the server sends no more.
func (l *lane) read(ctx context.Context, i int, ended bool) error {
	c := &l.conns[i]
	for {
		n, err := 0, error(nil)
		if c.secure != nil {
			n, err = c.secure.Read(l.buf)
		} else {
			n, err = receive(c.fd, l.buf)
		}
		switch {
		case n > 0 && !c.busy:
			l.gone(i) // it was not asked for: perhaps a 408, before the server closes the connection
			return nil
		case n > 0:
			used, whole, wrong := c.answer.feed(l.buf[:n])
			if wrong == nil && whole && used < n {
				wrong = fmt.Errorf("%d B follow it", n-used)
			}
			if wrong != nil {
				return l.wrong(c, wrong)
			}
			if whole {
				c.answer.close = c.answer.close || ended
				return l.complete(ctx, i)
			}
		case errors.Is(err, errWait):
			return nil
		case !c.busy:
			l.gone(i)
			return nil
		case errors.Is(err, io.EOF) && c.answer.end():
			return l.complete(ctx, i)
		default:
			return l.broken(ctx, i, err)
		}
		if n < len(l.buf) && c.secure == nil && !ended {
			return nil // there is no more, and what comes is another event
		}
	}
}

// gone closes a connection that has nothing to do.
func (l *lane) gone(i int) {
	c := &l.conns[i]
	l.drop(c)
	idle := &l.idle[c.place]
	if k := slices.Index(*idle, int32(i)); k >= 0 { //nolint:gosec // small
		*idle = slices.Delete(*idle, k, k+1)
		l.down = append(l.down, int32(i)) //nolint:gosec // small
	}
}

// broken sends a request again, over a new connection, if the server may have closed the old one before it saw the request (RFC 9112, 9.3.1).
func (l *lane) broken(ctx context.Context, i int, why error) error {
	c := &l.conns[i]
	if c.used && !c.answer.begun() {
		l.drop(c)
		return l.connect(ctx, i)
	}
	if !c.answer.begun() {
		return l.wrong(c, fmt.Errorf("the server closed the connection without an answer: %w", why))
	}
	if errors.Is(why, io.EOF) {
		why = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("answer %d is wrong: %w", c.number+1, l.target.judge(c.request.url, http.StatusOK, c.answer.length, why))
}

// complete counts an answer.
func (l *lane) complete(ctx context.Context, i int) error {
	c := &l.conns[i]
	now := l.now()
	l.flying--
	c.busy, c.used = false, true
	if err := l.tally.add(c, now); err != nil {
		return err
	}
	if c.answer.close || !l.keepAlive {
		l.drop(c)
	}
	switch {
	case l.rate == 0:
		return l.again(ctx, i, now)
	case c.up:
		l.idle[c.place] = append(l.idle[c.place], int32(i)) //nolint:gosec // small
	default:
		l.down = append(l.down, int32(i)) //nolint:gosec // small
	}
	return nil
}

// timeouts looks for answers that take too long.
func (l *lane) timeouts(now int64) error {
	l.looked = now
	for i := range l.conns {
		if c := &l.conns[i]; c.busy && now-c.sent > int64(l.target.timeout) {
			return fmt.Errorf("answer %d, to GET %s, took longer than the timeout %s, and %d B of its body have arrived; write a lower rate or fewer connections, or raise timeout", c.number+1, c.request.url, l.target.timeout, c.answer.length)
		}
	}
	return nil
}

func (l *lane) wrong(c *conn, why error) error {
	return fmt.Errorf("answer %d is wrong: GET %s: %w", c.number+1, c.request.url, why)
}
