package netload

import (
	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"tare/workload/net/uperf"
)

// once runs the flowops of one iteration.
func (s *strand) once(t *task) outcome {
	for i := range t.steps {
		st := &t.steps[i]
		s.line = st.Line
		var h *hdrhistogram.Histogram
		if s.measured && s.byOp != nil {
			h = s.byOp[st.Op]
		}
		for k := range st.count {
			if k > 0 && s.ended() {
				return over
			}
			begin := s.now
			o := s.do(st, k)
			s.now = s.clock.now()
			if o == failed && st.CanFail && !s.run.stop.Load() {
				s.errors.Add(1)
				if s.firstError == "" {
					s.firstError = s.err().Error()
				}
				o = done
			} else if o == done {
				s.ops.Store(s.ops.Load() + 1)
				s.finished = s.now
				if h != nil {
					s.note(h, s.now-begin)
				}
			}
			if o != done {
				return o
			}
		}
	}
	return done
}

// do runs operation k of a step.
func (s *strand) do(st *step, k int64) outcome {
	switch st.op {
	case uperf.Connect:
		return s.connect(st)
	case uperf.Accept:
		return s.accept(st)
	case uperf.Disconnect:
		return s.disconnect(st)
	case uperf.Think:
		return s.think(st)
	case uperf.Nop:
		return done
	case uperf.Read, uperf.Write, uperf.Send, uperf.Recv:
	}
	c := s.find(st.Conn)
	if c == nil {
		return s.fail(string(st.op)+": the connection "+connName(st.Conn)+" is not open", 0)
	}
	size := st.size
	if k == st.count-1 {
		size = st.last
	}
	if st.spread && s.task.budget > 0 {
		if size = min(size, s.budget); size == 0 {
			return done
		}
		s.budget -= size
	}
	sending := st.op == uperf.Write || st.op == uperf.Send
	switch {
	case sending && st.Size.Random():
		size = int64(st.Size.Min) + s.rand.Int64N(int64(st.Size.Max-st.Size.Min)+1)
	case st.Size.Random():
		c.loose = true
	}
	switch {
	case c.udp && sending:
		return s.sendDatagram(c, st, int(size))
	case c.udp:
		return s.receiveDatagram(c, st)
	case sending:
		return s.write(c, st, size)
	}
	return s.read(c, st, size)
}

// think sleeps, or uses the CPU, for the step's time.
func (s *strand) think(st *step) outcome {
	until := s.clock.now() + int64(st.Duration)
	for {
		now := s.clock.now()
		if now >= until {
			return done
		}
		if s.run.stop.Load() || !s.task.opens && s.blocked() {
			return over
		}
		if !st.Busy {
			ts := unix.NsecToTimespec(min(until-now, int64(tick)))
			rawSleep(&ts)
		}
	}
}
