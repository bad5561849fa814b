package cause

import "math"

// queueing is the part of the wait of a queue with exponential services that counts. The
// services of one kind of operation vary less, so its queues are shorter.
const queueing = 0.6

// stay is how long an operation is at a resource: the time that it takes of it, plus the
// time that it waits there for the other operations under way. It is the mean value of a closed network
// (Schweitzer's approximation): with the part use of the time in use, and n operations
// under way, others are there for use x (n-1)/n of it.
//
// With several servers of a kind that take turns, the wait is divided by their number: an
// operation gets the one that is free first.
func stay(demand, use, n, servers float64) float64 {
	if !(n > 1) || !(demand > 0) {
		return demand
	}
	q := min(0.98, use*(n-1)/n)
	return demand * min(n, 1+queueing*q/(1-q)/max(1, servers))
}

// stays are the parts of an operation's time, in seconds, by what it is at. Those of the
// workload's own processor time are in two: work is what it takes, and GuestOne what it
// waits for it; Imbalance is the part of both that is in the interrupts of one processor.
// What is left is in no resource that was read.
type stays struct {
	at   map[Name]float64
	work float64
	left float64
	peer float64 // at the busiest thread of an endpoint that is not sandboxed; part of what is left
}

// stays splits an operation's time into its parts; ok is false where it has none.
func (f *facts) stays() (out stays, ok bool) {
	s, t := &f.own, f.time()
	if math.IsNaN(t) || !(s.unit() > 0) || !s.has(fRate) {
		return out, false
	}
	n, rate := f.inFlight(), s[fRate]
	stolen := s.or(fHostSteal, 0)
	run, help := tasks(s)*(1-stolen)/rate, s.or(fHelperCPU, 0)*(1-stolen)/rate
	out.at = map[Name]float64{
		Steal: (tasks(s) + s.or(fHelperCPU, 0)) * stolen / rate,
		Quota: s.or(fThrottledTime, 0) / rate,
		Host:  unthrottled(s) / rate,
	}
	if w := f.intercepted() * t; w > 0 {
		// An intercepted call is served by the sandbox's threads, and caught and waited for by
		// the workload's own, in turns or side by side: none of its time is another cause's.
		out.at[Interception] = w
		if !f.inGuest() {
			help = max(0, help-w)
		}
		run = max(0, run-w)
	}
	if s.has(fGuestCPUs, fGuestSoft) && s[fGuestCPUs] >= 2 && s.or(fGuestSoftPart, 0) >= onOne {
		soft := min(run, s[fGuestSoft]/rate)
		out.at[Imbalance] = stay(soft, s[fGuestSoft], n, 1) - soft
	}
	out.work = run
	busy, servers := f.busiest()
	out.at[GuestOne] = stay(run, busy, n, servers) - run
	if !f.polling {
		out.at[Helper] = stay(help, s.or(fHelperBusy, 0)+f.helperWait(), n, s.or(fHelperCPU, 0)/s.or(fHelperBusy, 1))
	}
	if s.has(fLinkRate) && s[fLinkRate] > 0 {
		in, back := s.or(fLinkIn, 0)/s[fLinkRate], s.or(fLinkOut, 0)/s[fLinkRate]
		out.at[Link] = stay(in/rate, in, n, 1) + stay(back/rate, back, n, 1)
	}
	if s.has(fHostSoft) {
		out.at[SoftIRQ] = stay(s[fHostSoft]/rate, s[fHostSoft], n, 1)
	}
	out.at[Fsync] = s.or(fSync, 0) * t
	if own := diskPart(f); own > 0 && ownDisk(s) {
		out.at[Device] = max(0, own*s.or(fDeviceQueue, 0)/rate-out.at[Fsync]) // its requests are in the disk
	}
	out.peer = stay(s.or(fOther, 0)/rate, s.or(fOther, 0), n, 1)
	out.left = t - out.work
	for _, k := range Names() { // in their order, so that sums are the same to the last bit
		out.at[k] = min(out.at[k], t)
		out.left -= out.at[k]
	}
	return out, true
}

// busiest is how full the workload's threads or the processors that they may use are,
// whichever are more so, and how many of these there are.
func (f *facts) busiest() (use, servers float64) {
	cpus, threads := guestUse(f), guestOneUse(f)
	n, _ := f.threads()
	switch {
	case cpus > threads || math.IsNaN(threads):
		use, servers = cpus, f.own.or(fGuestCPUs, max(1, f.pinned))
	default:
		use, servers = threads, n
	}
	if math.IsNaN(use) {
		use = 0
	}
	if math.IsNaN(servers) {
		servers = 1
	}
	return use, servers
}

// baseFacts are those of the baseline, to look at it as at the cell.
func (f *facts) baseFacts() *facts {
	return &facts{own: f.base, base: blank(), baseline: true, load: f.baseLoad, baseLoad: math.NaN(), pinned: f.pinned}
}

// baseStays are the baseline's stays; false where its operations have no time.
func (f *facts) baseStays() (stays, bool) {
	if f.natively != nil {
		return *f.natively, true
	}
	return f.baseFacts().stays()
}

// polls reports whether the helper's busiest thread is busy whatever there is to do, so that
// being busy says nothing. With less load, a thread that works is less busy, or does as much
// a second. And no more operations can be at two places at once than there are under
// way.
func (f *facts) polls() bool {
	s := &f.own
	if !(s.or(fHelperBusy, 0) >= 0.7) {
		return false
	}
	if l := f.low; l != nil && l.busy >= 0.85*s[fHelperBusy] && l.helper/l.value >= 1.8*s.or(fHelperCPU, 0)/s.unit() {
		return true
	}
	n := f.inFlight()
	return n >= 1 && s.has(fRate, fTime) && s[fHelperBusy]+tasks(s) > 1.15*n
}

// works reports whether something tells the helper's thread from one that polls: it is less
// busy with less load, or in the baseline.
func (f *facts) works() bool {
	s := &f.own
	if l := f.low; l != nil && (l.busy <= 0.9*s[fHelperBusy] || l.helper <= 0.9*s[fHelperCPU] || l.value >= 0.8*s.unit()) {
		return true
	}
	return f.base[fHelperBusy] <= 0.9*s[fHelperBusy]
}

// unit is how much is done in a second: operations, or what the response counts.
func (s *sheet) unit() float64 { return s.or(fRate, s[fValue]) }
