package cause

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/ordered"
)

// verdict is what one decision came to.
type verdict struct {
	cause   Name
	among   []Name
	because string           // of Untold: what keeps them from being told apart
	missing string           // of Unknown
	weights map[Name]float64 // of each rule; NaN: not read
	part    float64          // the weight that decided: of a resource that is not full, its part of an operation's time
	cycle   bool             // that it is
	why     why              // of Other
	split   float64          // of Path and Saturation: by what part of an operation's time one is greater
	margin  float64          // by how much it is clear of its limit and of the next cause
}

// near is how close two weights may be for one to be called greater: costs that
// were planted vary by more than that from trial to trial.
const near = 0.85

// linkFull is the part of a link's rate from which nothing else can be worth more than a
// ninth.
const linkFull = 0.9

// decide names the cause. It is a pure function, and looks at no name of a sandbox
// or workload.
func decide(all []rule, f *facts) verdict {
	v := verdict{weights: make(map[Name]float64, len(all))}
	limit := make(map[Name]float64, len(all))
	for i := range all {
		v.weights[all[i].kind], limit[all[i].kind] = all[i].weight(f), all[i].limit
	}
	if f.own.has(fRuntime) {
		return v.launch(f)
	}
	if v.weights[PageCache] >= limit[PageCache] { // false of NaN
		if because := f.brief(); because != "" {
			return v.beyondCache(all, limit, f).perhaps(PageCache, because)
		}
		return v.clear(PageCache, v.weights[PageCache], v.weights[PageCache]-apart) // two sides that do not do the same have no other cause to be found
	}
	return v.beyondCache(all, limit, f)
}

// beyondCache decides where both sides read and write the same thing.
func (v verdict) beyondCache(all []rule, limit map[Name]float64, f *facts) verdict {
	if v = v.choose(all, limit, f); v.emulation(f, limit) {
		v.among = nil
		return v.clear(Emulation, v.weights[Emulation], v.weights[Emulation]-limit[Emulation])
	}
	return v
}

// emulation reports whether what was found is the doing of a processor that software emulates: its guest's work takes many times as
// long, so that the guest is full, or looks so, and its helpers have as much of the emulator's work. Where many threads wait for the guest's
// processors, more of those help anyway.
func (v *verdict) emulation(f *facts, limit map[Name]float64) bool {
	if !f.costs || !(v.weights[Emulation] >= limit[Emulation]) || !f.moreWork() { // false of NaN
		return false
	}
	found := v.among
	if v.cause != Untold {
		found = []Name{v.cause}
	}
	for _, k := range found {
		switch {
		case k == GuestOne, k == Guest && !f.crowded(), k == Other && (v.why == whyWork || len(found) > 1):
		case k == Helper && f.workExplains(v.weights[Helper]):
		default:
			return false
		}
	}
	return true
}

// choose finds what bounds the cell, whatever its processors are.
func (v verdict) choose(all []rule, limit map[Name]float64, f *facts) verdict {
	there := func(k Name) bool { return v.weights[k] >= limit[k] } // false of NaN
	if there(IOLimit) && !there(Quota) {
		return v.clear(IOLimit, v.weights[IOLimit], v.weights[IOLimit]-limit[IOLimit])
	}
	if there(Quota) && f.besideQuota(v.weights[Interception]) {
		return v.clear(Interception, v.weights[Interception], v.weights[Interception]/most-1)
	}
	// What holds a thread up makes everything behind it look busy or slow: it goes first.
	// But it makes no link carry more bytes.
	beside := f.besideHost(v.weights, limit)
	for _, k := range []Name{Quota, Steal, Host} {
		if !there(k) || v.weights[Link] >= linkFull || k == Host && beside {
			continue
		}
		if !f.alike(k) {
			return v.clear(k, v.weights[k], v.weights[k]/limit[k]-1)
		}
		if k == Host && f.slower() < fargone {
			return v.resource(all, limit, f, true).or(Host, "the host is as full beside the baseline")
		}
	}
	return v.resource(all, limit, f, beside)
}

// resource chooses where nothing holds everything up. beside says that the host is full, and
// that this is not what the cell costs.
func (v verdict) resource(all []rule, limit map[Name]float64, f *facts, beside bool) verdict {
	if beside && v.weights[Interception] >= most {
		return v.clear(Interception, v.weights[Interception], v.weights[Interception]/most-1)
	}
	var full []Name
	for i := range all {
		k := all[i].kind
		if all[i].full && v.weights[k] >= limit[k] && (k != Host || !beside) && !f.alike(k) { // false of NaN
			full = append(full, k)
		}
	}
	one := slices.Contains(full, GuestOne)
	full = slices.DeleteFunc(full, func(k Name) bool { return f.dearer(k, v.weights[k]) })
	full = specific(full)
	if len(full) > 0 && f.costs && f.stalls() {
		v.why = whyStalls
		return v.clear(Other, 1, 1)
	}
	if len(full) == 0 && one && f.moreWork() {
		v.why = whyWork
		return v.clear(Other, f.took()-1, 1)
	}
	if len(full) > 0 {
		return v.fullest(f, full)
	}
	return v.greatest(all, limit, f)
}

