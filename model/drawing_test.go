package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"tare/record"
)

// Draw makes a random Config with exactly one bottleneck, drawn evenly from Causes: the ground
// truth for the rules of causes. Its steps: a shape and costs around the defaults, without any
// bottleneck; a short run, to find its rate and CPU; then Plant. An error means a mistake in
// Draw.
func Draw(seed uint64) (Config, Cause, error) {
	r := rand.New(rand.NewPCG(seed, 0x6472617700000001))
	all := Causes()
	what := all[r.IntN(len(all))]
	c, err := DrawWith(seed, what)
	return c, what, err
}

// DrawMild is Draw with a bottleneck that leaves 75 to 95 % of the rate, in place of
// 30 to 60 %.
func DrawMild(seed uint64) (Config, Cause, error) {
	r := rand.New(rand.NewPCG(seed, 0x6472617700000003))
	all := Causes()
	what := all[r.IntN(len(all))]
	c, err := drawLeaving(seed, what, 0.75, 0.95)
	return c, what, err
}

// DrawWith is Draw for a given cause.
func DrawWith(seed uint64, what Cause) (Config, error) { return drawLeaving(seed, what, 0.3, 0.6) }

// drawLeaving draws a Config whose bottleneck leaves lo to hi of the rate.
func drawLeaving(seed uint64, what Cause, lo, hi float64) (Config, error) {
	r := rand.New(rand.NewPCG(seed, 0x6472617700000002))
	c := roomy(r, what)
	switch {
	case what == GuestOne: // natively the thread is as full, so a more expensive guest would be its whole cost
		c.Guest.Factor, c.Guest.Exit = 1, 0
	case lo > 0.6 && (what == PathLength || what == Interception || what == Link): // what the sandbox costs besides would be greater than a mild cause
		c.Path.Delay, c.Guest.Factor = 0, 1
		for _, v := range []*float64{&c.Guest.Exit, &c.Guest.Wake, &c.Helper.PerMessage, &c.Helper.PerByte, &c.Helper.Wake, &c.Helper.WakeCPU} {
			*v /= 4
		}
	}
	c.Seed = seed
	try := c
	try.Load.Warmup, try.Load.Duration = 0.03, 0.1
	res, err := Run(try)
	if err != nil {
		return c, fmt.Errorf("draw %d, %s: %w", seed, what, err)
	}
	_, msgs, _ := c.demand()
	t := res.Totals
	if t.Operations == 0 {
		return c, fmt.Errorf("draw %d, %s: nothing went through in %g s", seed, what, t.Window)
	}
	c = Plant(c, what, t.Operations/msgs/t.Window, t.CPU/t.Window, between(r, lo, hi))
	if err := c.Check(); err != nil {
		return c, fmt.Errorf("draw %d, %s: %w", seed, what, err)
	}
	return c, nil
}

func between(r *rand.Rand, lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }

// logBetween draws evenly in the logarithm.
func logBetween(r *rand.Rand, lo, hi float64) float64 {
	return math.Exp(between(r, math.Log(lo), math.Log(hi)))
}

// roomy draws a Config that no resource bounds, in a shape that can show a cause.
func roomy(r *rand.Rand, what Cause) Config {
	c := Default()
	if !what.shows(VM) || what.shows(Sentry) && r.IntN(4) == 0 {
		c.Isolation, c.Helper.Role = Sentry, record.RoleSentry
	}
	least, most := 1, 24
	if r.IntN(2) == 0 {
		c.Load.Mode = Stream
	}
	switch what {
	case HelperFull, GuestFull, GuestOne, Imbalance:
		least = 4
	case HostFull, Interception:
		most = 12
	case PathLength:
		c.Load.Mode, most = RR, 4
	case Saturation:
		c.Load.Mode, least = RR, 8
	}
	n := least + r.IntN(most-least+1)
	c.Load.Connections = n
	c.Load.Size = int(logBetween(r, 16, 65536))
	for _, v := range []*float64{&c.Kernel.PerMessage, &c.Kernel.PerRead, &c.Kernel.PerByte, &c.Kernel.SoftIRQ, &c.Kernel.SoftIRQPerByte,
		&c.Kernel.Switch, &c.Guest.Exit, &c.Guest.Wake, &c.Helper.PerMessage, &c.Helper.PerByte, &c.Helper.Wake, &c.Helper.WakeCPU,
		&c.Path.Delay, &c.Path.LinkDelay, &c.Path.Peer} {
		*v *= logBetween(r, 0.7, 1.4)
	}
	c.Guest.HaltPoll = []float64{0, 50e-6, 200e-6}[r.IntN(3)]
	c.Noise = Noise{Trial: between(r, 0, 0.03), Interval: between(r, 0.01, 0.06), Op: between(r, 0.1, 0.4)}
	c.Host.Cores = []int{48, 64, 96}[r.IntN(3)]
	// Queues, interrupts and threads each have a core, and the link is far away.
	c.Guest.Boot = min(c.Host.Cores, 2*n+2)
	c.Helper.Threads = n
	if c.Isolation == VM && r.IntN(3) == 0 {
		c.Helper.Role = record.RoleVMM
	}
	c.Path.LinkRate = logBetween(r, 40e9, 400e9) / 8
	if what == HelperFull {
		c.Helper.Threads = 1 + r.IntN(max(1, min(n/4, 3)))
	}
	return c
}
