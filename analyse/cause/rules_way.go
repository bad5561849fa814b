package cause

import (
	"math"

	"tare/record"
)

// linkRule: the bytes that went over it, of those that it can carry. A request and its
// reply take turns where few are under way: then both ways add up.
// The limit allows for that: each way of a closed loop of few is idle while the
// other is busy.
func linkRule() rule {
	use := linkUse
	return rule{kind: Link, limit: 0.6, full: true, needs: []string{"link"}, weight: use,
		shows: []gauge{
			{name: "link, share of its rate", unit: record.Fraction, limit: 0.6, get: use, series: []string{record.LinkReceived, record.LinkSent, record.LinkRate}},
			{name: "bytes that wait before it", unit: record.Byte, get: plain(fLinkBacklog), series: []string{record.LinkBacklog}},
			{name: "packets dropped before it", unit: record.PerSecond, get: plain(fLinkDrops), series: []string{record.LinkDrops}},
		}}
}

func linkUse(f *facts) float64 {
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

// interceptionRule: system calls x what the sandbox adds to one, as a part of the
// time of the operations that are under way.
// The limit is about the third below which package structural calls a cost one of
// the implementation.
func interceptionRule() rule {
	part := func(f *facts) float64 { return f.intercepted() }
	return rule{kind: Interception, limit: 0.3, needs: []string{"calls"},
		weight: part,
		shows: []gauge{
			{name: "system calls x what the sandbox adds to one, share of the time", unit: record.Fraction, limit: 0.3, get: part, series: []string{record.SystemCalls}},
		}}
}

// intercepted is the part of an operation's time that goes into the interception of its
// calls.
func (f *facts) intercepted() float64 {
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

// connectionsRule: a server leaves connections at its port. One that is short of processor time does so too, so a full thread goes
// before it. The limit is a tenth of what the load opens: a server that accepts a burst has some for a moment.
func connectionsRule() rule {
	return rule{kind: Connections, limit: 0.1, needs: []string{"proc"},
		weight: func(f *facts) float64 { return f.own[fQueued] / max(1, f.inFlight()) },
		shows: []gauge{
			{name: "connections that wait to be accepted", unit: record.Count, get: plain(fQueued), series: []string{record.QueuedConnections}},
		}}
}

// pathRule: time that was added, that no thread accounts for, and that is there with
// a single operation under way too.
// A quarter of the time is more than what varies from trial to trial.
func pathRule() rule {
	part := func(f *facts) float64 { return f.addedOf(func(_, constant float64) float64 { return constant }) }
	return rule{kind: Path, limit: 0.25, weight: part,
		shows: []gauge{
			{name: "added time that nothing was busy in, share of an operation's", unit: record.Fraction, limit: 0.25, get: part},
			{name: "added time that nothing was busy in", unit: record.Second, get: func(f *facts) float64 { return f.added() }},
			{name: "added time of a launch in the runtime's calls", unit: record.Second, get: func(f *facts) float64 { return f.step(fRuntime) }},
			{name: "added time of a launch in the program's own start or end", unit: record.Second, get: func(f *facts) float64 { return f.step(fProgram) }},
		}}
}

// saturationRule: such time that comes with load, and no thread is full.
// The limit is as for the path.
func saturationRule() rule {
	part := func(f *facts) float64 {
		return f.addedOf(func(all, constant float64) float64 { return all - constant })
	}
	return rule{kind: Saturation, limit: 0.25, weight: part,
		shows: []gauge{
			{name: "added time that comes with load, share of an operation's", unit: record.Fraction, limit: 0.25, get: part},
		}}
}

// addedOf is a share of the part of an operation's time that was added: of all of it,
// where nothing tells what of it is constant.
func (f *facts) addedOf(share func(all, constant float64) float64) float64 {
	if f.baseline {
		return 0
	}
	all, constant := f.addedPart()
	if math.IsNaN(constant) {
		return all
	}
	return share(all, constant)
}
