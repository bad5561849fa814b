package cause

import "math"

// facts are what one decision rests on: the figures of a cell, or of one of its
// trials alone, beside those of its baseline and its family. Decisions are pure
// functions of them.
type facts struct {
	own, base sheet   // base is blank for the baseline itself
	baseline  bool    // it is the baseline
	past      bool    // nothing can be read again
	cluster   bool    // it was measured in pods; the missing figures need a node's observer
	mixed     bool    // the trial does other things too, which the response does not count
	undecided bool    // nothing is decided of it, for want of blocks or because its interval holds 1
	worse     bool    // and it looks worse by more than 3 %
	costs     bool    // it is worse than the baseline, or looks so, and by enough to have a cause
	helper    string  // role of the thread that own[fHelperBusy] is of
	load      float64 // operations in flight, as the workload was told: connections, jobs x depth; NaN: not known
	baseLoad  float64 // the same of the baseline
	pinned    float64 // processors that the sandbox may use; 0: any
	emulated  bool    // software emulates the guest's processors
	calls     *Calls
	price     *Price // of the CPU time per unit of work, as a ratio to the baseline, which the texts state; nil: not known
	polling   bool   // the helper's thread is busy whatever there is to do
	natively  *stays // the baseline's time taken apart, which all trials of a cell share; nil: not yet
	from      difference
	low, high *point // the cells of the family with the lowest and the next higher load; nil: none
}

// Calls are the system calls of a workload and what the sandbox adds to one: package
// structural has them where the study measured them.
type Calls struct {
	Each        float64 // calls an operation, or a million bytes where the rate is of bytes
	Rate        float64 // operations, or million bytes, a second in this cell; 0: fRate
	Cost        float64 // seconds that the sandbox adds to a call
	Parallelism float64 // calls under way at once; used where the load is not known
}

// point is a cell of a family, as the others look at it.
type point struct {
	load   float64
	added  float64 // s an operation: unaccounted time over the baseline's
	value  float64 // operations a second, or what the response counts
	helper float64 // CPU of helpers
	busy   float64 // of their busiest thread
}

// inGuest says whether the end has a kernel of its own with processors of its own.
func (f *facts) inGuest() bool { return f.own.has(fGuestCPUs) || f.own.has(fVCPU) }

// inFlight is the number of operations under way: by Little's law if both figures
// are there, else what the workload was told.
func (f *facts) inFlight() float64 {
	if f.own.has(fRate, fTime) {
		return max(1, f.own[fRate]*f.own[fTime])
	}
	return f.load
}

// lighter reports whether fewer operations are under way than in the baseline.
func (f *facts) lighter() bool {
	return f.baseFacts().inFlight() >= spread*f.inFlight() // false of NaN
}

// time is that of an operation.
func (f *facts) time() float64 { return timeOf(&f.own, f.load) }

func timeOf(s *sheet, load float64) float64 {
	switch {
	case s.has(fTime):
		return s[fTime]
	case s.has(fRate) && s[fRate] > 0 && load > 0:
		return load / s[fRate]
	}
	return math.NaN()
}

// tasks is for how long the workload's own threads and their kernel held processors, by the
// nearest account of it: the guest's, else the host's. A guest that is not told when its
// processors wait for the host's counts that as well: an operation is there all the same.
func tasks(s *sheet) float64 {
	switch {
	case s.has(fGuest):
		return s[fGuest]
	case s.has(fVCPU):
		return s[fVCPU]
	}
	return s.or(fWork, 0)
}

// used is the CPU time that they took. Where the host counted what it gave the guest's
// processors, the guest cannot have used more, whatever it counts. It may have used less:
// the host also counts exits, and polling for idle processors.
func used(s *sheet) float64 { return min(tasks(s), s.or(fVCPU, math.Inf(1))) }

// busy reports whether it was read how busy any threads are.
func (s *sheet) busy() bool {
	return s.has(fGuest) || s.has(fVCPU) || s.has(fWork) || s.has(fHelperCPU) || s.has(fCgroup)
}

// added is how much longer than in the baseline the part of an operation's time is, in
// seconds, that no resource accounts for: delays, sleeps, wake-ups, places in a queue.
func (f *facts) added() float64 {
	if !f.own.busy() || !f.base.busy() {
		return math.NaN() // no thread was read: that nothing was busy is not known
	}
	own, ok := f.stays()
	base, is := f.baseStays()
	if !ok || !is {
		return math.NaN()
	}
	return own.left - base.left
}

