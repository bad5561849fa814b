package cause

import "math"

// greatest chooses where nothing is full. In a closed loop of few operations, no resource
// ever is. Then the greatest part of an operation's time is the cause, or of the added
// time, where the cell is slower than its baseline.
func (v verdict) greatest(all []rule, limit map[Name]float64, f *facts) verdict {
	parts, total := v.parts(f)
	if total == 0 {
		return v.none(all, f)
	}
	best, next := None, None
	for _, k := range Names() {
		switch p, ok := parts[k]; {
		case !ok || math.IsNaN(p) || k == None:
		case p > parts[best]:
			best, next = k, best
		case p > parts[next]:
			next = k
		}
	}
	v.cycle = true
	v.part = parts[best]
	v.split = math.Abs(parts[Path] - parts[Saturation])
	share := parts[best] / total
	if total < 1 && (best == Path || best == Saturation) {
		if w := v.other(f); w.cause == Other {
			return w
		}
	}
	switch {
	case best == None || total == 1 && share < 0.25:
		return v.none(all, f)
	case (best == Path || best == Saturation) && f.own.has(fHelperCPU) && v.unpriced(f) && !f.mixed && math.Log(f.tookInAll()) > 0.5*math.Log(f.slower()):
		// While an operation waits for a thread that such calls keep busy, nothing of its own is busy.
		return v.untold(f.times(f.tookInAll())+", and "+unpriced, Interception, best)
	case next != None && parts[next] > near*parts[best]:
		if best == Path && next == Saturation || best == Saturation && next == Path {
			return v.untold("the study has no cell with few enough operations under way", best, next)
		}
		return v.untold("they take about the same part of an operation's time", best, next)
	case best == Device && f.costs && ownDisk(&f.own) && diskPart(f) < 0.9*diskPart(f.baseFacts()):
		v.why = whyNeighbour
		return v.clear(Other, v.part, 1)
	case best == Path || best == Saturation:
		if w := v.unseen(all, limit, f, best); w.cause != best {
			return w
		}
	case (best == Other || best == Helper) && f.own.has(fHelperCPU) && v.unpriced(f):
		return v.untold(unpriced, best, Interception) // what catches calls takes the callers' time
	}
	if best == Path || best == Saturation {
		share = (parts[Path] + parts[Saturation]) / total
	}
	if total < 1 && share < 0.5 {
		v.why = whyParts
		return v.clear(Other, parts[best], 0.5-share)
	}
	return v.clear(best, parts[best], min(share, 1-parts[next]/parts[best]))
}

// parts are those of an operation's added time where the cell costs, and otherwise those of
// all its time. total is what they are parts of, in the same unit.
func (v *verdict) parts(f *facts) (out map[Name]float64, total float64) {
	own, ok := f.stays()
	if !ok {
		return nil, 0
	}
	t := f.time()
	out = map[Name]float64{}
	base, is := f.baseStays()
	added := t - f.baseFacts().time()
	if !is || !f.costs && !(added > 0.13*t) {
		for k, x := range own.at {
			out[k] = x / t
		}
		out[GuestOne] += own.work / t
		out[None] = own.left / t
		if k := f.roomy(); k == Depth {
			out[Depth] = out[Device]
			delete(out, Device)
		}
		v.name(f, out)
		return out, 1
	}
	if !(added > 0) {
		return nil, 0
	}
	for k, x := range own.at {
		out[k] = max(0, x-base.at[k]) / t
	}
	if f.alike(Host) { // what takes more of the processors waits for them longer
		f.hand(out, Host)
	}
	all, constant := f.addedPart()
	all = min(all, added/t)
	if more := max(0, own.work-base.work); more > 0 {
		// Work that is done by one at a time, under a lock, has a queue that no thread shows.
		rate := f.own[fRate]
		waits := stay(more, more*rate, f.inFlight(), 1)
		v.why = whyWork
		out[Other] = waits / t
		all, constant = max(0, all-(waits-more)/t), min(constant, max(0, all-(waits-more)/t)) // of NaN NaN
	}
	// A thread of the other endpoint that an operation takes longer of, which is not sandboxed.
	if more := own.peer - base.peer; more > out[Other]*t && f.own[fOther] > f.base[fOther]+0.05 {
		v.why = whyPeer
		out[Other] = more / t
		all, constant = max(0, all-more/t), min(constant, max(0, all-more/t))
	}
	out[Saturation] = all
	if !math.IsNaN(constant) {
		out[Path], out[Saturation] = constant, all-constant
	} else if all > 0 {
		out[Path] = all
	}
	if trips := f.trips(); trips > 0 { // the gofer's own work is among the helpers'
		work := f.own[fGofer] / f.own[fRate] / t
		out[Gofer] = work + out[Path] + out[Saturation]
		out[Helper] = max(0, out[Helper]-work)
		if f.base.has(fHelperCPU) { // the baseline's sentry does the rest: what this one does more is to ask
			out[Gofer] += out[Helper]
			delete(out, Helper)
		}
		delete(out, Path)
		delete(out, Saturation)
	}
	v.name(f, out)
	return out, added / t
}

