package netload

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"

	"tare/workload/inside/raw"
	"tare/workload/net/uperf"
)

// listening are the ports of one strand at one end; 0 if it accepts nothing.
type listening struct {
	TCP int `json:"tcp,omitempty"`
	UDP int `json:"udp,omitempty"`
}

// listen opens the sockets that the strand's accepts need, on a local address.
func (s *strand) listen(local raw.Addr) (l listening, o outcome) {
	for _, t := range s.tasks {
		for i := range t.steps {
			st := &t.steps[i]
			if st.op != uperf.Accept {
				continue
			}
			s.line = st.Line
			a := local
			a.SetPort(st.Port)
			kind, fd := uintptr(unix.SOCK_STREAM), &s.tcp
			if st.Protocol == uperf.UDP {
				kind, fd = unix.SOCK_DGRAM, &s.udp
			}
			if *fd >= 0 {
				continue
			}
			var e unix.Errno
			if *fd, e = raw.Socket(a.Family(), kind); e != 0 {
				*fd = -1
				return l, s.fail("listening", e)
			}
			if kind == unix.SOCK_STREAM { // with UDP two strands could get one port
				_ = raw.Option(*fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			}
			s.tune(*fd, st)
			if e = raw.Bind(*fd, &a); e == 0 && kind == unix.SOCK_STREAM {
				e = raw.Listen(*fd, 4096)
			}
			if e == 0 {
				e = raw.Patience(*fd, unix.SO_RCVTIMEO)
			}
			if e == 0 {
				e = raw.Name(*fd, &a)
			}
			if e != 0 {
				return l, s.fail("listening", e)
			}
			if kind == unix.SOCK_STREAM {
				l.TCP = a.Port()
			} else {
				l.UDP = a.Port()
			}
		}
	}
	return l, done
}

// tune sets the options of a socket that must be set before it is connected. The kernel bounds
// buffers by net.core.wmem_max and rmem_max; like uperf, tune ignores that.
func (s *strand) tune(fd int, st *step) {
	if st.Window > 0 {
		_ = raw.Option(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, st.Window)
		_ = raw.Option(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, st.Window)
	}
	if st.NoDelay && st.Protocol == uperf.TCP {
		_ = raw.Option(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
}

// add takes a connected socket over.
func (s *strand) add(fd int, st *step) outcome {
	e := raw.Patience(fd, unix.SO_RCVTIMEO)
	if e == 0 {
		e = raw.Patience(fd, unix.SO_SNDTIMEO)
	}
	if e != 0 {
		raw.Close(fd)
		return s.fail(string(st.op)+": setting SO_RCVTIMEO", e)
	}
	s.conns = append(s.conns, conn{id: st.Conn, fd: fd, udp: st.Protocol == uperf.UDP, nonblock: st.NonBlock})
	return done
}

func (s *strand) room(st *step) bool {
	if len(s.conns) < maxOpen {
		return true
	}
	s.fail(string(st.op)+": more than 1024 connections of one strand are open; disconnect some", 0)
	return false
}

func (s *strand) connect(st *step) outcome {
	if !s.room(st) {
		return failed
	}
	if st.Protocol == uperf.UDP {
		return s.greet(st)
	}
	a := s.peer
	a.SetPort(s.ports.TCP)
	fd, e := raw.Socket(a.Family(), unix.SOCK_STREAM)
	if e != 0 {
		return s.fail("connect", e)
	}
	s.tune(fd, st)
	// connect(2) waits at most SO_SNDTIMEO: a tick, so that the strand sees the end of the run.
	_ = raw.Patience(fd, unix.SO_SNDTIMEO)
	limit := s.clock.now() + int64(s.run.cfg.timeout())
	for {
		switch e = raw.Connect(fd, &a); {
		case e == 0:
			return s.add(fd, st)
		case e != unix.EINPROGRESS:
		case s.blocked():
			raw.Close(fd)
			return over
		case s.now > limit:
			e = unix.ETIMEDOUT
		default:
			// Some kernels do not wait in a further call.
			if _, e = raw.Poll(fd, unix.POLLOUT, int64(tick)); e == 0 {
				continue
			}
		}
		raw.Close(fd)
		return s.fail("connect", e)
	}
}

func (s *strand) accept(st *step) outcome {
	if !s.room(st) {
		return failed
	}
	if st.Protocol == uperf.UDP {
		return s.greeted(st)
	}
	limit := s.clock.now() + int64(s.run.cfg.timeout()+s.run.patience)
	for {
		fd, e := raw.Accept(s.tcp)
		switch {
		case e == 0:
			s.tune(fd, st)
			return s.add(fd, st)
		case e == unix.ECONNABORTED:
		case e != unix.EAGAIN:
			return s.fail("accept", e)
		case s.blocked():
			return over
		case s.now > limit && (s.master || s.ending.Load() || s.task.iterations > 0):
			return s.fail("accept: no connection came", unix.ETIMEDOUT)
		}
	}
}

// A UDP connection is two sockets that are connected to each other. The
// connecting end sends a greeting to the other's known port, and repeats it every tick until
// it gets an answer from the socket that the other end opens for it. uperf sends one greeting
// without an answer, and uses one socket for all.
const (
	greeting     = "tare greets."
	greetingSize = len(greeting) + 4 // with the connection's number
)

func (s *strand) greet(st *step) outcome {
	a := s.peer
	a.SetPort(s.ports.UDP)
	fd, e := raw.Socket(a.Family(), unix.SOCK_DGRAM)
	if e != 0 {
		return s.fail("connect", e)
	}
	s.tune(fd, st)
	_ = raw.Patience(fd, unix.SO_RCVTIMEO)
	s.greets++
	p := s.buf[:greetingSize]
	limit := s.clock.now() + int64(s.run.cfg.timeout())
	known := a
	for {
		copy(p, greeting)
		binary.BigEndian.PutUint32(p[len(greeting):], s.greets)
		// Not connected yet: the answer comes from another port.
		if e = raw.SendTo(fd, p, &known); e != 0 && e != unix.ECONNREFUSED {
			raw.Close(fd)
			return s.fail("connect: greeting", e)
		}
		n, e := raw.RecvFrom(fd, p, &a)
		switch {
		case e == 0 && n == greetingSize && binary.BigEndian.Uint32(p[len(greeting):]) == s.greets:
			if e = raw.Connect(fd, &a); e != 0 {
				raw.Close(fd)
				return s.fail("connect", e)
			}
			return s.add(fd, st)
		case e != 0 && e != unix.EAGAIN && e != unix.ECONNREFUSED:
			raw.Close(fd)
			return s.fail("connect: waiting for the answer", e)
		case s.blocked():
			raw.Close(fd)
			return over
		case s.now > limit:
			raw.Close(fd)
			return s.fail("connect: nobody answered", unix.ETIMEDOUT)
		}
	}
}

func (s *strand) greeted(st *step) outcome {
	limit := s.clock.now() + int64(s.run.cfg.timeout()+s.run.patience)
	var from raw.Addr
	p := s.buf[:greetingSize]
	for {
		n, e := raw.RecvFrom(s.udp, p, &from)
		switch {
		case e == 0 && n == greetingSize && string(p[:len(greeting)]) == greeting && binary.BigEndian.Uint32(p[len(greeting):]) > s.greets:
			s.greets = binary.BigEndian.Uint32(p[len(greeting):])
			return s.answer(st, p, &from)
		case e == 0 || e == unix.ECONNREFUSED: // an earlier greeting again
		case e != unix.EAGAIN:
			return s.fail("accept", e)
		case s.blocked():
			return over
		case s.now > limit && (s.master || s.ending.Load() || s.task.iterations > 0):
			return s.fail("accept: no connection came", unix.ETIMEDOUT)
		}
	}
}

// answer opens the socket of an accepted UDP connection and answers from it.
func (s *strand) answer(st *step, p []byte, to *raw.Addr) outcome {
	fd, e := raw.Socket(to.Family(), unix.SOCK_DGRAM)
	if e != 0 {
		return s.fail("accept", e)
	}
	s.tune(fd, st)
	if e = raw.Connect(fd, to); e == 0 {
		_, e = raw.Send(fd, p, 0)
	}
	if e != 0 {
		raw.Close(fd)
		return s.fail("accept: answering", e)
	}
	return s.add(fd, st)
}

// disconnect closes the connection of that name that was opened last.
func (s *strand) disconnect(st *step) outcome {
	c := s.find(st.Conn)
	if c == nil {
		return s.fail("disconnect: the connection "+connName(st.Conn)+" is not open", 0)
	}
	if c.loose {
		s.linger(c)
	}
	raw.Close(c.fd)
	for i := range s.conns {
		if &s.conns[i] == c {
			s.conns = append(s.conns[:i], s.conns[i+1:]...)
			break
		}
	}
	return done
}

const lingering = time.Second // for the rest of a stream whose messages have random sizes

// linger reads a stream to its end. A close with bytes unread would reset the
// connection under the writer.
func (s *strand) linger(c *conn) {
	_, _, _ = unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(c.fd), unix.SHUT_WR, 0)
	until := s.clock.now() + int64(lingering)
	for s.clock.now() < until && !s.run.stop.Load() {
		n, e := raw.Recv(c.fd, s.buf, 0)
		if e != 0 && e != unix.EAGAIN || e == 0 && n == 0 {
			return
		}
		if e == 0 {
			s.in.Store(s.in.Load() + int64(n))
		}
	}
}

// drainListeners closes connections that came after the last accept: the connecting end may
// have been one iteration ahead.
func (s *strand) drainListeners() {
	for s.tcp >= 0 {
		ready, e := raw.Poll(s.tcp, unix.POLLIN, 0)
		if !ready || e != 0 {
			break
		}
		fd, e := raw.Accept(s.tcp)
		if e != 0 {
			break
		}
		raw.Close(fd)
	}
	for s.udp >= 0 {
		if _, e := raw.Recv(s.udp, s.buf, unix.MSG_DONTWAIT); e != 0 {
			break
		}
	}
}
