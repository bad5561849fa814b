package cause

import (
	"math"

	"tare/record"
)

// rule is how one cause is told. Its weight is the part of the time that the cause
// takes: of a resource the part of it that is used, or the part of an operation's
// time that goes there. At 1 nothing goes beside it.
type rule struct {
	kind   Kind
	limit  float64              // the weight from which the cause is taken to be there
	full   bool                 // at its limit a resource is full, and queues before it are its doing
	needs  []string             // collectors that read it
	weight func(*facts) float64 // NaN: not read
	shows  []gauge
}

// gauge is one figure of a rule, for people to look at.
type gauge struct {
	name   string
	unit   record.Unit
	limit  float64
	get    func(*facts) float64 // NaN: not read
	series []string
	role   bool // of the helper's role alone
}

// rules are in the order in which one goes before another of the same weight: what
// holds everything up comes before what is held up by it.
func rules() []rule {
	return []rule{quotaRule(), hostRule(), imbalanceRule(), helperRule(), linkRule(), deviceRule(), interceptionRule(), guestRule(), guestOneRule(), pathRule(), saturationRule()}
}

func plain(at figure) func(*facts) float64 { return func(f *facts) float64 { return f.own[at] } }

// quotaRule: throttled in so many periods, with most of the quota used. The kernel
// counts a period as throttled when the limit was reached in it, on one processor at
// least (sched-bwc.rst): a share of periods alone says little where the group hardly
// uses what it has.
func quotaRule() rule {
	return rule{kind: Quota, limit: 0.3, full: true, needs: []string{"cgroup"},
		weight: func(f *facts) float64 {
			s := &f.own
			switch {
			case !s.has(fQuota):
				if s.has(fCgroup) || s.has(fHostCores) {
					return 0 // no limit is set
				}
				return math.NaN()
			case s.has(fThrottled):
				return s[fThrottled] * min(1, quotaUsed(f)/0.9)
			case quotaUsed(f) < 0.9: // what other tools read has no throttling: only one that is used up says anything
				return 0
			}
			return quotaUsed(f)
		},
		shows: []gauge{
			{name: "CPU used, share of the quota", unit: record.Fraction, limit: 0.9, get: func(f *facts) float64 { return quotaUsed(f) }, series: []string{record.CgroupCPU, record.CPUQuota}},
			{name: "periods throttled", unit: record.Fraction, limit: 0.3, get: plain(fThrottled), series: []string{"cgroup_throttled_periods", "cgroup_periods"}},
			{name: "time throttled, all threads", unit: record.Cores, get: throttledFor, series: []string{"cgroup_throttled_time"}},
		}}
}

func quotaUsed(f *facts) float64 {
	if !(f.own.or(fQuota, 0) > 0) {
		return math.NaN()
	}
	return f.own[fCgroup] / f.own[fQuota]
}

// throttledFor is zero for ever where no limit is set: then there is nothing to show.
func throttledFor(f *facts) float64 {
	if !f.own.has(fQuota) {
		return math.NaN()
	}
	return f.own[fThrottledTime]
}

// hostRule: no processor is idle, and threads wait for one.
func hostRule() rule {
	const busy = 0.9
	return rule{kind: Host, limit: 0.25, full: true, needs: []string{"proc", "system"},
		weight: func(f *facts) float64 {
			if f.own.or(fHostBusy, 1) < busy {
				return 0
			}
			if !f.own.has(fHostBusy) {
				return math.NaN()
			}
			return f.waits()
		},
		shows: []gauge{
			{name: "host's processors in use", unit: record.Fraction, limit: busy, get: plain(fHostBusy), series: []string{"system_cpu"}},
			{name: "waiting for a processor, share of the time", unit: record.Fraction, limit: 0.25, get: func(f *facts) float64 { return f.waits() }, series: []string{"run_wait"}},
		}}
}

// imbalanceRule: one of several processors of the guest is full of soft interrupts,
// and takes most of them.
func imbalanceRule() rule {
	return rule{kind: Imbalance, limit: 0.6, full: true, needs: []string{"guest"},
		weight: func(f *facts) float64 {
			s := &f.own
			switch {
			case !f.inGuest():
				return 0
			case !s.has(fGuestCPUs, fGuestSoft):
				return math.NaN()
			case s[fGuestCPUs] < 2 || s.or(fGuestSoftPart, 0) < 0.7:
				return 0
			}
			return s[fGuestSoft]
		},
		shows: []gauge{
			{name: "guest's processor with most interrupts, share of its time in them", unit: record.Fraction, limit: 0.6, get: plain(fGuestSoft), series: []string{record.GuestCPU}},
			{name: "its part of all soft interrupts", unit: record.Fraction, limit: 0.7, get: plain(fGuestSoftPart), series: []string{record.GuestSoftIRQs}},
		}}
}

