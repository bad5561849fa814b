package cause

import (
	"fmt"
	"math"
)

// half is the confidence below which a cause is not named: it would be wrong more often than
// right.
const half = 0.5

// confident is the share of such findings that are right, as package scripts/truth/causes
// counted it with planted causes, mild and foreign ones. It has two factors: the most that
// could be known with the readings that were there, and how many of the trials reach the
// same verdict when each is judged alone. A verdict that is right less often than half of the
// time becomes Untold.
func (b *builder) confident(f *facts, v *verdict, each []sheet) float64 {
	if v.cause == Unknown || len(each) == 0 {
		return 0
	}
	of := map[Name]int{}
	one := *f
	for i := range each {
		one.own = each[i]
		of[decide(b.rules, &one).cause]++
	}
	n := float64(len(each))
	most, because := v.atBest(f)
	out := (0.2 + 0.8*float64(of[v.cause])/n) * most
	switch len(each) {
	case 1:
		out *= 0.7
	case 2:
		out *= 0.95
	}
	if out >= half || v.cause == Untold {
		return out
	}
	next := Other
	for _, k := range Names() { // what most of the other trials say
		if k != v.cause && k != Untold && k != Unknown && of[k] > of[next] {
			next = k
		}
	}
	if because == "" {
		because = fmt.Sprintf("of %d trials, those that say so when judged alone: %d", len(each), of[v.cause])
	}
	*v = v.or(next, because)
	most, _ = v.atBest(f)
	return most
}

// crowded reports whether there are so many threads to a guest's processor that most of them wait.
func (f *facts) crowded() bool { return f.own[fGuestRunnable] >= 4*f.own[fGuestCPUs] }

// atBest is how sure a verdict is where all trials agree. It is never more than 0.95:
// there are causes that nobody has simulated. because says why where it is below half.
func (v *verdict) atBest(f *facts) (sure float64, because string) {
	switch v.cause {
	case Untold: // the likelier of several first
		return 0.9 / float64(len(v.among)+1), ""
	case None:
		if f.undecided {
			return 0.8, ""
		}
		return 0.9, "" // a cause that costs as much natively, and is not full, goes undetected
	case Depth:
		if g, _ := f.gain(); math.IsNaN(g) {
			return 0.8, "" // nothing shows what the disk does with more
		}
	case Path, Saturation:
		if !f.own.has(fMedian) && !f.own.has(fRuntime) {
			return 0.45, "no median latency was read, and few operations that take very long look the same"
		}
	case Guest, GuestOne:
		// More work fills processors too. Where many threads wait for them, more of them help anyway.
		if f.costs && f.took() > 1.03 && f.moreWork() && (v.cause != Guest || !f.crowded()) {
			return 0.45, f.times(f.took())
		}
	case Helper:
		if f.costs && f.took() > max(1.03, math.Exp(f.from.open)) && f.moreWork() && f.workExplains(v.weights[Helper]) {
			return 0.45, f.times(f.took())
		}
		if math.IsNaN(f.own[fHelperBusy]) || f.own[fHelperBusy] >= 0.7 && !f.works() {
			return 0.8, "" // nothing tells it from a thread that polls
		}
	}
	return 0.95, ""
}
