package model

import "math"

// state of an entity.
type state uint8

const (
	idle state = iota
	waking
	queued    // for one of the host's cores
	throttled // until the quota's next period
	running
)

// entity is what the host schedules: a vCPU's thread or a helper; natively a core with the threads
// that the host puts on it. It runs slice by slice, and a slice is not interrupted.
type entity struct {
	state  state
	core   bool
	id     int32
	since  int64 // when it became idle, queued or throttled
	began  int64 // of the slice
	cost   float64
	extra  float64 // CPU to add to the next slice
	cpu    float64 // ns
	wait   float64 // ns without a core, ready to run
	local  float64 // ns of quota that it holds
	window int64   // halt polling
	polled int64   // polling is charged up to here
	until  int64   // polling ends
	warm   bool    // polling began when it became idle
	listed bool    // in host.polling
}

// host is the machine's cores.
type host struct {
	active  int     // entities on a core
	line    fifo    // entities that wait for one
	polling []int32 // vCPUs that may poll; those that do not any more are still in it
	used    float64
}

type quotaState struct {
	on      bool
	full    float64 // ns a period
	pool    float64 // what is left of it
	period  int64
	slice   float64
	held    []int32 // entities throttled
	hit     bool    // in this period
	usedBy  float64 // s.host.used at the period's start
	periods float64
	hits    float64
	time    float64 // ns throttled, summed over entities
}

// slack is what an idle entity keeps of its slice: min_cfs_rq_runtime in the kernel.
const slack = 1e6

func (s *sim) entity(id int32) *entity {
	if n := len(s.cores); int(id) >= n {
		return &s.helpers[int(id)-n].entity
	}
	return &s.cores[id].entity
}

func (s *sim) setIdle(i int, is bool) {
	if is {
		s.idle[i>>6] |= 1 << (i & 63)
	} else {
		s.idle[i>>6] &^= 1 << (i & 63)
	}
}

func (s *sim) charge(x float64) { s.used += x }

// wakeUp makes an idle entity run after a delay, in seconds. It first uses cpu, in ns.
func (s *sim) wakeUp(e *entity, delay, cpu float64) {
	if e.state != idle {
		return
	}
	e.state = waking
	e.extra += cpu
	if e.core {
		s.setIdle(int(e.id), false)
	}
	s.push(s.now+int64(delay*1e9), evReady, e.id, 0)
}

func (s *sim) ready(e *entity) {
	e.state = queued
	e.since = s.now
	s.dispatch(e)
}

// dispatch gives e a core if it has quota and one is free.
func (s *sim) dispatch(e *entity) {
	if s.quota.on && e.local <= 0 && !s.take(e) {
		e.wait += float64(s.now - e.since)
		e.state, e.since = throttled, s.now
		s.quota.held = append(s.quota.held, e.id)
		s.quota.hit = true
		return
	}
	if s.active >= s.Host.Cores {
		s.line.push(e.id)
		return
	}
	s.unpoll()
	e.wait += float64(s.now - e.since)
	cost, ok := s.choose(e)
	if !ok { // another core took the work
		s.rest(e)
		return
	}
	e.cost = cost + e.extra
	e.extra = 0
	e.state, e.began = running, s.now
	s.active++
	// Other runnable threads share the cores evenly. A slice's speed is fixed when it starts.
	took := e.cost
	if n := s.active + s.Host.Contenders; n > s.Host.Cores {
		took /= float64(s.Host.Cores) / float64(n)
	}
	s.push(s.now+max(1, int64(math.Ceil(took))), evFinish, e.id, 0)
}

// unpoll frees cores of vCPUs that poll, which yield to any runnable thread.
func (s *sim) unpoll() {
	if n, last := s.pollers(); last >= 0 && s.active+n >= s.Host.Cores {
		s.poll(&s.cores[last].entity)
		s.cores[last].until = s.now
	}
}

// pollers counts the vCPUs that poll now, and returns one. It does not count if there is room for
// all of them.
func (s *sim) pollers() (n, last int) {
	last = -1
	if s.Isolation != VM || s.Guest.HaltPoll == 0 || s.active+len(s.cores) < s.Host.Cores {
		return 0, last
	}
	kept := s.polling[:0]
	for _, id := range s.polling {
		c := &s.cores[id]
		if c.state != idle || c.until <= s.now { // it polls again only after another rest
			c.listed = false
			continue
		}
		kept = append(kept, id)
		n, last = n+1, max(last, int(id))
	}
	s.polling = kept
	return n, last
}