// helperRule: one thread beside the guest is full. One that sleeps between requests
// is full below 1, since waking up takes time in which it does not run: the
// published 85 to 90 % of a core were a bottleneck.
func helperRule() rule {
	return rule{kind: Helper, limit: 0.7, full: true, needs: []string{"proc"},
		weight: func(f *facts) float64 {
			s := &f.own
			if !s.has(fHelperBusy) {
				if s.or(fHelperCPU, 0) < 0.7 && (s.has(fWork) || s.has(fVCPU)) {
					return s.or(fHelperCPU, 0) // none of them can have used more than all
				}
				return math.NaN()
			}
			return s[fHelperBusy] + f.helperWait()
		},
		shows: []gauge{
			{name: "busiest helper thread, share of a core", unit: record.Cores, limit: 0.7, get: plain(fHelperBusy), series: []string{"thread_cpu_time", record.CPUTime}, role: true},
			{name: "its wait for a processor", unit: record.Cores, get: plain(fHelperWait), series: []string{"thread_run_wait"}, role: true},
		}}
}

// helperWait is what a thread waited for a processor where none of them is lacking:
// short waits behind others are part of what fills it.
func (f *facts) helperWait() float64 {
	if f.own.or(fThrottled, 0) > 0.05 || f.own.or(fHostBusy, 1) > 0.9 {
		return 0
	}
	return f.own.or(fHelperWait, 0)
}

// linkRule: the bytes that went over it, of those that it can carry. A request and its
// reply take turns where few are under way: then both ways add up.
func linkRule() rule {
	use := func(f *facts) float64 {
		s := &f.own
		if !s.has(fLinkRate) || !(s[fLinkRate] > 0) || !s.has(fLinkIn) && !s.has(fLinkOut) {
			return math.NaN()
		}
		in, out := s.or(fLinkIn, 0)/s[fLinkRate], s.or(fLinkOut, 0)/s[fLinkRate]
		u := max(in, out)
		if n := f.inFlight(); n >= 1 && s.has(fRate) {
			u = max(u, (in+out)/n)
		}
		return min(1, u)
	}
	return rule{kind: Link, limit: 0.7, full: true, needs: []string{"link"},
		weight: func(f *facts) float64 {
			if u := use(f); !math.IsNaN(u) {
				return u
			}
			return math.NaN()
		},
		shows: []gauge{
			{name: "link, share of its rate", unit: record.Fraction, limit: 0.7, get: use, series: []string{record.LinkReceived, record.LinkSent, record.LinkRate}},
			{name: "bytes that wait before it", unit: record.Byte, get: plain(fLinkBacklog), series: []string{record.LinkBacklog}},
			{name: "packets dropped before it", unit: record.PerSecond, get: plain(fLinkDrops), series: []string{record.LinkDrops}},
		}}
}

// deviceRule: a disk that always has a request, or requests that spend their time
// in it. What the workload does not read or write is not its doing.
func deviceRule() rule {
	return rule{kind: Device, limit: 0.6, full: true, needs: []string{"disk"},
		weight: func(f *facts) float64 {
			s := &f.own
			if !s.has(fDeviceBusy) {
				return math.NaN()
			}
			if s.has(fRate) && !(s.or(fDeviceBytes, 0) >= 512*s[fRate]) {
				return 0
			}
			if !s.has(fRate) && !(s.or(fDeviceBytes, 0) >= 0.5*s.or(fValue, math.Inf(1))) {
				return 0
			}
			n := f.inFlight()
			if !(n >= 1) {
				n = 1
			}
			part := min(1, s.or(fDeviceQueue, 0)/n)
			if s[fDeviceBusy] > 0.9 {
				part = max(part, s[fDeviceBusy])
			}
			return part
		},
		shows: []gauge{
			{name: "busiest device, share of the time with a request", unit: record.Fraction, limit: 0.9, get: plain(fDeviceBusy), series: []string{record.DeviceBusy}},
			{name: "requests in it", unit: record.Count, get: plain(fDeviceQueue), series: []string{record.DeviceQueue}},
		}}
}

