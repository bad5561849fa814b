package model

import (
	"fmt"
	"math"

	"tare/record"
	"tare/sizing"
)

// Isolation is where the workload runs.
type Isolation string

// The three paths. A sentry's workload threads run on the host's cores, and its network stack
// in helper threads; natively there is no guest and no helper.
const (
	Native Isolation = "native"
	VM     Isolation = "vm"
	Sentry Isolation = "sentry"
)

// Mode is the kind of load.
type Mode string

// Modes, as in the workload net's parameter mode.
const (
	RR     Mode = "rr"
	Stream Mode = "stream"
)

// Config is one cell. Times are in seconds, sizes in bytes, rates per second.
type Config struct {
	Seed      uint64
	Isolation Isolation
	Load      Load
	Kernel    Kernel
	Guest     Guest  // of VM
	Helper    Helper // of VM and Sentry
	Path      Path
	Quota     Quota
	Host      Host
	Noise     Noise
}

// Load is what the peer sends and what the workload does with it.
type Load struct {
	Mode        Mode
	Connections int     // 1 to 256
	Size        int     // of a message, and in mode rr of its reply: 1 B to 1 MiB
	Rate        float64 // requests a second over all connections, mode rr; 0: closed loop
	Threads     int     // of the workload; 0: one for each connection
	Work        float64 // user CPU of a message
	Window      int     // bursts in flight on a connection, mode stream
	Warmup      float64
	Duration    float64 // measured
}

// Kernel is the cost of a message in the kernel of the workload, host or guest.
type Kernel struct {
	PerMessage     float64 // mode rr: system calls and the socket's work, for a message and its reply
	PerRead        float64 // mode stream: of a message
	PerByte        float64 // copying
	SoftIRQ        float64 // of a burst (rr: of a message)
	SoftIRQPerByte float64
	Switch         float64 // from one thread to another
	Calls          float64 // system calls of a message
	Price          float64 // of intercepting one
	AllOnOne       bool    // every queue interrupts core 0
}

// Guest is the virtual machine's processors.
type Guest struct {
	Boot       int     // vCPUs at boot
	Hotplugged int     // vCPUs added for a CPU limit
	Factor     float64 // of the guest's costs over native: second page walk, virtio's driver
	Exit       float64 // CPU on the host for a kick, or a halt and its wake-up
	Wake       float64 // until a halted vCPU runs
	HaltPoll   float64 // the longest time that an idle vCPU polls on its core
	VMM        float64 // cores that the VMM's other threads and virtiofsd use
}

// Helper is the threads between link and guest, one for each queue.
type Helper struct {
	Role       record.ThreadRole // vhost, vmm, sentry, iothread
	Threads    int
	PerMessage float64 // of a burst each way (rr: of a message)
	PerByte    float64
	Wake       float64 // until a sleeping one runs
	WakeCPU    float64
	Batch      int // messages at most before others get their turn
}

// Path is the rest of the way.
type Path struct {
	Delay     float64 // one way, of the sandbox: interrupt injection, bridges; 0 natively
	Slots     int     // messages that may be inside the sandbox at once; 0: any number
	LinkRate  float64 // B/s each way
	LinkDelay float64 // one way
	Peer      float64 // of a reply and the next request at the other end
	PeerWrite float64 // of a message at the other end, mode stream
	PeerByte  float64
}

// Quota is the cgroup's CPU bandwidth. Cores 0: no limit.
type Quota struct {
	Cores  float64
	Period float64
	Slice  float64 // quota that a thread takes from the period at a time
}

// Host is the machine.
type Host struct {
	Cores      int
	Wake       float64 // of an idle core
	Contenders int     // threads of others that are always runnable
}

// Noise is standard deviations of logarithms.
type Noise struct {
	Trial    float64 // of all costs, from trial to trial
	Interval float64 // from 100 ms to the next
	Op       float64 // from message to message
}

// Payload is the part of a link's rate without headers: 1448 of 1538 bytes, with the headers of
// Ethernet, IP and TCP at 1500 B.
const Payload = 0.941

// Default is Kata's default machine (one vCPU, no limit) on 32 cores with 64
// threads and 25 GbE: docs/model.md says where each figure comes from.
func Default() Config {
	return Config{
		Seed:      1,
		Isolation: VM,
		Load:      Load{Mode: RR, Connections: 1, Size: 64, Window: 16, Warmup: 0.2, Duration: 1.2},
		Kernel: Kernel{PerMessage: 3.6e-6, PerRead: 0.6e-6, PerByte: 0.28e-9, SoftIRQ: 1.4e-6, SoftIRQPerByte: 0.16e-9,
			Switch: 0.8e-6, Calls: 2},
		Guest: Guest{Boot: sizing.DefaultVCPUs, Factor: 1.12, Exit: 1.5e-6, Wake: 5e-6, HaltPoll: 50e-6, VMM: 0.02},
		Helper: Helper{Role: record.RoleVhost, Threads: 1, PerMessage: 2.2e-6, PerByte: 0.34e-9, Wake: 5e-6, WakeCPU: 1.5e-6,
			Batch: 64},
		Path:  Path{Delay: 4e-6, LinkRate: 25e9 / 8 * Payload, LinkDelay: 8e-6, Peer: 14e-6, PeerWrite: 0.5e-6, PeerByte: 0.24e-9},
		Quota: Quota{Period: 0.1, Slice: 0.005},
		Host:  Host{Cores: 64, Wake: 2e-6},
		Noise: Noise{Trial: 0.01, Interval: 0.02, Op: 0.2},
	}
}

// Sized returns c with the machine that Kata's runtime in Go makes for a pod: vCPUs at boot (0: the default,
// negative: all of the host's) and a CPU limit in cores (0: no limit).
func (c Config) Sized(defaultVCPUs int, limit float64) (Config, error) {
	return c.SizedBy(sizing.Pod{CPULimit: limit}, sizing.Runtime{VCPUs: defaultVCPUs})
}

