package cause

import "math"

// confident is the share of such findings that are right, as package scripts/truth/causes
// counted it with planted causes, mild and foreign ones. It has two factors: the most that
// could be known with the readings that were there, and how many of the trials reach the
// same verdict when each is judged alone.
func (b *builder) confident(f *facts, v *verdict, each []sheet) float64 {
	if v.cause == Unknown || len(each) == 0 {
		return 0
	}
	agree := 0
	one := *f
	for i := range each {
		one.own = each[i]
		if decide(b.rules, &one).cause == v.cause {
			agree++
		}
	}
	n := float64(len(each))
	out := (0.2 + 0.8*float64(agree)/n) * v.atBest(f)
	switch len(each) {
	case 1:
		out *= 0.7
	case 2:
		out *= 0.95
	}
	return out
}

// atBest is how sure a verdict is where all trials agree. It is never more than 0.95:
// there are causes that nobody has simulated.
func (v *verdict) atBest(f *facts) float64 {
	switch v.cause {
	case Untold: // the likelier of several first
		return 0.9 / float64(len(v.among)+1)
	case None:
		if f.undecided {
			return 0.8
		}
		return 0.9 // a cause that costs as much natively, and is not full, goes undetected
	case Path, Saturation:
		if !f.own.has(fMedian) && !f.own.has(fRuntime) {
			return 0.45 // few operations that take very long look the same
		}
	case Guest:
		return 0.9
	case GuestOne:
		if f.costs && f.took() > 1.03 && f.moreWork() {
			return 0.7 // it may be that the same work takes more
		}
	case Helper:
		if math.IsNaN(f.own[fHelperBusy]) || f.own[fHelperBusy] >= 0.7 && !f.works() {
			return 0.8 // nothing tells it from a thread that polls
		}
	}
	return 0.95
}
