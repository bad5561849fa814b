// Package probe asks a server in a sandbox whether it answers yet, until it does,
// and says when that was to a fraction of a millisecond.
//
// The data path: 1. a socket from the bridge (Socket) begins to connect; 2. a
// refusal is the next step's business, silence is joined by another attempt,
// a connection gets the question; 3. what comes back is judged by answer.go;
// 4. the time of the first good answer is that of the poll(2) that brought its
// last byte.
//
// One thread does it all, by non-blocking sockets and ppoll(2). Rejected: a
// goroutine an attempt on Go's network poller, which on a busy machine hears of
// things up to 20 ms late (package spawn has the measurement); connecting anew
// for each step, since making a socket is most of an attempt's cost: one that was
// refused can connect again.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tare/workload"
)

const (
	// A step between two attempts is a 500th of the time so far, within these
	// bounds: what a server that takes long to come loses in resolution it gains in
	// undisturbed processors, of which a step takes about 30 us.
	minStep = 200 * time.Microsecond
	maxStep = 800 * time.Microsecond

	// Where nothing answers at all, as before gVisor's network stack is there, what
	// was sent is lost, and the kernel sends it again only a second later
	// (RFC 6298, section 2). So another attempt is made beside it; an answer that is only late
	// still finds its own.
	silence    = 2 * time.Millisecond
	maxPending = 16

	// wrongFor is how long a server may give one wrong answer, such as 404, until it
	// is taken at its word. Many refuse while they load.
	wrongFor = 5 * time.Second
)

// Socket makes a TCP socket (IPv4, non-blocking) from where the server is reached.
type Socket func() (fd int, err error)

// Wait asks the server at addr until it answers as p wants, and returns when
// that was. When ctx ends, or the server keeps giving a wrong answer, the error
// says what was heard last. Its resolution is a step of 0.2 to 0.8 ms, and
// 2 ms where the server's network is silent.
func Wait(ctx context.Context, socket Socket, addr netip.Addr, p workload.Probe) (time.Time, error) {
	return ask(ctx, socket, addr, p, wrongFor)
}

func ask(ctx context.Context, socket Socket, addr netip.Addr, p workload.Probe, patience time.Duration) (time.Time, error) {
	if !addr.Is4() || p.Port < 1 || p.Port > 65535 {
		return time.Time{}, fmt.Errorf("the probe's address %s:%d is not valid", addr, p.Port)
	}
	w := &waiter{
		socket: socket, want: p, ask: question(addr, p), begun: time.Now(), patience: patience,
		to: &unix.SockaddrInet4{Port: p.Port, Addr: addr.As4()},
	}
	defer w.close()
	at, err := w.wait(ctx)
	if err != nil {
		return at, fmt.Errorf("port %d: %w", p.Port, err)
	}
	return at, nil
}

// waiter is one Wait.
type waiter struct {
	socket   Socket
	want     workload.Probe
	ask      []byte
	to       *unix.SockaddrInet4
	begun    time.Time
	patience time.Duration // with a wrong answer
	attempts []*attempt    // connecting or connected, the oldest first
	idle     int           // a socket that was refused and can connect again; 0 for none
	heard    error         // the outcome of the last attempt that had one
	answered error         // the last wrong answer
	last     time.Time     // when that was
	wrong    time.Time     // since when it is the same wrong answer; zero if it is none
	fds      []unix.PollFd
	buf      []byte
}

// attempt is one connection.
type attempt struct {
	fd        int
	connected bool
	got       answer
}

// wait is the loop: begin what is due, sleep until something happens.
func (w *waiter) wait(ctx context.Context) (time.Time, error) {
	due := w.begun
	for {
		if ctx.Err() != nil {
			return time.Time{}, w.gaveUp()
		}
		if !w.wrong.IsZero() && time.Since(w.wrong) > w.patience {
			return time.Time{}, fmt.Errorf("%w, for %s now", w.heard, w.patience)
		}
		sleep := maxWait
		if !w.taken() {
			now := time.Now()
			if !now.Before(due) {
				if err := w.begin(); err != nil {
					return time.Time{}, err
				}
				due = now.Add(silence)
			}
			if len(w.attempts) == 0 {
				due = w.last.Add(w.step(w.last))
			}
			sleep = min(time.Until(due), maxWait)
		}
		at, good, err := w.poll(sleep)
		if err != nil || good {
			return at, err
		}
	}
}

// maxWait is how long the loop sleeps at most, so that it sees ctx.
const maxWait = 20 * time.Millisecond

// step is the time between an attempt that came to nothing and the next.
func (w *waiter) step(now time.Time) time.Duration {
	if !w.wrong.IsZero() {
		return silence // it is there, and has work to do for each wrong answer
	}
	return min(max(now.Sub(w.begun)/500, minStep), maxStep)
}

// taken tells whether the server has taken a connection. It will answer when it
// can; asking it twice would only keep it.
func (w *waiter) taken() bool { return len(w.attempts) == 1 && w.attempts[0].connected }

