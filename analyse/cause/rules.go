package cause

import "tare/record"

// rule is how one cause is told. Its weight is the part of the time that the cause
// takes: of a resource the part of it that is used, or the part of an operation's
// time that goes there. At 1 nothing goes beside it.
type rule struct {
	kind   Name
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
	return []rule{quotaRule(), hostRule(), stealRule(), softRule(), imbalanceRule(), helperRule(), linkRule(), ioLimitRule(), deviceRule(), depthRule(), fsyncRule(), pageCacheRule(), goferRule(), interceptionRule(), connectionsRule(), guestRule(), guestOneRule(), emulationRule(), pathRule(), saturationRule()}
}

func plain(at figure) func(*facts) float64 { return func(f *facts) float64 { return f.own[at] } }
