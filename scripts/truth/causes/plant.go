package causes

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A plant is one cause, and how to put it into a world.
type plant struct {
	name    string
	cause   string // what a finding should name; "": name
	foreign bool   // its resource is not one of the named ones
	deep    bool   // it leaves a hundredth to a half of the rate
	draw    func(r *rand.Rand) world
	// put sets the cause to a strength; the rate falls as x rises from lo to hi.
	put    func(w *world, x float64)
	lo, hi float64
}

// Draws of worlds that can show a cause.
func net(place string, least, most int) func(*rand.Rand) world {
	return func(r *rand.Rand) world { return plain(r, place, false, false, least, most) }
}

func anyNet(least, most int, places ...string) func(*rand.Rand) world {
	return func(r *rand.Rand) world {
		return plain(r, places[r.IntN(len(places))], false, r.IntN(4) == 0, least, most)
	}
}

// crowded has neighbours that take the host's processors, beside the native path too.
func crowded(draw func(*rand.Rand) world) func(*rand.Rand) world {
	return func(r *rand.Rand) world {
		w := draw(r)
		w.crowded, w.others, w.wait = true, 1, 0.25+0.4*r.Float64()
		return w
	}
}

func disk(places ...string) func(*rand.Rand) world {
	return func(r *rand.Rand) world {
		return plain(r, places[r.IntN(len(places))], true, false, 1, 16)
	}
}

// disk1 has few requests in flight, which spend most of their time in a disk with room.
func disk1() func(*rand.Rand) world {
	return func(r *rand.Rand) world {
		w := disk(vm, container)(r)
		w.n = 1 + r.IntN(4)
		w.threads, w.helpers = w.n, w.n
		w.device = spread(r, 120e-6, 1.7)
		return w
	}
}

// plants returns the named and the foreign causes.
func plants() []plant {
	return slices.Concat(named(), crowds(), foreigners())
}

func named() []plant {
	none := func(*world, float64) {}
	return []plant{
		{name: "none", draw: anyNet(1, 16, vm, sentry, container), put: none},
		{name: "quota", draw: anyNet(1, 24, vm, sentry, container), put: func(w *world, x float64) {
			f := w.solve(w.n)
			work, soft, helper := w.cost()
			w.quota = f.rate * (work + soft + helper) / x
		}, lo: 0.9, hi: 3},
		{name: "helper", draw: func(r *rand.Rand) world {
			w := anyNet(4, 24, vm, vm, sentry)(r)
			if r.IntN(3) == 0 {
				w = plain(r, vm, true, false, 4, 16)
			}
			w.helpers = 1
			return w
		}, put: func(w *world, x float64) { w.helper *= x }, lo: 0.5, hi: 200},
		{name: "guest", draw: func(r *rand.Rand) world {
			w := anyNet(8, 24, vm)(r)
			w.cpus, w.queues = 1+r.IntN(2), 1
			w.helpers = 2
			return w
		}, put: func(w *world, x float64) { w.work *= x; w.soft *= x }, lo: 0.5, hi: 300},
		{name: "guest-one", draw: func(r *rand.Rand) world {
			w := anyNet(8, 24, vm, vm, container)(r)
			w.threads = 1
			return w
		}, put: func(w *world, x float64) { w.work *= x }, lo: 0.5, hi: 300},
		{name: "host", draw: anyNet(1, 12, vm, container, sentry), put: func(w *world, x float64) { w.wait = min(0.95, x); w.others = 1 }, lo: 1e-4, hi: 0.95},
		{name: "link", draw: anyNet(24, 48, vm, container), put: func(w *world, x float64) { w.link /= x }, lo: 0.5, hi: 1e5},
		{name: "device", draw: func(r *rand.Rand) world {
			w := disk(vm, container)(r)
			w.n = 16 + r.IntN(32)
			w.threads, w.helpers = w.n, w.n
			w.lanes = 1 + r.IntN(2)
			w.device, w.peer = 1e-6, spread(r, 60e-6, 2)
			return w
		}, put: func(w *world, x float64) { w.device *= x }, lo: 0.1, hi: 1e4},
		{name: "depth", draw: disk1(), put: none},
		{name: "io-limit", draw: disk(vm, container), put: func(w *world, x float64) { w.limit = 0; w.limit = w.solve(w.n).rate / x }, lo: 0.9, hi: 3},
		{name: "fsync", draw: func(r *rand.Rand) world {
			w := disk(vm, container)(r)
			w.n = 1 + r.IntN(4)
			w.threads, w.helpers = w.n, w.n
			w.device = spread(r, 40e-6, 2)
			w.syncs = w.device * (2 + 20*r.Float64())
			w.sync = w.syncs
			return w
		}, put: func(w *world, x float64) { w.sync = w.syncs + x }, lo: 1e-8, hi: 1},
		{name: "page-cache", draw: func(r *rand.Rand) world {
			w := disk(vm, container, sentry)(r)
			w.cached = r.IntN(2) == 0
			w.cachedNatively = !w.cached
			return w
		}, put: none},
		{name: "gofer", draw: func(r *rand.Rand) world {
			w := net(sentry, 1, 4)(r)
			w.gofer = 0.2 + 0.5*r.Float64()
			return w
		}, put: func(w *world, x float64) { w.trip = x }, lo: 1e-8, hi: 1},
		{name: "path", draw: net(vm, 1, 4), put: func(w *world, x float64) { w.path += x }, lo: 1e-8, hi: 1},
		{name: "saturation", draw: func(r *rand.Rand) world {
			w := net(vm, 8, 32)(r)
			w.slots = max(2, w.n/4) + r.IntN(max(1, w.n/2))
			return w
		}, put: func(w *world, x float64) { w.path = x }, lo: 1e-8, hi: 1},
		{name: "imbalance", draw: func(r *rand.Rand) world {
			w := anyNet(6, 24, vm)(r)
			w.queues = 1
			return w
		}, put: func(w *world, x float64) { w.soft *= x }, lo: 0.5, hi: 300},
		{name: "interception", draw: net(sentry, 1, 8), put: func(w *world, x float64) { w.price += x }, lo: 1e-9, hi: 1e-2},
		{name: "steal", draw: anyNet(1, 16, vm, container), put: func(w *world, x float64) { w.steal = min(0.95, x) }, lo: 1e-4, hi: 0.95},
		{name: "softirq", draw: anyNet(4, 16, vm, container), put: func(w *world, x float64) { w.hostSoft = x }, lo: 1e-8, hi: 1},
	}
}