// SizedBy is Sized for any pod and any of Kata's runtimes.
func (c Config) SizedBy(p sizing.Pod, r sizing.Runtime) (Config, error) {
	r.HostCPUs = c.Host.Cores
	s, err := sizing.Of(p, r)
	if err != nil {
		return c, fmt.Errorf("model: %w", err)
	}
	c.Isolation = VM
	c.Guest.Boot, c.Guest.Hotplugged = s.VCPUsBoot, s.VCPUsHotplugged
	c.Helper.Threads, c.Quota.Cores = s.NetworkThreads, s.CPUQuotaCores
	return c, nil
}

// Native returns c without a sandbox, with the pod's CPU limit in cores (0: no limit): the
// baseline's cell.
func (c Config) Native(limit float64) Config {
	c.Isolation = Native
	c.Quota.Cores = limit
	c.Kernel.Price = 0
	c.Path.Delay, c.Path.Slots = 0, 0
	return c
}

// Check returns an error for a figure that is out of bounds. The bounds are wide: they only keep
// a trial finite.
func (c Config) Check() error {
	switch c.Isolation {
	case Native, VM, Sentry:
	default:
		return fmt.Errorf("isolation %q: write native, vm or sentry", c.Isolation)
	}
	if c.Load.Mode != RR && c.Load.Mode != Stream {
		return fmt.Errorf("mode %q: write rr or stream", c.Load.Mode)
	}
	if c.Load.Mode == Stream && c.Load.Rate != 0 {
		return fmt.Errorf("mode stream has no rate: write rr, or leave the rate out")
	}
	for _, f := range []struct {
		name     string
		v        int
		min, max int
	}{
		{"connections", c.Load.Connections, 1, 256}, {"size", c.Load.Size, 1, 1 << 20},
		{"threads", c.Load.Threads, 0, 1024}, {"window", c.Load.Window, 1, 1024},
		{"vCPUs at boot", c.Guest.Boot, 1, 512}, {"hot-plugged vCPUs", c.Guest.Hotplugged, 0, 512},
		{"helper threads", c.Helper.Threads, 1, 512}, {"batch", c.Helper.Batch, 1, 1024},
		{"slots", c.Path.Slots, 0, 1 << 20}, {"host cores", c.Host.Cores, 1, 1024},
		{"contenders", c.Host.Contenders, 0, 1 << 16},
	} {
		if f.v < f.min || f.v > f.max {
			return fmt.Errorf("%s %d: write %d to %d", f.name, f.v, f.min, f.max)
		}
	}
	const second, perByte = 0.01, 1e-6 // no network message costs more
	for _, f := range []struct {
		name     string
		v        float64
		min, max float64
	}{
		{"rate", c.Load.Rate, 0, 1e7}, {"work", c.Load.Work, 0, second},
		{"warm-up", c.Load.Warmup, 0, 60}, {"duration", c.Load.Duration, 0.1, 3600},
		{"cost of a message", c.Kernel.PerMessage, 1e-8, second}, {"cost of a read", c.Kernel.PerRead, 1e-8, second}, {"cost of a byte", c.Kernel.PerByte, 0, perByte},
		{"soft interrupt", c.Kernel.SoftIRQ, 1e-8, second}, {"soft interrupt of a byte", c.Kernel.SoftIRQPerByte, 0, perByte},
		{"context switch", c.Kernel.Switch, 0, second}, {"calls", c.Kernel.Calls, 0, 1e4}, {"price of a call", c.Kernel.Price, 0, second},
		{"guest factor", c.Guest.Factor, 0.1, 100}, {"exit", c.Guest.Exit, 0, second}, {"wake-up of a vCPU", c.Guest.Wake, 0, second},
		{"halt polling", c.Guest.HaltPoll, 0, second}, {"VMM", c.Guest.VMM, 0, 1},
		{"helper's message", c.Helper.PerMessage, 1e-8, second}, {"helper's byte", c.Helper.PerByte, 0, perByte},
		{"wake-up of a helper", c.Helper.Wake, 0, second}, {"CPU of a helper's wake-up", c.Helper.WakeCPU, 0, second},
		{"delay", c.Path.Delay, 0, 10}, {"link rate", c.Path.LinkRate, 1e3, 1e12}, {"link delay", c.Path.LinkDelay, 1e-7, 10},
		{"peer", c.Path.Peer, 0, 10}, {"peer's write", c.Path.PeerWrite, 1e-8, second}, {"peer's byte", c.Path.PeerByte, 0, perByte},
		{"quota period", c.Quota.Period, 0.001, 1}, {"quota slice", c.Quota.Slice, 1e-4, c.Quota.Period},
		{"wake-up of a core", c.Host.Wake, 0, second},
		{"noise of trials", c.Noise.Trial, 0, 1}, {"noise of intervals", c.Noise.Interval, 0, 1}, {"noise of messages", c.Noise.Op, 0, 1},
	} {
		if math.IsNaN(f.v) || f.v < f.min || f.v > f.max {
			return fmt.Errorf("%s %g: write %g to %g", f.name, f.v, f.min, f.max)
		}
	}
	if c.Isolation == VM && c.Guest.Boot < c.Helper.Threads {
		return fmt.Errorf("%d helper threads for %d vCPUs at boot: write at most one for each", c.Helper.Threads, c.Guest.Boot)
	}
	if q := c.Quota.Cores; math.IsNaN(q) || q < 0 || q > 4096 || q > 0 && q < 0.01 {
		return fmt.Errorf("quota %g cores: write 0.01 to 4096, or 0 for no quota", q)
	}
	return nil
}
