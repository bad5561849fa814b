package cause

import (
	"math"

	"tare/record"
)

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
			{name: "periods throttled", unit: record.Fraction, limit: 0.3, get: plain(fThrottled), series: []string{record.CgroupThrottledPeriods, record.CgroupPeriods}},
			{name: "time throttled, all threads", unit: record.Cores, get: throttledFor, series: []string{record.CgroupThrottledTime}},
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

// hostRule: no processor is idle, and threads wait for one, whoever has it: the
// trial's own ends share a small host.
// A quarter of the time spent waiting is a third of the speed. Waits count in full where
// nine tenths of the host are busy, and less the more of it is free, down to three quarters:
// from there on they are those behind a waker, not behind a lack of processors.
func hostRule() rule {
	const busy, free = 0.9, 0.75
	return rule{kind: Host, limit: 0.25, full: true, needs: []string{"proc", "system"},
		weight: func(f *facts) float64 {
			if f.own.or(fHostBusy, 1) < free {
				return 0
			}
			if !f.own.has(fHostBusy) {
				return math.NaN()
			}
			return f.waits() * min(1, (f.own[fHostBusy]-free)/(busy-free))
		},
		shows: []gauge{
			{name: HostInUse, unit: record.Fraction, limit: busy, get: plain(fHostBusy), series: []string{"system_cpu"}},
			{name: "used by others than this trial", unit: record.Cores, get: plain(fHostOthers), series: []string{"system_cpu", record.CgroupCPU}},
			{name: "waiting for a processor, share of the time", unit: record.Fraction, limit: 0.25, get: func(f *facts) float64 { return f.waits() }, series: []string{"run_wait"}},
		}}
}

// stealRule: a hypervisor below the host runs something else while the host's processors
// are wanted. Everything that runs takes longer by that time.
// The limit is as for the host's own processors.
func stealRule() rule {
	return rule{kind: Steal, limit: 0.25, full: true, needs: []string{"system"}, weight: func(f *facts) float64 {
		if !f.own.has(fHostSteal) {
			return math.NaN()
		}
		return f.own[fHostSteal]
	},
		shows: []gauge{
			{name: "processor time that was wanted and a hypervisor took", unit: record.Fraction, limit: 0.25, get: plain(fHostSteal), series: []string{"system_cpu"}},
		}}
}

// softRule: one of the host's processors is full of interrupts. It serves the packets of
// the sandbox's ports, and nobody is charged for its time.
// The limit is as for a thread that sleeps between requests.
func softRule() rule {
	return rule{kind: SoftIRQ, limit: 0.7, full: true, needs: []string{"system"}, weight: func(f *facts) float64 { return f.own.or(fHostSoft, 0) },
		shows: []gauge{
			{name: "host's processor with most interrupts, share of its time in them", unit: record.Fraction, limit: 0.7, get: plain(fHostSoft), series: []string{"system_cpu_softirq"}},
		}}
}

// onOne is the part of all soft interrupts from which one processor takes them.
const onOne = 0.7

// imbalanceRule: one of several processors of the guest is full of soft interrupts,
// and takes most of them.
// The limit is below that of other resources: the rest of it are the threads that
// run there as well.
func imbalanceRule() rule {
	return rule{kind: Imbalance, limit: 0.6, full: true, needs: []string{"guest"},
		weight: func(f *facts) float64 {
			s := &f.own
			switch {
			case !f.inGuest():
				return 0
			case !s.has(fGuestCPUs, fGuestSoft):
				return math.NaN()
			case s[fGuestCPUs] < 2 || s.or(fGuestSoftPart, 0) < onOne:
				return 0
			}
			return s[fGuestSoft]
		},
		shows: []gauge{
			{name: "guest's processor with most interrupts, share of its time in them", unit: record.Fraction, limit: 0.6, get: plain(fGuestSoft), series: []string{record.GuestCPU}},
			{name: "its part of all soft interrupts", unit: record.Fraction, limit: onOne, get: plain(fGuestSoftPart), series: []string{record.GuestSoftIRQs}},
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
			if f.polling {
				return 0 // what it does says nothing of the load
			}
			return s[fHelperBusy] + f.helperWait()
		},
		shows: []gauge{
			{name: "busiest helper thread, share of a core", unit: record.Cores, limit: 0.7, get: plain(fHelperBusy), series: []string{"thread_cpu_time", record.CPUTime}, role: true},
			{name: "its wait for a processor", unit: record.Cores, get: plain(fHelperWait), series: []string{"thread_run_wait"}, role: true},
		}}
}

// helperWait is what a thread waited for a processor where none of them is lacking:
// short waits behind others are part of what fills it. One that waits longer than half
// of the time that it runs is held up by a host that is nearly full, not filled.
func (f *facts) helperWait() float64 {
	if f.own.or(fThrottled, 0) > 0.05 || f.own.or(fHostBusy, 1) > 0.9 {
		return 0
	}
	return min(f.own.or(fHelperWait, 0), f.own.or(fHelperBusy, 0)/2)
}

// guestRule: all processors of the guest, or all that a sandbox is pinned to.
// The published guest was full with its one core of one; the limit leaves room for
// processors that are idle between two wake-ups.
func guestRule() rule {
	use := guestUse
	return rule{kind: Guest, limit: 0.75, full: true, needs: []string{"guest"}, weight: use,
		shows: []gauge{
			{name: "guest's processors in use, share of all", unit: record.Fraction, limit: 0.75, get: use, series: []string{record.GuestCPU}},
			{name: "guest's threads that run or are ready", unit: record.Count, get: plain(fGuestRunnable), series: []string{record.GuestRunnable}},
		}}
}

func guestUse(f *facts) float64 {
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

// guestOneRule: the workload has fewer threads than there are processors, and they
// are full. The host sees a native thread; in a guest it moves between processors,
// and what all of them did for threads is shared out among as many as natively.
// The limit is as for helpers: a thread that sleeps between requests is full below 1.
func guestOneRule() rule {
	use := guestOneUse
	return rule{kind: GuestOne, limit: 0.7, full: true, needs: []string{"proc"}, weight: use,
		shows: []gauge{
			{name: BusiestThread, unit: record.Cores, limit: 0.7, get: use, series: []string{"thread_cpu_time", record.CPUTime, record.GuestCPU}},
			{name: "guest's processor that was idle least, in use", unit: record.Fraction, get: plain(fGuestBusiest), series: []string{record.GuestCPU}},
		}}
}

func guestOneUse(f *facts) float64 {
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
	case s[fGuestCPUs] < n+0.5 || s[fGuest]+s[fGuestSteal] > 0.9*s[fGuestCPUs]:
		return 0 // then it is all of them
	case !known && s[fGuestTop] < 0.5*s[fGuestTask]:
		return s[fGuestTop] // a thread that never sleeps stays where it is: these are several
	}
	return min(1, s[fGuestTask]/n)
}

// emulationRule: software emulates the guest's processors, and the same work takes more of their time. The weight is the part of that time
// that is more than natively; from half on the rest is less.
func emulationRule() rule {
	part := func(f *facts) float64 {
		if !f.emulated {
			return math.NaN()
		}
		return max(0, 1-1/f.took())
	}
	return rule{kind: Emulation, limit: 0.5, weight: part,
		shows: []gauge{
			{name: "processor time beyond the baseline's for the same work, share of it", unit: record.Fraction, limit: 0.5, get: part, series: []string{record.GuestCPU}},
		}}
}