// crowds are causes beside neighbours that fill the host, in the baseline as well. The host is
// not why the cell costs.
func crowds() []plant {
	return []plant{
		{name: "busy host and a path", cause: "path", draw: crowded(net(vm, 1, 4)), put: func(w *world, x float64) { w.path += x }, lo: 1e-8, hi: 1},
		{name: "busy host and a long path", cause: "path", deep: true, draw: crowded(net(vm, 1, 16)), put: func(w *world, x float64) { w.path += x }, lo: 1e-8, hi: 10},
		{name: "busy host and interception", cause: "interception", draw: crowded(net(sentry, 1, 8)), put: func(w *world, x float64) { w.price += x }, lo: 1e-9, hi: 1e-2},
		{name: "busy host and a link", cause: "link", draw: crowded(anyNet(24, 48, vm, container)), put: func(w *world, x float64) { w.link /= x }, lo: 0.5, hi: 1e5},
	}
}

func foreigners() []plant {
	pauses := func(w *world, x float64) { w.pause = min(0.9, x) }
	return []plant{
		{name: "nested paging", foreign: true, draw: anyNet(1, 12, vm), put: func(w *world, x float64) { w.guestInflation = 1 + x }, lo: 1e-4, hi: 1e3},
		{name: "nested paging, one thread", foreign: true, draw: func(r *rand.Rand) world {
			w := net(vm, 2, 8)(r)
			w.threads = 1
			w.work *= 15
			return w
		}, put: func(w *world, x float64) { w.guestInflation = 1 + x }, lo: 1e-4, hi: 1e3},
		{name: "memory bandwidth", foreign: true, draw: anyNet(1, 12, vm, container, sentry), put: func(w *world, x float64) { w.inflation = 1 + x }, lo: 1e-4, hi: 1e3},
		{name: "polling", foreign: true, draw: func(r *rand.Rand) world {
			w := plain(r, vm, r.IntN(2) == 0, false, 2, 16)
			w.polling = true
			w.helpers = 1 + r.IntN(2)
			return w
		}, put: func(w *world, x float64) { w.guestInflation = 1 + x }, lo: 1e-4, hi: 1e3},
		{name: "pauses", foreign: true, draw: func(r *rand.Rand) world {
			w := anyNet(1, 12, vm, container)(r)
			w.stream, w.n = false, min(w.n, 16)
			w.pauseCPU = r.IntN(2) == 0
			return w
		}, put: pauses, lo: 1e-4, hi: 0.9},
		{name: "loss", foreign: true, draw: func(r *rand.Rand) world {
			w := net(vm, 1, 12)(r)
			w.drops = spread(r, 5, 4)
			return w
		}, put: pauses, lo: 1e-4, hi: 0.9},
		{name: "the other end", foreign: true, draw: net(vm, 4, 16), put: func(w *world, x float64) { w.peerCPU = x }, lo: 1e-8, hi: 1},
		{name: "lock", foreign: true, draw: net(vm, 6, 24), put: func(w *world, x float64) { w.lock = x }, lo: 1e-8, hi: 1},
		{name: "a neighbour's disk", foreign: true, draw: disk(vm, container), put: func(w *world, x float64) { w.neighbour = min(0.95, x) }, lo: 1e-4, hi: 0.95},
		{name: "reclaim", foreign: true, draw: disk(vm, container), put: pauses, lo: 1e-4, hi: 0.9},
	}
}