// hand gives the part of a resource that is as full natively to what takes more
// processor time, in proportion.
func (f *facts) hand(parts map[Name]float64, k Name) {
	sum := 0.0
	by := []Name{Interception, Helper, GuestOne, Imbalance}
	for _, x := range by {
		sum += parts[x]
	}
	if !(sum > 0) {
		return
	}
	for _, x := range by {
		parts[x] *= 1 + parts[k]/sum
	}
	delete(parts, k)
}

// name gives what waits for the workload's own processor time its name.
func (v *verdict) name(f *facts, parts map[Name]float64) {
	if v.weights[Guest] > v.weights[GuestOne] || f.own.or(fGuestCPUs, 2) < 2 {
		parts[Guest] = parts[GuestOne]
		delete(parts, GuestOne)
	}
}

// other checks time in which nothing was busy: whether something else than a longer path or a
// queue inside the sandbox explains it.
func (v verdict) other(f *facts) verdict {
	s := &f.own
	switch {
	case f.stalls():
		v.why = whyStalls
		return v.clear(Other, v.part, 1)
	case s.or(fOther, 0) >= 0.7 && s[fOther] > f.base.or(fOther, 0)+0.1:
		v.why = whyPeer
		return v.clear(Other, v.part, 1)
	case ownDisk(s) && diskPart(f) < 0.9*diskPart(f.baseFacts()):
		v.why = whyNeighbour
		return v.clear(Other, v.part, 1)
	}
	return v
}

const unpriced = "the price of a system call was not measured"

// unpriced reports whether system calls may cost more than in the baseline, and nobody knows by how much. In a guest
// they do not, nor if the baseline's sandbox intercepts them as well.
func (v *verdict) unpriced(f *facts) bool {
	return math.IsNaN(v.weights[Interception]) && !f.inGuest() && (!f.own.has(fHelperCPU) || !f.base.has(fHelperCPU))
}

// unseen looks at time in which nothing was busy before it is called a path or a
// saturation: what else leaves such time.
func (v verdict) unseen(all []rule, limit map[Name]float64, f *facts, best Name) verdict {
	switch {
	case f.inFlight() <= alone:
		v.cause = best
		return v
	}
	// A queue before something that is full looks the same: it must have been looked at.
	if w := v.unread(all, f); w.cause == Unknown {
		return w
	}
	if v.unpriced(f) {
		return v.untold(unpriced, best, Interception) // many calls at once add up as well
	}
	for _, k := range []Name{Quota, Host, Steal} { // so do queues before threads that are held up at times
		if v.weights[k] >= 0.5*limit[k] && !f.alike(k) {
			return v.untold("threads are held up at times", best, k)
		}
	}
	v.cause = best
	return v
}

// stalls reports whether few operations took very long, and most as long as natively: the
// median operation does not have the time that was added to the mean.
func (f *facts) stalls() bool {
	mean, middle := f.own[fTime]-f.base[fTime], f.own[fMedian]-f.base[fMedian]
	return middle < mean/2 // false of NaN
}

// why says why something else is taken to be the cause.
type why uint8

const (
	whyNothing   why = iota
	whyWork          // the same work takes more processor time
	whyStalls        // few operations took very long
	whyPeer          // a thread of the other endpoint
	whyNeighbour     // the disk serves others
	whyParts         // no part is half of it
)
