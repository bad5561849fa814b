package model

import "slices"

// Cause is a bottleneck's name.
type Cause string

// The bottlenecks that can be planted, and None.
const (
	None         Cause = "none"
	CPUQuota     Cause = "quota"        // the cgroup's CPU quota
	HelperFull   Cause = "helper"       // the threads between link and guest
	GuestFull    Cause = "guest"        // all of the guest's cores
	GuestOne     Cause = "guest-one"    // one: a workload of a single thread
	HostFull     Cause = "host"         // the host's cores, by others
	Link         Cause = "link"         // the link's rate
	PathLength   Cause = "path"         // a constant added time
	Saturation   Cause = "saturation"   // so many messages inside the sandbox and no more
	Imbalance    Cause = "imbalance"    // one guest core takes every interrupt
	Interception Cause = "interception" // system calls and their price
)

// Causes lists them all, None first.
func Causes() []Cause {
	return []Cause{None, CPUQuota, HelperFull, GuestFull, GuestOne, HostFull, Link, PathLength, Saturation, Imbalance, Interception}
}

// Relieve removes one resource's bound, and changes nothing else. The response of a Config with a
// planted bottleneck improves most if that is relieved.
func Relieve(c Config, what Cause) Config {
	switch what {
	case CPUQuota:
		c.Quota.Cores = 0
	case HelperFull:
		c.Helper.PerMessage /= 10
		c.Helper.PerByte /= 10
	case GuestFull:
		c.Guest.Hotplugged = min(512, c.Guest.Hotplugged+3*(c.Guest.Boot+c.Guest.Hotplugged))
	case GuestOne:
		c.Load.Threads = 0
	case HostFull:
		c.Host.Contenders = 0
	case Link:
		c.Path.LinkRate *= 10
	case PathLength:
		c.Path.Delay = 0
	case Saturation:
		c.Path.Slots = 0
	case Imbalance:
		c.Kernel.AllOnOne = false
	case Interception:
		c.Kernel.Price = 0
	}
	return c
}

// Plant adds one bottleneck to a Config without any. rate is what c reached without it, in bursts
// a second (messages in mode rr); cpu is the cores that it used; part, from 0.2 to 0.7, is how
// much of that rate should remain. If c's shape cannot show the bottleneck (one connection cannot
// be imbalanced), Plant changes the shape too.
func Plant(c Config, what Cause, rate, cpu, part float64) Config {
	x, msgs, bytes := c.demand()
	cycle := 1e9 * float64(c.Load.Connections) / rate // ns a connection needs for a burst
	work := func(perBurst float64) { c.Load.Work += max(0, perBurst) / msgs * 1e-9 }
	thread := x.message + x.call + x.work + x.swtch
	left := 1e9 / (rate * part) // ns between bursts, of all connections
	trips := 2.0                // through a helper
	if c.Load.Mode == Stream {
		trips = 1
	}
	switch what {
	case None:
		c.Path.Peer += 40 * cycle * 1e-9
		c.Path.PeerWrite += 10 * cycle / msgs * 1e-9
	case CPUQuota:
		// A cheaper message also helps under a quota, but must help less.
		h := trips * (x.helper + x.helperTail)
		rest := thread + x.softirq + x.softTail
		c.Quota.Cores = max(0.05, cpu*min(part, 0.75*rest/(rest+h)))
	case HelperFull:
		n := float64(min(c.Helper.Threads, c.Load.Connections))
		k := max(1, left*n/(trips*(x.helper+x.helperTail)))
		c.Helper.PerMessage *= k
		c.Helper.PerByte *= k
	case GuestFull:
		n := float64(max(1, min(4, c.Load.Connections/4)))
		if c.Load.Mode == RR { // the work that fills more cores would itself become the cycle
			n = float64(max(1, min(4, c.Load.Connections/8)))
		}
		c.Guest.Boot, c.Guest.Hotplugged = int(n), 0
		c.Helper.Threads = min(c.Helper.Threads, int(n))
		work(left*n - thread - x.softirq - x.softTail)
		c = c.ample(rate * part)
	case GuestOne:
		c.Load.Threads = 1
		work(left - thread)
	case HostFull:
		work(1.5 * cycle)
		c.Host.Contenders = int(float64(c.Host.Cores) / part * 1.5)
	case Link:
		c.Path.LinkRate = bytes * rate * part
	case PathLength:
		c.Path.Delay += cycle * (1/part - 1) / 2 * 1e-9
	case Saturation:
		c.Path.Slots = max(1, int(part*float64(c.Load.Connections)/4))
	case Imbalance:
		c.Kernel.AllOnOne = true
		k := max(1, left/(x.softirq+x.softTail))
		c.Kernel.SoftIRQ *= k
		c.Kernel.SoftIRQPerByte *= k
	case Interception:
		added := cycle * (1/part - 1)
		if c.Load.Mode == Stream { // stages work side by side: the thread alone has to become the slowest
			added = cycle / part
		}
		c.Kernel.Price += added / (msgs * c.Kernel.Calls) * 1e-9
	}
	return c
}

// ample makes the helpers so cheap that a rate uses less than half of them.
func (c Config) ample(rate float64) Config {
	x, _, _ := c.demand()
	n := float64(min(c.Helper.Threads, c.Load.Connections))
	if k := 0.4 * n * 1e9 / rate / (2 * (x.helper + x.helperTail)); k < 1 {
		c.Helper.PerMessage = max(1e-8, c.Helper.PerMessage*k)
		c.Helper.PerByte *= k
	}
	return c
}

// shows reports whether a bottleneck can show with an isolation.
func (w Cause) shows(i Isolation) bool {
	inGuest := []Cause{GuestFull, GuestOne, Imbalance}
	return i == VM && w != Interception || i == Sentry && !slices.Contains(inGuest, w)
}
