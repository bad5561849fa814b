package model

import "math/bits"

// doing is the kind of a core's slice.
type doing uint8

const (
	nothing doing = iota
	soft          // a soft interrupt's messages
	tail          // the rest of their bytes
	work          // a thread's
)

// core is a guest's vCPU, or natively one of the host's cores. Soft interrupts run first, then
// one thread after the other.
type core struct {
	entity
	soft   fifo // messages
	queue  fifo // threads
	doing  doing
	debt   float64 // ns of bytes that the next stage did not wait for
	batch  int32
	thread int32
	last   int32 // thread that ran last

	user, system, softirq float64 // ns
	received              float64 // messages in soft interrupts
}

// thread is one thread of the workload.
type thread struct {
	inbox  fifo
	parked bool  // on a run queue or running
	since  int64 // when it was queued
	core   int32
	cpu    float64 // ns
}

// helper is a thread between link and guest.
type helper struct {
	entity
	queue fifo // messages: connection times 2, and 1 more on the way out
	debt  float64
	tail  bool
	batch int32
}

const (
	softBatch  = 64   // NAPI's weight
	pollCatch  = 1e-6 // s until a polling vCPU runs
	stealAfter = 100 * us
	shortTurn  = 10e3 // ns: a shorter turn does not wake another core
)

func (s *sim) hasWork(e *entity) bool {
	if !e.core {
		h := &s.helpers[int(e.id)-len(s.cores)]
		return h.debt > 0 || h.queue.len() > 0
	}
	c := &s.cores[e.id]
	if c.debt > 0 || c.soft.len() > 0 || c.queue.len() > 0 {
		return true
	}
	return s.parked > 0 && s.steal(c)
}

// steal takes a thread from the longest run queue.
func (s *sim) steal(c *core) bool {
	best, n := -1, 0
	for i := range s.cores {
		k := s.cores[i].queue.len()
		if k == 0 {
			continue
		}
		v := &s.cores[i]
		t := &s.threads[v.queue.items[v.queue.head]]
		if v.state == waking || v.state == running && v.doing != work && s.now-t.since < stealAfter {
			k-- // it is about to run that one itself, after a short interrupt at most
		}
		if k > n {
			best, n = i, k
		}
	}
	if best < 0 {
		return false
	}
	t := s.cores[best].queue.pop()
	s.threads[t].core = c.id
	c.queue.push(t)
	return true
}

// choose picks e's next slice and returns its CPU time, ns.
func (s *sim) choose(e *entity) (float64, bool) {
	if !s.hasWork(e) {
		return 0, false
	}
	if !e.core {
		return s.chooseHelper(&s.helpers[int(e.id)-len(s.cores)]), true
	}
	c := &s.cores[e.id]
	switch {
	case c.debt > 0:
		x := c.debt
		c.debt, c.doing = 0, tail
		return x, true
	case c.soft.len() > 0:
		c.doing, c.batch = soft, s.batch()
		n := min(c.soft.len(), softBatch)
		for range n {
			s.batches[c.batch] = append(s.batches[c.batch], c.soft.pop())
		}
		j := s.jitter()
		c.debt = float64(n) * s.costs.softTail * j
		return float64(n) * s.costs.softirq * j, true
	}
	c.doing, c.thread = work, c.queue.pop()
	s.parked--
	t := &s.threads[c.thread]
	c.batch = s.batch() // one message: its reply does not wait for the next one's
	m := t.inbox.pop()
	s.batches[c.batch] = append(s.batches[c.batch], m)
	var kick float64
	if h := s.helperOf(m); h != nil && h.state == idle && s.Isolation == VM {
		kick = s.costs.exit // none while it runs: virtio's event index
	}
	x := (s.costs.message + s.costs.call + s.costs.work) * s.jitter()
	if c.last != c.thread {
		x += s.costs.swtch
		c.last = c.thread
	}
	return x + kick, true
}

// coreDone handles the end of a core's slice.
func (s *sim) coreDone(c *core) {
	switch b := c.batch; c.doing {
	case soft:
		c.softirq += c.cost
		c.received += float64(len(s.batches[b]))
		for _, m := range s.batches[b] {
			s.deliver(m, c)
		}
		s.put(b)
	case tail:
		c.softirq += c.cost
	case work:
		t := &s.threads[c.thread]
		t.cpu += c.cost
		n := float64(len(s.batches[b]))
		u := n*s.costs.work + 0.1*n*s.costs.message
		c.user += min(c.cost, u)
		c.system += max(0, c.cost-u)
		s.calls += n * s.msgs * s.Kernel.Calls
		s.served += c.cost * s.costs.call / (s.costs.message + s.costs.call + s.costs.work)
		for _, m := range s.batches[b] {
			s.answered(m)
		}
		s.put(b)
		t.parked = false
		if t.inbox.len() > 0 {
			t.parked, t.core, t.since = true, c.id, s.now
			c.queue.push(c.thread)
			s.parked++
		}
	}
	c.doing = nothing
}

// deliver gives a message to its thread, and the thread to a core: the last one if that is free,
// the waker's for a short turn, any idle one, or else the queue of the last one.
func (s *sim) deliver(m int32, at *core) {
	id := m % int32(len(s.threads)) //nolint:gosec // few: Config.Check bounds it
	t := &s.threads[id]
	t.inbox.push(m)
	if t.parked {
		return
	}
	t.parked = true
	s.parked++
	c := &s.cores[t.core]
	if c.state != idle {
		near := at != nil && at.soft.len() == 0 && at.debt == 0 && at.queue.len() == 0 // it is free next
		i := s.anyIdle()
		switch {
		case near && (i < 0 || s.costs.message+s.costs.work+s.costs.call < shortTurn):
			c = at
		case i >= 0:
			c = &s.cores[i]
		}
	}
	t.core, t.since = c.id, s.now
	c.queue.push(id)
	s.wakeCore(c)
}

func (s *sim) anyIdle() int {
	for w, x := range s.idle {
		if x != 0 {
			return w<<6 + bits.TrailingZeros64(x)
		}
	}
	return -1
}

func (s *sim) wakeCore(c *core) {
	switch {
	case c.state != idle:
	case s.Isolation != VM:
		s.wakeUp(&c.entity, s.Host.Wake, 0)
	case s.polls(&c.entity):
		s.wakeUp(&c.entity, pollCatch, 0)
	default:
		s.wakeUp(&c.entity, s.Guest.Wake, s.costs.exit)
	}
}

// noCore is the place of a batch that interrupts no core: a sentry hands it to the threads itself.
const noCore = -1

// inject raises a core's soft interrupt for a batch.
func (s *sim) inject(batch int32, core int) {
	if core == noCore {
		for _, m := range s.batches[batch] {
			s.deliver(m, nil)
		}
		s.put(batch)
		return
	}
	c := &s.cores[core]
	for _, m := range s.batches[batch] {
		c.soft.push(m)
	}
	s.put(batch)
	s.wakeCore(c)
}

// irqCore returns the core that a connection's queue interrupts. There is one queue for each
// helper, and natively for each core.
func (s *sim) irqCore(m int32) int {
	switch {
	case s.Kernel.AllOnOne:
		return 0
	case s.Isolation == VM:
		return int(m) % len(s.helpers) % s.Guest.Boot
	}
	return int(5*m+1) % len(s.cores)
}
