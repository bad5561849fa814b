package cause

import (
	"fmt"
	"math"
)

// sentence says the verdict with the figures that decided. f and v are nil where
// nothing could be looked at.
func sentence(out *Finding, f *facts, v *verdict) string {
	if f == nil {
		return "The cause is not known: " + out.Missing + "."
	}
	pct := func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	own := &f.own
	w := v.part
	if own.has(fRuntime) {
		return launched(out, f, w)
	}
	if text := ofTime(out, pct(w)); v.cycle && text != "" {
		return text
	}
	switch out.Cause {
	case Quota:
		if !own.has(fThrottled) {
			return fmt.Sprintf("The CPU quota: %.3g of %.3g cores are used; how often it throttled them was not read.", own.or(fCgroup, 0), own[fQuota])
		}
		return fmt.Sprintf("The CPU quota: %.3g of %.3g cores are used, and %s of its periods are throttled.", own.or(fCgroup, 0), own[fQuota], pct(own.or(fThrottled, 0)))
	case Helper:
		if own.has(fHelperBusy) {
			waits := ""
			if x := f.helperWait(); x >= 0.01 {
				waits = ", and waits for a processor for " + pct(x)
			}
			return fmt.Sprintf("The %s thread: it is busy for %s of the time%s.", out.Role, pct(own[fHelperBusy]), waits)
		}
		return fmt.Sprintf("The %s threads use %.3g cores.", out.Role, own.or(fHelperCPU, 0))
	case Guest:
		if f.inGuest() && own.has(fGuestCPUs) {
			return fmt.Sprintf("The guest's processors: %.3g of %.0f are in use.", own[fGuest]+own[fGuestSteal], own[fGuestCPUs])
		}
		return fmt.Sprintf("The processors that it may use are full: %s.", pct(w))
	case GuestOne:
		return fmt.Sprintf("Single threads of the workload: %s of a core each, with other processors free.", pct(w))
	case Emulation:
		return fmt.Sprintf("The guest's processor, which software emulates (TCG): %s.", f.times(f.took()))
	case Host:
		others := ""
		if own.has(fHostOthers) {
			others = fmt.Sprintf(" (%.2g cores by processes outside this trial)", own[fHostOthers])
		}
		return fmt.Sprintf("The host's processors: %s are in use%s, and threads wait for one %s of the time.", pct(own.or(fHostBusy, 0)), others, pct(f.waits()))
	case Link:
		return fmt.Sprintf("The link: %s of its rate is used.", pct(w))
	case IOLimit, Device, Depth, Fsync, PageCache, Gofer:
		return onDisks(out.Cause, f, w)
	case Path:
		return fmt.Sprintf("Every round trip has a fixed extra delay of %s (%s of an operation's time), in which nothing is busy.", duration(f.added()), pct(w))
	case Saturation:
		return fmt.Sprintf("Saturation under load: an operation spends %s of its time in queues that grow with the load, and no thread is full.", pct(w))
	case Imbalance:
		return fmt.Sprintf("One of the guest's processors handles the interrupts: they take %s of its time.", pct(own.or(fGuestSoft, 0)))
	case Interception:
		return fmt.Sprintf("System calls: intercepting them takes %s of an operation's time.", pct(w))
	case None:
		if own.or(fOther, 0) >= 0.7 {
			return fmt.Sprintf("Nothing of the sandbox or its host limits it: a thread on the other side is busy for %s of the time.", pct(own[fOther]))
		}
		return "Nothing of the sandbox or its host limits it: the load itself does."
	case Other:
		return elseText(f, v, pct(w))
	case Steal:
		return fmt.Sprintf("A hypervisor below the host: it takes %s of the processor time that the host wants.", pct(own.or(fHostSteal, 0)))
	case SoftIRQ:
		return fmt.Sprintf("One of the host's processors: interrupts take %s of its time.", pct(own.or(fHostSoft, 0)))
	case Untold:
		return "The cause may be " + oneOf(out.Among) + ": " + v.because + "."
	}
	return "The cause is not known. Missing: " + out.Missing + "."
}

