package netload

import (
	"golang.org/x/sys/unix"

	"tare/workload/inside/raw"
	"tare/workload/net/uperf"
)

// wait polls for a step's timeout, as uperf does before each read.
func (s *strand) wait(c *conn, st *step, events int16) outcome {
	until := s.clock.now() + int64(st.Timeout)
	for {
		ready, e := raw.Poll(c.fd, events, max(0, min(int64(tick), until-s.clock.now())))
		switch {
		case e != 0:
			return s.fail(string(st.op)+": waiting", e)
		case ready:
			return done
		case s.blocked():
			return over
		case s.now >= until:
			return s.fail(string(st.op)+": nothing within its timeout", unix.ETIMEDOUT)
		}
	}
}

// read reads size bytes of a stream, or once where the size is random.
func (s *strand) read(c *conn, st *step, size int64) outcome {
	for left := size; left > 0; {
		if st.Timeout > 0 {
			if o := s.wait(c, st, unix.POLLIN); o != done {
				return o
			}
		}
		p := s.buf[:min(left, int64(len(s.buf)))]
		var n int
		var e unix.Errno
		if st.op == uperf.Recv {
			n, e = raw.Recv(c.fd, p, 0)
		} else {
			n, e = raw.ReadOnce(c.fd, p)
		}
		switch {
		case e == unix.EAGAIN:
			if s.blocked() {
				return over
			}
			continue
		case e != 0:
			return s.fail(string(st.op), e)
		case n == 0 && c.loose:
			return done // the writer has sent all, in fewer pieces
		case n == 0:
			return s.fail(string(st.op)+": the other end closed the connection", 0)
		}
		left -= int64(n)
		c.received += int64(n)
		s.in.Store(s.in.Load() + int64(n))
		if st.Size.Random() {
			return done
		}
	}
	return done
}

// write writes size bytes to a stream.
func (s *strand) write(c *conn, st *step, size int64) outcome {
	for left := size; left > 0; {
		p := s.buf[:min(left, int64(len(s.buf)))]
		var n int
		var e unix.Errno
		if st.op == uperf.Send {
			n, e = raw.Send(c.fd, p, 0)
		} else {
			n, e = raw.WriteOnce(c.fd, p)
		}
		switch {
		case e == unix.EAGAIN:
			if s.blocked() {
				return over
			}
			continue
		case e != 0:
			return s.fail(string(st.op), e)
		}
		left -= int64(n)
		c.sent += int64(n)
		s.out.Store(s.out.Load() + int64(n))
	}
	return done
}

// sendDatagram sends one datagram. The kernel reports the failure of an earlier one
// (ECONNREFUSED) at the next, which is not a failure of this one.
func (s *strand) sendDatagram(c *conn, st *step, size int) outcome {
	flags, refused := 0, false
	if st.NonBlock || c.nonblock {
		flags = unix.MSG_DONTWAIT
	}
	for {
		_, e := raw.Send(c.fd, s.buf[:size], flags)
		switch {
		case e == 0:
			s.out.Store(s.out.Load() + int64(size))
			return done
		case e == unix.ECONNREFUSED && !refused:
			refused = true
		case e == unix.EAGAIN && flags != 0 && st.Timeout > 0:
			if o := s.wait(c, st, unix.POLLOUT); o != done {
				return o
			}
			flags = 0
		case e == unix.EAGAIN && flags == 0:
			if s.blocked() {
				return over
			}
		default:
			return s.fail(string(st.op), e)
		}
	}
}

// receiveDatagram receives one datagram. A lost one never comes: the master fails after the
// workload's timeout, and the peer gives up when the master has ended the transaction.
func (s *strand) receiveDatagram(c *conn, st *step) outcome {
	flags, refused := 0, false
	if st.NonBlock || c.nonblock {
		flags = unix.MSG_DONTWAIT
	}
	limit := s.now + int64(s.run.cfg.timeout())*3/4 // before the whole session is abandoned
	for {
		if st.Timeout > 0 && flags == 0 {
			if o := s.wait(c, st, unix.POLLIN); o != done {
				return o
			}
		}
		n, e := raw.Recv(c.fd, s.buf, flags)
		switch {
		case e == 0:
			s.in.Store(s.in.Load() + int64(n))
			return done
		case e == unix.ECONNREFUSED && !refused:
			refused = true
		case e == unix.EAGAIN && flags != 0:
			if st.Timeout == 0 {
				return s.fail(string(st.op)+": nothing there, and non_blocking", e)
			}
			flags = 0
		case e == unix.EAGAIN:
			switch {
			case s.blocked():
				return over
			case !s.master && s.ending.Load():
				s.lost.Add(1)
				return done
			case s.master && s.now > limit:
				return s.fail(string(st.op)+": no datagram came: UDP loses some; use a timeout and canfail", unix.ETIMEDOUT)
			}
		default:
			return s.fail(string(st.op), e)
		}
	}
}

// settle brings the streams of both ends to the same position after a transaction that was cut.
// It reads what the peer has sent and nobody has read, and counts it only in the totals. sent has
// the peer's counts, by connection.
func (s *strand) settle(sent []int64) error {
	s.drainListeners()
	if len(sent) != len(s.conns) { // a connection failed at one end, with canfail
		return nil
	}
	until := s.clock.now() + int64(handshake)
	for i := range s.conns {
		c := &s.conns[i]
		for !c.udp && c.received < sent[i] {
			n, e := raw.Recv(c.fd, s.buf[:min(int64(len(s.buf)), sent[i]-c.received)], 0)
			switch {
			case e == unix.EAGAIN && !s.run.stop.Load() && s.clock.now() < until:
			case e != 0 || n == 0:
				s.fail("reading what was under way at the transaction's end", e)
				return s.err()
			default:
				c.received += int64(n)
				s.in.Store(s.in.Load() + int64(n))
			}
		}
		for c.udp {
			if n, e := raw.Recv(c.fd, s.buf, unix.MSG_DONTWAIT); e != 0 && e != unix.ECONNREFUSED || n < 0 {
				break
			}
		}
	}
	return nil
}

// counts returns the bytes sent, by connection.
func (s *strand) counts() []int64 {
	out := make([]int64, len(s.conns))
	for i := range s.conns {
		out[i] = s.conns[i].sent
	}
	return out
}