// begin makes one more attempt; the oldest goes when there are too many.
func (w *waiter) begin() error {
	if len(w.attempts) == maxPending {
		w.drop(0)
	}
	fd := w.idle
	w.idle = 0
	if fd == 0 {
		var err error
		if fd, err = w.socket(); err != nil {
			return err
		}
	}
	a := &attempt{fd: fd}
	w.attempts = append(w.attempts, a)
	w.connect(a)
	return nil
}

// connect goes on with connecting. connect(2) on a socket whose connecting has
// ended says how: nil or EISCONN for a connection, otherwise why not, and after
// that the socket is as new.
func (w *waiter) connect(a *attempt) {
	switch err := unix.Connect(a.fd, w.to); {
	case err == nil || errors.Is(err, unix.EISCONN):
		w.connected(a)
	case errors.Is(err, unix.EINPROGRESS), errors.Is(err, unix.EALREADY), errors.Is(err, unix.EINTR):
	default:
		w.hear(fmt.Errorf("connecting: %w", err), false)
		w.remove(a)
		if w.idle == 0 && errors.Is(err, unix.ECONNREFUSED) {
			w.idle = a.fd
			return
		}
		_ = unix.Close(a.fd)
	}
}

// connected asks the question, and leaves the other attempts: one is enough.
func (w *waiter) connected(a *attempt) {
	a.connected = true
	for len(w.attempts) > 1 {
		i := 0
		if w.attempts[i] == a {
			i = 1
		}
		w.drop(i)
	}
	if len(w.ask) == 0 {
		return
	}
	// A question is shorter than any send buffer, so it is taken whole.
	if _, err := unix.Write(a.fd, w.ask); err != nil {
		w.end(a, fmt.Errorf("asking: %w", err), false)
	}
}

// poll sleeps until an attempt goes on, d at most. It returns the time at which
// it woke, and whether the answer is there.
func (w *waiter) poll(d time.Duration) (at time.Time, done bool, err error) {
	if w.taken() && len(w.ask) == 0 && w.want.Want == "" {
		return time.Now(), true, nil // that it connects is all
	}
	w.fds = w.fds[:0]
	for _, a := range w.attempts {
		f := unix.PollFd{Fd: int32(a.fd), Events: unix.POLLOUT} //nolint:gosec // a descriptor is small
		if a.connected {
			f.Events = unix.POLLIN
		}
		w.fds = append(w.fds, f)
	}
	err = poll(w.fds, d)
	at = time.Now()
	if err != nil && !errors.Is(err, unix.EINTR) {
		return at, false, fmt.Errorf("waiting: %w", err)
	}
	if len(w.fds) == 0 {
		return at, false, nil
	}
	for i, a := range slices.Clone(w.attempts) {
		switch {
		case w.fds[i].Revents == 0:
		case !a.connected:
			w.connect(a)
			if a.connected {
				return at, false, nil // the others are gone
			}
		default:
			if w.read(a) {
				return at, true, nil
			}
		}
	}
	return at, false, nil
}

// read takes what has come and judges it.
func (w *waiter) read(a *attempt) (good bool) {
	if w.buf == nil {
		w.buf = make([]byte, 64<<10)
	}
	n, err := unix.Read(a.fd, w.buf)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return false
	case err != nil:
		w.end(a, fmt.Errorf("reading the answer: %w", err), false)
		return false
	}
	ok, err := a.got.add(w.want, w.buf[:n])
	if err != nil {
		w.end(a, err, true)
	}
	return ok
}

// end closes an attempt that came to nothing.
func (w *waiter) end(a *attempt, why error, wrong bool) {
	w.hear(why, wrong)
	w.remove(a)
	_ = unix.Close(a.fd)
}

// hear notes the outcome of an attempt; wrong is one that the server chose.
func (w *waiter) hear(what error, wrong bool) {
	if wrong {
		w.answered = what
	}
	switch {
	case !wrong:
		w.wrong = time.Time{}
	case w.wrong.IsZero() || w.heard == nil || w.heard.Error() != what.Error():
		w.wrong = time.Now()
	}
	w.heard, w.last = what, time.Now()
}

func (w *waiter) remove(a *attempt) {
	for i := range w.attempts {
		if w.attempts[i] == a {
			w.attempts = slices.Delete(w.attempts, i, i+1)
			return
		}
	}
}

func (w *waiter) drop(i int) {
	_ = unix.Close(w.attempts[i].fd)
	w.attempts = slices.Delete(w.attempts, i, i+1)
}

func (w *waiter) close() {
	for len(w.attempts) > 0 {
		w.drop(0)
	}
	if w.idle != 0 {
		_ = unix.Close(w.idle)
	}
}

var errSilent = errors.New("nothing answered, and no connection was refused")

// gaveUp says what was heard of the server.
func (w *waiter) gaveUp() error {
	waited := time.Since(w.begun).Round(10 * time.Millisecond)
	for _, a := range w.attempts {
		if a.connected && w.wrong.IsZero() {
			return fmt.Errorf("no good answer within %s: it took the connection and said %s", waited, a.got.soFar())
		}
	}
	heard := w.heard
	switch {
	case heard == nil:
		heard = errSilent
	case w.answered != nil && w.wrong.IsZero():
		heard = fmt.Errorf("%w, and before that: %w", heard, w.answered)
	}
	return fmt.Errorf("no good answer within %s, last: %w", waited, heard)
}
