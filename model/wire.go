package model

func (s *sim) helperOf(m int32) *helper {
	if len(s.helpers) == 0 {
		return nil
	}
	return &s.helpers[int(m)%len(s.helpers)]
}

// peer handles a reply at the other end (or the permission to send a burst), and sends the next
// message to the link.
func (s *sim) peer(m int32) {
	c := &s.conns[m]
	if s.Load.Mode == Stream {
		at := max(s.now, c.peerFree)
		c.peerFree = at + int64(s.msgs*s.Path.PeerWrite*1e9+s.bytes*s.Path.PeerByte*1e9)
		if c.peerFree > s.now+us {
			// Use the link when the burst is written, not before, because others may use it meanwhile.
			s.push(c.peerFree, evArrive, 0, m|outside)
			return
		}
		s.toLink(m)
		return
	}
	if c.out {
		s.replied(c)
	}
	if s.Load.Rate > 0 && c.start > s.now {
		s.push(c.start, evSend, 0, m)
		return
	}
	c.out = true
	if s.Load.Rate == 0 {
		c.start = s.now
	}
	s.toLink(m)
}

// outside marks a message that is not on the link yet.
const outside = 1 << 30

func (s *sim) toLink(m int32) {
	ser := int64(s.bytes / s.Path.LinkRate * 1e9)
	s.inFree = max(s.inFree, s.now) + ser
	s.toBytes += s.bytes
	s.push(s.inFree+int64(s.Path.LinkDelay*1e9), evArrive, 0, m)
}

// replied records a request's latency.
func (s *sim) replied(c *conn) {
	c.out = false
	s.total++
	d := s.now - c.start
	if s.now > s.begin {
		s.done++
		s.doneBytes += s.bytes
		s.latency += float64(d)
		s.area += float64(s.now - max(c.start, s.begin))
		_ = s.histogram.RecordValue(min(max(d, 1), histogramMax))
	}
	if s.Load.Rate > 0 {
		c.start += int64(float64(len(s.conns)) / s.Load.Rate * 1e9)
	}
}

// arrive handles a message at the sandbox's outer side.
func (s *sim) arrive(m int32) {
	if m&outside != 0 {
		s.toLink(m &^ outside)
		return
	}
	if n := s.Path.Slots; n > 0 {
		if s.inside >= n {
			s.gate.push(m)
			return
		}
		s.inside++
	}
	s.enter(m)
}

func (s *sim) enter(m int32) {
	if h := s.helperOf(m); h != nil {
		s.toHelper(h, 2*m)
		return
	}
	b := s.batch()
	s.batches[b] = append(s.batches[b], m)
	s.inject(b, s.irqCore(m))
}

func (s *sim) toHelper(h *helper, m int32) {
	h.queue.push(m)
	s.wakeUp(&h.entity, s.Helper.Wake, s.costs.wakeCPU)
}

func (s *sim) chooseHelper(h *helper) float64 {
	if h.debt > 0 {
		x := h.debt
		h.debt, h.tail = 0, true
		return x
	}
	h.batch = s.batch()
	n := min(h.queue.len(), s.Helper.Batch)
	for range n {
		s.batches[h.batch] = append(s.batches[h.batch], h.queue.pop())
	}
	j := s.jitter()
	h.debt = float64(n) * s.costs.helperTail * j
	return float64(n) * s.costs.helper * j
}

// helperDone passes on the messages of a helper's slice, inwards and outwards.
func (s *sim) helperDone(h *helper) {
	if h.tail {
		h.tail = false
		return
	}
	in := int32(-1)
	core := 0
	for _, m := range s.batches[h.batch] {
		switch {
		case m&1 == 1:
			s.leave(m >> 1)
		case s.Isolation == Sentry && s.Path.Delay == 0: // its network stack is the helper itself
			s.deliver(m>>1, nil)
		default:
			if in < 0 {
				in, core = s.batch(), noCore
				if s.Isolation != Sentry {
					core = s.irqCore(m >> 1)
				}
			}
			s.batches[in] = append(s.batches[in], m>>1)
		}
	}
	s.put(h.batch)
	if in >= 0 {
		s.push(s.now+int64(s.Path.Delay*1e9), evInject, in, int32(core))
	}
}

// answered handles a message that its thread has processed.
func (s *sim) answered(m int32) {
	if s.Load.Mode == Stream {
		s.total += s.msgs
		if s.now > s.begin {
			s.done += s.msgs
			s.doneBytes += s.bytes
		}
		s.exit()
		s.push(s.now+int64((s.Path.LinkDelay+s.Path.Delay)*1e9), evSend, 0, m)
		return
	}
	if h := s.helperOf(m); h != nil {
		s.toHelper(h, 2*m+1)
		return
	}
	s.leave(m)
}

// leave puts a reply on the link.
func (s *sim) leave(m int32) {
	s.exit()
	ser := int64(s.bytes / s.Path.LinkRate * 1e9)
	s.outFree = max(s.outFree, s.now+int64(s.Path.Delay*1e9)) + ser
	s.fromBytes += s.bytes
	peer := (s.Path.Peer + 2*s.bytes*s.Path.PeerByte) * 1e9 * s.jitter()
	s.push(s.outFree+int64(s.Path.LinkDelay*1e9)+int64(peer), evSend, 0, m)
}

// exit frees a slot.
func (s *sim) exit() {
	if s.Path.Slots == 0 {
		return
	}
	s.inside--
	if s.gate.len() > 0 {
		s.inside++
		s.enter(s.gate.pop())
	}
}

// waiting returns the bytes that are not on the link yet, each way. For bytes from the sandbox, the
// path's delay counts as if it came after the link.
func (s *sim) waiting() (in, out float64) {
	left := func(until int64, of float64) float64 {
		return min(of, max(0, float64(until-s.now))*1e-9*s.Path.LinkRate)
	}
	return left(s.inFree, s.toBytes), left(s.outFree-int64(s.Path.Delay*1e9), s.fromBytes)
}