// specific leaves out what another cause explains better: a disk that has the requests of an fsync
// is its doing, and an fsync that waits for a full thread is the thread's.
func specific(full []Name) []Name {
	if slices.ContainsFunc(full, func(k Name) bool { return k == Helper || k == Guest || k == GuestOne }) {
		return slices.DeleteFunc(full, func(k Name) bool { return k == Fsync })
	}
	if slices.Contains(full, Fsync) {
		return slices.DeleteFunc(full, func(k Name) bool { return k == Device || k == Depth })
	}
	return full
}

// or is the verdict where another cause may explain the cell as well.
func (v verdict) or(k Name, because string) verdict {
	switch {
	case v.cause == Unknown || v.cause == k || slices.Contains(v.among, k):
		return v
	case v.cause == Untold:
		return v.untold(v.because, append(slices.Clone(v.among), k)...)
	}
	return v.untold(because, v.cause, k)
}

// perhaps is the verdict where another cause may be behind whatever was found, and because says why that is not known.
func (v verdict) perhaps(k Name, because string) verdict {
	if v.cause == Untold {
		return v.untold(because+"; and "+v.because, append(slices.Clone(v.among), k)...)
	}
	return v.or(k, because)
}

// untold is the verdict where several causes would explain the cell, the likelier first.
func (v verdict) untold(because string, among ...Name) verdict {
	v.cause, v.among, v.because = Untold, among, because
	return v
}

// most is the part of the time, or of what fills a thread, from which calls explain it
// by themselves.
const most = 0.5

// besideHost says that the cell's threads wait for the host's processors, and that this
// is not what it costs: the baseline's wait nearly as long, while something of the
// sandbox is full by what it did when it ran. On a small host that both ends share
// everything waits, and a call that takes a hundred times as long is not that.
// Waiting w of the time makes what is done 1/(1-w) as long; it is the cost's cause if
// that explains half of it, by logarithms.
func (f *facts) besideHost(weights, limit map[Name]float64) bool {
	slower := f.slower()
	if !f.costs || !(slower > 1.15) || !(weights[Host] > 0) {
		return false
	}
	base := f.baseFacts()
	w0 := base.waits()
	if math.IsNaN(w0) || math.Log((1-w0)/(1-weights[Host])) >= math.Log(slower)/2 {
		return false
	}
	s := &f.own
	return weights[Interception] >= most || s.or(fHelperBusy, 0) >= limit[Helper] || s.has(fGuestCPUs) && s[fGuest] >= limit[Guest]*s[fGuestCPUs]
}

// fargone is how many times as long operations must take before a host that is as full
// natively is ruled out. Waiting for processors explains less. Below that, the sandbox's
// threads may need the processors more often than native ones, and the host is one of
// several causes that the readings do not tell apart.
const fargone = 8

// alike says that a resource of the host, which others fill too, does not explain the cost:
// it is as full in the baseline, or nearly so. Where the processors are missing for w of the
// time, what is done takes 1/(1-w) as long. It is the cost's cause if what was waited beyond
// the baseline explains half of the cost, by logarithms. What more processor time an
// operation takes is not the host's doing: it would take it on an idle host too.
func (f *facts) alike(k Name) bool {
	slower := f.slower()
	if f.baseline || !(f.costs && slower > 1.03 || f.undecided) {
		return false
	}
	cost := math.Log(max(slower, 1.03))
	w, w0 := math.NaN(), math.NaN()
	base := f.baseFacts()
	switch k {
	case Host:
		if f.own[fHostBusy] < 0.9*f.base[fHostBusy] { // it has more room than beside the baseline
			return true
		}
		w, w0 = f.waits(), base.waits()
	case Steal:
		w, w0 = f.own[fHostSteal], f.base[fHostSteal]
	case SoftIRQ:
		return f.base[fHostSoft] > 0.95*f.own[fHostSoft]
	}
	if math.IsNaN(w) {
		return false
	}
	if math.IsNaN(w0) { // not read: more than all of the wait it cannot be
		w0 = 0
	}
	fuller := math.Log((1 - w0) / (1 - w))
	if k == Host { // several threads may wait at once, so that w says more than there is time
		fuller = min(fuller, math.Log((1-base.lag())/(1-f.lag())))
	}
	if w0 > 0.7*w { // few trials of two cells differ by as much
		fuller = min(0, fuller)
	}
	calls := -math.Log(1-min(0.99, f.intercepted()/(1-f.lag()))) >= cost/2 // they take it, and wait for it
	if calls && k == Host && slower < fargone && base.lag() > near*f.lag() {
		return true // threads wait longer because they run longer, for the calls
	}
	return fuller < cost/2
}