// ofTime says it of what is not full: its part of an operation's time. "" of other causes.
func ofTime(out *Finding, part string) string {
	switch out.Cause {
	case Helper:
		return fmt.Sprintf("The %s threads: they take %s of an operation's time, and nothing is full.", out.Role, part)
	case Guest, GuestOne:
		return fmt.Sprintf("The workload's own processor time: it is %s of an operation's time, and nothing is full.", part)
	case Link:
		return fmt.Sprintf("The link: %s of an operation's time is spent on it.", part)
	case Device:
		return fmt.Sprintf("The disk: %s of an operation's time is spent in it.", part)
	case Fsync:
		return fmt.Sprintf("Waiting in fsync: %s of an operation's time.", part)
	}
	return ""
}

// onDisks says what bounds a load on disks and files; w is the weight that decided.
func onDisks(k Name, f *facts, w float64) string {
	own, pct := &f.own, func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	switch k {
	case Device:
		return fmt.Sprintf("The disk: it has a request %s of the time, and %s of its bytes belong to the workload.", pct(own.or(fDeviceBusy, 0)), pct(diskPart(f)))
	case IOLimit:
		return fmt.Sprintf("The cgroup's limit of disk traffic: %s of it is used.", pct(own[fIOLimit]))
	case Depth:
		return fmt.Sprintf("Too few requests in flight (%.3g): %s of an operation's time is spent in the disk%s.", f.inFlight(), pct(w), f.wouldDo())
	case Fsync:
		return fmt.Sprintf("The fsyncs: operations wait in them for %s of the time%s.", pct(own.or(fSync, w)), f.flushed())
	case PageCache:
		return fmt.Sprintf("The page cache: %s of the workload's bytes reached no disk, and %s of the baseline's, so the two do not read and write the same thing.", pct(own[fMissed]), pct(f.base[fMissed]))
	case Gofer:
		return fmt.Sprintf("Round trips to the gofer: with the wake-ups, they take %s of an operation's time, and the gofer uses %.3g cores.", pct(f.trips()), own.or(fGofer, 0))
	}
	return ""
}

// wouldDo says what the disk does with more in flight, where a cell of the family shows it.
func (f *facts) wouldDo() string {
	switch gain, more := f.gain(); {
	case gain >= 1:
		return fmt.Sprintf(", which does %.3g times as much with %.3g times as many", gain, more)
	case f.slowed() > 0:
		return ", as long as with the fewest in flight"
	}
	return ""
}

// flushed says how often the disk's cache was flushed meanwhile, where that was read.
func (f *facts) flushed() string {
	if n := f.own.or(fDeviceFlushes, 0); n >= 1 {
		return fmt.Sprintf(", and the disk's cache is flushed %.3g times a second", n)
	}
	return ""
}

// elseText says what is known about a cause that has no name.
func elseText(f *facts, v *verdict, part string) string {
	const none = "None of the resources that were read explains it: "
	switch v.why {
	case whyWork:
		return none + f.times(f.took()) + ". Possible reasons are an emulated processor, nested page tables, memory bandwidth and the kernel's own work."
	case whyStalls:
		return none + "few operations take very long, and the median one hardly longer than natively. Possible reasons are lost packets, memory reclaim and pauses of a runtime."
	case whyPeer:
		return none + fmt.Sprintf("a thread on the other side is busy for %.0f %% of the time.", 100*f.own[fOther])
	case whyNeighbour:
		return none + "the disk serves other processes."
	}
	return none + "the largest part of the added time is " + part + " of an operation's time."
}

// duration writes seconds with three digits: 13 ms, 1.25 s, 104 µs.
func duration(s float64) string {
	for _, u := range []struct {
		name string
		of   float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if s >= 0.9995*u.of {
			return fmt.Sprintf("%.*f %s", max(0, 2-int(math.Floor(math.Log10(s/u.of*1.0005)))), s/u.of, u.name)
		}
	}
	return fmt.Sprintf("%.3g µs", 1e6*s)
}