func (s *sim) finish(e *entity) {
	s.active--
	e.cpu += e.cost
	e.local -= e.cost
	s.charge(e.cost)
	e.wait += max(0, float64(s.now-e.began)-e.cost)
	e.state, e.since = queued, s.now
	if e.core {
		s.coreDone(&s.cores[e.id])
	} else {
		s.helperDone(&s.helpers[int(e.id)-len(s.cores)])
	}
	switch {
	case !s.hasWork(e):
		s.rest(e)
	case s.line.len() > 0:
		s.line.push(e.id)
	default:
		s.dispatch(e)
	}
	for s.active < s.Host.Cores && s.line.len() > 0 {
		s.dispatch(s.entity(s.line.pop()))
	}
}

// rest makes e idle: it returns most of its slice, and a vCPU polls if the host has nothing else
// to run (KVM's Documentation/virt/kvm/halt-polling.rst).
func (s *sim) rest(e *entity) {
	e.state, e.since = idle, s.now
	e.polled, e.until, e.warm = s.now, s.now, false
	if s.quota.on {
		if e.local > slack {
			s.quota.pool += e.local - slack
			e.local = slack
		}
		if len(s.quota.held) > 0 && s.quota.pool > s.quota.slice {
			s.distribute()
		}
	}
	if !e.core {
		return
	}
	s.setIdle(int(e.id), true)
	if n, _ := s.pollers(); s.Isolation == VM && s.active+n+s.Host.Contenders < s.Host.Cores && (!s.quota.on || e.local > 0) {
		e.until, e.warm = s.now+e.window, e.window > 0
		if e.warm && !e.listed {
			e.listed = true
			s.polling = append(s.polling, e.id)
		}
	}
}

// poll charges what an idle vCPU polled.
func (s *sim) poll(e *entity) {
	if b := min(s.now, e.until) - e.polled; b > 0 {
		e.polled += b
		e.cpu += float64(b)
		e.local -= float64(b)
		s.charge(float64(b))
	}
}

// polls charges and adapts the polling at a wake-up, and reports whether the vCPU was polling. As
// in the kernel, the window grows from 10 us by a factor of 2, and starts again after a wait that
// is too long to poll for.
func (s *sim) polls(e *entity) bool {
	s.poll(e)
	most := int64(s.Guest.HaltPoll * 1e9)
	d := s.now - e.since
	caught := e.warm && s.now <= e.until
	switch {
	case d > most:
		e.window = 0
	case e.window == 0:
		e.window = min(most, 10*us)
	case d > e.window:
		e.window = min(most, 2*e.window)
	}
	return caught
}

// take draws a slice from the period's pool.
func (s *sim) take(e *entity) bool {
	if n := min(s.quota.slice-e.local, s.quota.pool); n > 0 {
		e.local += n
		s.quota.pool -= n
	}
	return e.local > 0
}

// refill begins a period: the pool is full, and throttled entities get their debt paid first
// (Documentation/scheduler/sched-bwc.rst).
func (s *sim) refill() {
	if s.used > s.quota.usedBy || len(s.quota.held) > 0 {
		s.quota.periods++
	}
	if s.quota.hit {
		s.quota.hits++
	}
	s.quota.usedBy = s.used
	s.quota.pool = s.quota.full + min(0, s.quota.pool)
	s.distribute()
	s.quota.hit = len(s.quota.held) > 0
}

func (s *sim) distribute() {
	held := s.quota.held
	s.quota.held = nil
	for _, id := range held {
		e := s.entity(id)
		if n := min(s.quota.pool, 1-e.local); n > 0 {
			e.local += n
			s.quota.pool -= n
		}
		if e.local > 0 {
			s.thaw(e)
		} else {
			s.quota.held = append(s.quota.held, id)
		}
	}
	s.release()
}

// thaw ends an entity's throttling; release dispatches those that ended.
func (s *sim) thaw(e *entity) {
	d := float64(s.now - e.since)
	s.quota.time += d
	e.wait += d
	e.state, e.since = queued, s.now
	s.line.push(e.id)
}

func (s *sim) release() {
	for s.active < s.Host.Cores && s.line.len() > 0 {
		s.dispatch(s.entity(s.line.pop()))
	}
}

// settle updates the counters with polling and throttling in progress.
func (s *sim) settle() {
	for i := range s.cores {
		if e := &s.cores[i].entity; e.state == idle {
			s.poll(e)
		}
	}
	for _, id := range s.quota.held {
		e := s.entity(id)
		d := float64(s.now - e.since)
		s.quota.time += d
		e.wait += d
		e.since = s.now
	}
}