// slower is the ratio of an operation's time to the baseline's, or that of the
// response where it has no time; f.costs says which way it goes.
func (f *facts) slower() float64 {
	if r := f.time() / timeOf(&f.base, f.baseLoad); !math.IsNaN(r) {
		return r
	}
	r := f.own[fValue] / f.base[fValue]
	return max(r, 1/r)
}

// dearer reports whether a resource is as full as in the baseline, or less. Then it does not
// distinguish the two: what differs is how much of it, or of others, an operation takes.
func (f *facts) dearer(k Name, use float64) bool {
	if !f.costs || !(f.slower() > 1.03) {
		return false
	}
	b := f.baseFacts()
	switch k {
	case Link:
		return linkUse(b) > use*1.1
	case GuestOne:
		return f.took() > 1.15 && f.moreWork()
	case Helper: // one that has room for the cost is a part of an operation's time among others
		_, ok := f.stays()
		_, is := f.baseStays()
		return ok && is && !f.bounds(use)
	case Depth:
		return !f.lighter() // as few are in flight natively
	case Device:
		return deviceUse(b) > 0.9*use || diskPart(f) < 0.9*diskPart(b)
	case Fsync: // natively it takes most of the time as well: what was added counts
		added := f.own[fSync]*f.time() - f.base.or(fSync, 0)*b.time()
		return added < most*(f.time()-b.time())
	}
	return false
}

// moreWork reports whether the cell costs more mostly because the same work takes more
// processor time: that explains at least half of the cost, by logarithms.
func (f *facts) moreWork() bool { return math.Log(f.took()) > 0.5*math.Log(f.slower()) }

// bounds reports whether a resource that is used to a part is surely at least half of why the cell costs more, by logarithms: whatever else
// gets cheaper, it does at most 1/use times as much.
func (f *facts) bounds(use float64) bool {
	return -math.Log(use) < math.Log(f.slower())/2 // false of NaN
}

// workExplains reports whether the processor time that an operation takes beyond the baseline's can be why the cell costs more, although a
// helper's thread is used to so large a part. Two laws of closed loops say where it cannot be: that of use, and that without the work an
// operation is shorter by no more than the work and its queue, here as long as if it were done by one at a time.
func (f *facts) workExplains(use float64) bool {
	if f.bounds(use) {
		return false
	}
	own, ok := f.stays()
	base, is := f.baseStays()
	added := f.time() - f.baseFacts().time()
	if !ok || !is || !(added > 0) {
		return true // nothing says that it cannot
	}
	more := max(0, own.work-base.work)
	queue := max(0, own.at[GuestOne]-base.at[GuestOne])
	return max(more+queue, stay(more, more*f.own[fRate], f.inFlight(), 1)) >= most*added
}

// took is how much more processor time the same work takes than in the baseline; NaN where the response
// does not count all of the work.
func (f *facts) took() float64 {
	if f.mixed {
		return math.NaN()
	}
	return (used(&f.own) / f.own.unit()) / (used(&f.base) / f.base.unit())
}

// tookInAll is the same with the time of the sandbox's helpers.
func (f *facts) tookInAll() float64 {
	all := func(s *sheet) float64 { return (used(s) + s.or(fHelperCPU, 0)) / s.unit() }
	return all(&f.own) / all(&f.base)
}

// times says in texts how much more processor time the same work takes. The price has the same
// figure of all that the host counted, helpers included, and reports say it beside the text: it
// goes before the one that decides, whose threads are fewer.
func (f *facts) times(took float64) string {
	if f.price != nil && f.price.Ratio > 1 {
		took = f.price.Ratio
	}
	return fmt.Sprintf("the same work takes %.3g times the processor time", took)
}

func (v verdict) clear(k Name, part, margin float64) verdict {
	v.cause, v.part, v.margin = k, part, max(0, margin)
	return v
}