// interceptionRule: system calls x what the sandbox adds to one, as a part of the
// time of the operations that are under way.
func interceptionRule() rule {
	part := func(f *facts) float64 {
		if f.baseline {
			return 0
		}
		if f.calls == nil {
			return math.NaN()
		}
		rate := f.calls.Rate
		if rate == 0 {
			rate = f.own[fRate]
		}
		n := f.inFlight()
		if !(n > 0) {
			n = max(1, f.calls.Parallelism)
		}
		return max(0, min(1, rate*f.calls.Each*f.calls.Cost/n))
	}
	return rule{kind: Interception, limit: 0.3, needs: []string{"calls"},
		weight: part,
		shows: []gauge{
			{name: "system calls x what the sandbox adds to one, share of the time", unit: record.Fraction, limit: 0.3, get: part, series: []string{record.SystemCalls}},
		}}
}

// guestRule: all processors of the guest, or all that a sandbox is pinned to.
func guestRule() rule {
	use := func(f *facts) float64 {
		s := &f.own
		switch {
		case f.pinned > 0 && s.has(fCgroup):
			return s[fCgroup] / f.pinned
		case !f.inGuest():
			return 0
		case s.has(fGuestCPUs):
			return (s[fGuest] + s[fGuestSteal]) / s[fGuestCPUs]
		}
		return math.NaN()
	}
	return rule{kind: Guest, limit: 0.75, full: true, needs: []string{"guest"}, weight: use,
		shows: []gauge{
			{name: "guest's processors in use, share of all", unit: record.Fraction, limit: 0.75, get: use, series: []string{record.GuestCPU}},
			{name: "guest's threads that run or are ready", unit: record.Count, get: plain(fGuestRunnable), series: []string{record.GuestRunnable}},
		}}
}

// guestOneRule: the workload has fewer threads than there are processors, and they
// are full. The host sees a native thread; in a guest it moves between processors,
// and what all of them did for threads is shared out among as many as natively.
func guestOneRule() rule {
	use := func(f *facts) float64 {
		s := &f.own
		if !f.inGuest() {
			switch {
			case s.has(fWorkBusy):
				return s[fWorkBusy]
			case s[fWork] < 0.7:
				return s[fWork] // none of them can have used more than all
			case f.load >= 1 && s[fWork] >= 0.7*f.load:
				return s[fWork] / f.load // each of them is
			}
			return math.NaN()
		}
		n, known := f.threads()
		switch {
		case !s.has(fGuestTask):
			return math.NaN()
		case s[fGuestTask] < 0.5:
			return s[fGuestTask]
		case math.IsNaN(n):
			return math.NaN()
		case !known && s[fGuestBusiest] < 0.5*s[fGuestTask]:
			return s[fGuestBusiest] // a thread that never sleeps stays where it is: these are several
		case s[fGuestCPUs] < n+0.5 || s[fGuest]+s[fGuestSteal] > 0.9*s[fGuestCPUs]:
			return 0 // then it is all of them
		}
		return min(1, s[fGuestTask]/n)
	}
	return rule{kind: GuestOne, limit: 0.7, full: true, needs: []string{"proc"}, weight: use,
		shows: []gauge{
			{name: "busiest thread of the workload, share of a core", unit: record.Cores, limit: 0.7, get: use, series: []string{"thread_cpu_time", record.CPUTime, record.GuestCPU}},
			{name: "guest's processor that was idle least, in use", unit: record.Fraction, get: plain(fGuestBusiest), series: []string{record.GuestCPU}},
		}}
}

// pathRule: time that was added, that no thread accounts for, and that is there with
// a single operation under way too.
func pathRule() rule {
	part := func(f *facts) float64 {
		if f.baseline {
			return 0
		}
		all, constant := f.addedPart()
		if math.IsNaN(constant) {
			return all
		}
		return constant
	}
	return rule{kind: Path, limit: 0.25, weight: part,
		shows: []gauge{
			{name: "added time that nothing was busy in, share of an operation's", unit: record.Fraction, limit: 0.25, get: part},
			{name: "added time that nothing was busy in", unit: record.Second, get: func(f *facts) float64 { return f.added() }},
		}}
}

// saturationRule: such time that comes with load, and no thread is full.
func saturationRule() rule {
	part := func(f *facts) float64 {
		if f.baseline {
			return 0
		}
		all, constant := f.addedPart()
		if math.IsNaN(constant) {
			return all
		}
		return all - constant
	}
	return rule{kind: Saturation, limit: 0.25, weight: part,
		shows: []gauge{
			{name: "added time that comes with load, share of an operation's", unit: record.Fraction, limit: 0.25, get: part},
		}}
}