// drawn is a world with one cause.
type drawn struct {
	plant plant
	world world
	left  float64 // part of the rate that the cause leaves
	noise Noise
	// The study that looks at it.
	blocks int
	family bool // it has the cell with fewer operations under way too
	median bool // its workload tells the operation in the middle
	seed   uint64
}

// draw makes a world with one cause that leaves lo to hi of the rate. What the sandbox
// costs besides is at most a quarter of that, by logarithms.
func draw(seed uint64, all []plant, lo, hi float64, band Band) drawn {
	for try := uint64(0); ; try++ {
		r := rand.New(rand.NewPCG(seed, 0x63617573<<8|try)) //nolint:gosec // seeded: a trial must be repeatable
		p := all[r.IntN(len(all))]
		lo, hi := lo, hi
		if p.deep {
			lo, hi = 0.01, 0.5
		}
		d := drawn{plant: p, world: p.draw(r), left: lo + (hi-lo)*r.Float64(), seed: seed, noise: band.Draw(r), blocks: 2 + r.IntN(7), family: r.IntN(5) > 0, median: r.IntN(5) > 0}
		if p.hi == 0 { // nothing is planted: the other end is slow
			d.left = 1
			if p.name != "none" {
				if p.name == "page-cache" || d.excess(p) {
					return d
				}
				continue
			}
			d.world.peer = max(d.world.peer, 40*d.world.work*float64(d.world.n))
			d.world.peer += 30 / d.world.solve(d.world.n).rate
			return d
		}
		if p.name != "saturation" && !d.excess(p) {
			continue
		}
		without := d.world
		if p.name == "saturation" {
			without.slots = 0
			if !d.excess(p) || !saturate(&d) {
				continue
			}
			return d
		}
		p.put(&without, p.lo)
		top := without.solve(without.n).rate
		x, ok := search(p.lo, p.hi, d.left*top, func(x float64) float64 {
			w := d.world
			p.put(&w, x)
			return w.solve(w.n).rate
		})
		if !ok {
			continue
		}
		p.put(&d.world, x)
		return d
	}
}

// saturate finds the time that an operation takes inside with which the slots leave the
// wanted part. That time is there natively too: what the sandbox adds is the door.
func saturate(d *drawn) bool {
	w := &d.world
	x, ok := search(1e-7, 1e-2, d.left, func(x float64) float64 {
		v := *w
		v.device = x
		open := v
		open.slots = 0
		return v.solve(v.n).rate / open.solve(v.n).rate
	})
	w.device = x
	return ok
}

// excess makes the rest of the sandbox's cost small beside the cause: helpers, which are
// not the cause, serve side by side with few operations, so their time is scaled. False
// where that is not possible.
func (d *drawn) excess(p plant) bool {
	own := []string{"link", "busy host and a link", "guest-one", "device", "depth", "none"} // the native path has it too, or has room instead
	least := math.Pow(d.left, 0.25)
	if slices.Contains(own, p.name) {
		least = 0.985
	}
	for range 12 {
		w := d.world
		undo(&w, p)
		if n := w.native(); w.solve(w.n).rate >= least*n.solve(n.n).rate {
			return true
		}
		if p.name == "helper" {
			return true // its time is the cause
		}
		d.world.helper /= 2
	}
	return false
}

// undo takes the cause out again.
func undo(w *world, p plant) {
	switch p.name {
	case "quota":
		w.quota = 0
	case "path", "busy host and a path", "busy host and a long path":
		w.path = 0
	case "fsync":
		w.sync = w.syncs
	case "gofer":
		w.trip = 0
	case "io-limit":
		w.limit = 0
	case "page-cache":
		w.cached, w.cachedNatively = false, false
	case "host", "steal":
		w.wait, w.steal = 0, 0
	case "interception", "busy host and interception":
		w.price = 0
	case "softirq":
		w.hostSoft = 0
	case "the other end":
		w.peerCPU = 0
	case "lock":
		w.lock = 0
	case "pauses", "loss", "reclaim":
		w.pause = 0
	case "a neighbour's disk":
		w.neighbour = 0
	case "saturation":
		w.slots = 0
	case "imbalance", "guest":
		w.cpus, w.queues = w.host, w.host
	}
	w.inflation, w.guestInflation = 1, 1
}