// fullest chooses among resources that are full: the one with most weight, the first
// of those that are equal. A thread that is full of intercepted calls is full
// because of them.
func (v verdict) fullest(f *facts, full []Name) verdict {
	slices.SortStableFunc(full, func(a, b Name) int {
		switch {
		case v.weights[a] > v.weights[b]:
			return -1
		case v.weights[a] < v.weights[b]:
			return 1
		}
		return 0
	})
	top := full[0]
	if (top == GuestOne || top == Guest) && v.weights[Interception] >= most*v.weights[top] {
		return v.clear(Interception, v.weights[Interception], v.weights[Interception]/(most*v.weights[top])-1)
	}
	if w := v.weights[Interception]; f.costs && (top == GuestOne || top == Guest) && -math.Log(1-w) >= 0.5*math.Log(f.slower()) {
		return v.clear(Interception, w, w)
	}
	if (top == Device || top == Depth) && slices.Contains(full, Device) && slices.Contains(full, Depth) {
		if gain, more := f.gain(); gain > 0 {
			return v.untold(fmt.Sprintf("the operations are in the disk, which does %.3g times as much with %.3g times as many in flight", gain, more), Device, Depth)
		}
		return v.untold("the operations are in the disk, and the study has no cell that shows whether it does more with more in flight; add one with a higher iodepth", Device, Depth)
	}
	if len(full) > 1 && v.weights[full[1]] > 0.95*v.weights[top] {
		return v.untold("they are equally full", full...)
	}
	if top == Helper && f.helper == roleGofer && f.trips() >= tripping {
		return v.clear(Gofer, f.trips(), f.trips())
	}
	if top == Helper && f.own.or(fHelperBusy, 0) >= 0.95 && !f.works() {
		return v.untold("nothing tells a thread that works from one that polls; add the cell with less load", Helper, Other)
	}
	margin := v.weights[top] - 0.7
	if len(full) > 1 {
		margin = v.weights[top] - v.weights[full[1]]
	}
	return v.clear(top, v.weights[top], margin)
}

// none is the verdict where no part counts: nothing of the sandbox, if enough was
// read to say so.
func (v verdict) none(all []rule, f *facts) verdict {
	if w := v.unread(all, f); w.cause == Unknown {
		return w
	}
	if f.costs && f.lighter() && !(f.slower() > 1.03) {
		return v.clear(None, 0, 1) // an operation takes as long, and fewer are under way
	}
	if f.costs && f.moreWork() {
		v.why = whyWork
		if f.own.has(fHelperCPU) && v.unpriced(f) {
			return v.untold(unpriced, Other, Interception)
		}
		return v.clear(Other, 0, 0.5)
	}
	if f.costs { // and yet it is slower: what is left are the causes that no reading of a resource shows
		among := []Name{Path, Saturation}
		if v.unpriced(f) {
			among = append(among, Interception)
		}
		return v.untold("no resource that was read is full, and no part of an operation's time stands out", among...)
	}
	if f.worse { // and nothing is decided: that nothing bounds it is as little sure as that something does
		return v.untold("the cell looks slower, but there are too few blocks to decide", Other, None)
	}
	if k := v.nearly(all, f); k != None {
		return v.untold("this resource is nearly full, although the cell is no slower than the baseline", k, None)
	}
	return v.clear(None, 0, 1)
}

// nearly is the resource that is nearest to its limit, if it has three quarters of it: so full
// it may hold operations up, and may not. Otherwise it is None.
func (v verdict) nearly(all []rule, f *facts) Name {
	out, most := None, 0.75
	for i := range all {
		use := v.weights[all[i].kind] / all[i].limit
		if all[i].kind == Device && diskPart(f) >= 0.5 && ownDisk(&f.own) {
			use = max(use, f.own[fDeviceBusy]/alwaysBusy)
		}
		if all[i].full && use >= most { // false of NaN
			out, most = all[i].kind, use
		}
	}
	return out
}

// unread is Unknown where something was not read that might be full. Links, devices
// and prices of calls are not asked for: few studies can have all of them, and without
// them most cells would have no verdict.
func (v verdict) unread(all []rule, f *facts) verdict {
	var names []string
	for i := range all {
		r := &all[i]
		if !r.full || r.kind == Link || r.kind == Device || r.kind == Depth || r.kind == Steal || !math.IsNaN(v.weights[r.kind]) {
			continue
		}
		for _, n := range r.needs {
			names = ordered.Add(names, n)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		list := strings.Join(names, ", ")
		v.cause, v.missing = Unknown, "readings of the collectors "+list
		switch {
		case f.past:
		case f.cluster:
			v.missing += ": run the study with --observe"
		default:
			v.missing += ": collect: {use: [" + list + "]}"
		}
	}
	return v
}