// addedPart is the part of the cycle that was added and that nothing accounts for;
// constant what of it was there at the family's lowest load already.
func (f *facts) addedPart() (all, constant float64) {
	t, a := f.time(), f.added()
	if math.IsNaN(t) || math.IsNaN(a) {
		return math.NaN(), math.NaN()
	}
	all = max(0, a/t)
	switch n := f.inFlight(); {
	case n <= alone:
		return all, all // nobody else is there to wait for
	case f.low == nil || math.IsNaN(f.low.added) || f.low.load > n/spread:
		return all, math.NaN()
	}
	return all, min(all, max(0, f.low.added/t))
}

const (
	alone  = 1.5 // operations in flight at which nobody waits for another
	spread = 1.5 // the family's lowest load must be lower by so much to tell path from saturation
)

// waits is the part of the time that the end was ready to run and had no processor,
// the quota's throttling left out.
func (f *facts) waits() float64 {
	s := &f.own
	if !s.has(fWait) {
		return math.NaN()
	}
	w := unthrottled(s)
	c := s.or(fHelperCPU, 0) + s.or(fVCPU, 0) + s.or(fWork, 0)
	if !(w+c > 0) {
		return 0
	}
	// One thread that serves many operations holds up all of them: its own time counts
	// then, else the waits that each operation meets.
	out := w / (w + c) * min(1, f.occupied(w/max(c, 1e-9), w+c))
	if n := f.inFlight(); n > 0 && s.has(fRate) {
		out = max(out, w/n)
	}
	return min(1, out)
}

// lag is the part of the time of threads that want to run in which they have no processor.
func (f *facts) lag() float64 {
	s := &f.own
	w, c := unthrottled(s), s.or(fHelperCPU, 0)+s.or(fVCPU, 0)+s.or(fWork, 0)
	if !(w+c > 0) {
		return 0
	}
	return min(0.99, w/(w+c))
}

// unthrottled is what the end's threads waited for a processor in s/s, the quota left
// out. The kernel counts a thread that is throttled as one that waits, and its
// throttled time once for each processor, however many threads are held up there.
// So what is left after that time may still be throttling, in periods that were
// throttled.
func unthrottled(s *sheet) float64 {
	return max(0, s.or(fWait, 0)-s.or(fThrottledTime, 0)) * (1 - s.or(fThrottled, 0))
}

// occupied is how busy the busiest thread was, its waits included. If nothing is known of
// single threads, because each ran too little to be named, the work is shared out among as
// many as in the baseline. If that is not known either, one had at most what all had.
func (f *facts) occupied(share, all float64) float64 {
	s := &f.own
	top := 0.0
	for _, p := range [][2]figure{{fHelperBusy, fHelperWait}, {fVCPUBusy, fVCPUWait}, {fWorkBusy, fWorkWait}} {
		if s.has(p[0]) {
			top = max(top, s[p[0]]+s.or(p[1], share*s[p[0]])) // one whose wait is not read waits as all do
		}
	}
	if top == 0 {
		if b := &f.base; b.has(fWork, fWorkBusy) && b[fWorkBusy] > 0 {
			return all / max(1, b[fWork]/b[fWorkBusy])
		}
		return all
	}
	return min(top, all)
}

// threads is how many of the workload's threads were busy at once; at least 1; NaN
// where nothing says. The baseline's host sees them one by one, but soft interrupts
// are charged to the workload there as well; a guest counts those that are ready.
// known says that it is the baseline's word: a guest that is looked at ten times a second
// may have had more threads in between.
func (f *facts) threads() (n float64, known bool) {
	s := &f.base
	if f.baseline || !f.inGuest() {
		s = &f.own
	}
	n = math.NaN()
	if s.has(fWork, fWorkBusy) && s[fWorkBusy] > 0 {
		n, known = s[fWork]/s[fWorkBusy], true
	}
	ready := f.own[fGuestReady]
	if ready > 0 && ready < 1.5 && s.or(fWorkBusy, 0) >= 0.5 {
		return 1, true // one that is busy natively, and none is ever ready beside it
	}
	if ready > 0 && !(n <= ready+0.5) {
		n, known = ready, false
	}
	if n < 1.5 {
		return 1, known
	}
	return n, known
}
