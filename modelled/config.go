package modelled

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"tare/model"
	"tare/param"
	"tare/record"
	"tare/sizing"
	"tare/study"
)

// What a trial is cut to, seconds: five periods of a CPU quota, and some thousand
// requests.
const (
	mostWarmup   = 0.2
	mostDuration = 0.5
	leastWindow  = 0.1
	// In the open loop at a low rate, time passes until so many requests came.
	fewRequests = 300
)

// What a container adds to a round trip: the ends of its veth pair, seconds. Its
// processes are the host's own.
const containerDelay = 0.4e-6

// What gVisor's network stack takes of a message and of a byte, seconds: twice a
// vhost thread's.
const (
	netstackMessage = 5e-6
	netstackByte    = 0.7e-9
)

// prices are what catching a system call costs on each of gVisor's platforms,
// seconds. Usual figures; docs/model.md.
func prices() map[string]float64 {
	return map[string]float64{"systrap": 2e-6, "ptrace": 15e-6, "kvm": 0.8e-6}
}

// unknown says what the model does not know.
type unknown struct{ what string }

func (u *unknown) Error() string { return "not modelled: " + u.what }

func notModelled(format string, args ...any) error { return &unknown{fmt.Sprintf(format, args...)} }

// Words of the workloads net and syscall that the model knows, and of the sandbox vm.
const (
	kindNet     = "net"
	kindSyscall = study.PriceKind
	auto        = "auto"
	all         = "all"

	roleServer = "server"
	roleClient = "client"
	roleMain   = "main"
	// roleWorkload is a thread's.
	roleWorkload = string(record.RoleWorkload)
)

// config is a cell in terms of the model; the error is an *unknown if the model has
// no terms for it.
func (p *Player) config(cell record.Cell) (model.Config, study.Resolved, error) {
	c := model.Default()
	res, err := p.study.Resolve(p.catalogue, cell)
	if err != nil {
		return c, res, err //nolint:wrapcheck // it names the cell
	}
	if p.isSentinel(cell) {
		return c, res, notModelled("the sentinel, since a model does not drift")
	}
	if res.Victim != nil {
		return c, res, notModelled("a victim beside the load; remove victim")
	}
	if res.Copies > 1 && res.Workload.Kind != kindFio {
		return c, res, notModelled("copies of %s at once: the model has copies of fio alone; write copies: [1]", res.Workload.Kind)
	}
	switch res.Workload.Kind {
	case kindNet:
		if res.Isolate == roleClient {
			return c, res, notModelled("isolate %s: the model has the server's sandbox; write isolate: server", res.Isolate)
		}
		c.Load, err = netLoad(res.Params)
	case kindSyscall:
		if call := res.Params.Str(study.PriceParam); call != study.PriceLevel {
			err = notModelled("%s with %s %s; write %s: %s", res.Workload.Kind, study.PriceParam, call, study.PriceParam, study.PriceLevel)
		}
	case kindFio:
		_, err = disk(res)
		return c, res, err
	default:
		err = notModelled("%s; the model has net, fio and syscall", res.Workload.Kind)
	}
	if err != nil {
		return c, res, err
	}
	for _, name := range slices.Sorted(maps.Keys(res.Settings)) {
		if level := res.Settings[name]; level != record.SettingHost {
			return c, res, notModelled("%s %s; write %s: [%s]", name, level, name, record.SettingHost)
		}
	}
	if res.LinkPath != "" {
		return c, res, notModelled("link-path %s; write link-path: [bridge]", res.LinkPath)
	}
	// Of every end, natively too. A rate is of the wire, with its headers.
	c.Path.LinkDelay += res.LinkDelay.Seconds()
	if res.LinkRate > 0 {
		c.Path.LinkRate = min(c.Path.LinkRate, model.Payload*float64(res.LinkRate))
	}
	if res.CPUs != "" {
		cpus, err := param.ParseCPUs(res.CPUs)
		if err != nil {
			return c, res, err //nolint:wrapcheck // it names the value
		}
		c.Host.Cores = len(cpus)
	}
	if c, err = isolate(c, res); err != nil {
		return c, res, err
	}
	if err := c.Check(); err != nil {
		return c, res, notModelled("%v", err)
	}
	return c, res, nil
}

func (p *Player) isSentinel(cell record.Cell) bool {
	s := p.study.Sentinel
	return s != nil && s.Cell.Key() == cell.Key()
}

// netLoad is what the workload net does, from its parameters.
func netLoad(v param.Values) (model.Load, error) {
	l := model.Default().Load
	l.Mode, l.Connections, l.Rate = model.Mode(v.Str("mode")), v.Int("connections"), v.Float("rate")
	l.Size = 64
	if l.Mode == model.Stream {
		l.Size = 64 << 10
	}
	if v.Str("size") != auto {
		l.Size = int(v.Size("size"))
	}
	switch reply := int(v.Size("reply")); {
	case v.Str("profile") != "":
		return l, notModelled("profiles of uperf; remove profile")
	case v.Str("protocol") != "tcp":
		return l, notModelled("net over %s; write protocol: tcp", v.Str("protocol"))
	case l.Mode == model.Stream && v.Str("direction") != "upload":
		return l, notModelled("streams in the direction %s; write direction: upload", v.Str("direction"))
	case l.Mode == model.RR && reply != 0 && reply != l.Size:
		return l, notModelled("replies whose size differs from the request's; remove reply")
	case !v.Bool("nodelay"):
		return l, notModelled("Nagle's algorithm; write nodelay: true")
	}
	l.Warmup = min(mostWarmup, v.Duration("warmup").Seconds())
	measured := v.Duration("duration").Seconds()
	if v.Int("count") > 0 {
		measured = mostDuration
	}
	l.Duration = max(leastWindow, min(measured, mostDuration))
	if l.Rate > 0 {
		l.Duration = max(l.Duration, min(measured, fewRequests/l.Rate))
	}
	return l, nil
}

// isolate puts the sandbox around the server.
func isolate(c model.Config, res study.Resolved) (model.Config, error) {
	t := res.Traits
	switch {
	case t.Family == record.FamilyNative:
		return c.Native(res.CPULimit), nil
	case t.Family == record.FamilyContainer && t.OwnKernel == record.No:
		c = c.Native(res.CPULimit)
		c.Path.Delay = containerDelay
		return c, nil
	case t.Family == record.FamilyGVisor && prices()[t.Platform] > 0:
		c.Isolation = model.Sentry
		c.Kernel.Price = prices()[t.Platform]
		c.Helper.PerMessage, c.Helper.PerByte = netstackMessage, netstackByte
		c.Quota.Cores = res.CPULimit
		return c, nil
	case t.Family == record.FamilyVM && res.Options["default_vcpus"] != "": // its size is known
		return sized(c, res)
	}
	return c, notModelled("sandbox %s; the model has processes, containers, gVisor and the sandbox vm", res.Sandbox)
}

// sized is the machine around the server, by the sandbox's parameters.
func sized(c model.Config, res study.Resolved) (model.Config, error) {
	v := res.Options
	if res.Traits.Emulated == record.Yes {
		return c, notModelled("%s with processors emulated in software; write accel: kvm", res.Sandbox)
	}
	boot := -1
	if v.Str("default_vcpus") != all {
		boot = v.Int("default_vcpus")
	}
	r := sizing.Runtime{VCPUs: boot, Flavour: sizing.Go}
	if f := v.Str("sizing"); f == string(sizing.RS) {
		r.Flavour, r.OverheadVCPUs, r.OverheadMiB = sizing.RS, v.Float("overhead_vcpus"), v.Int("overhead_memory")
	}
	out, err := c.SizedBy(sizing.Pod{CPULimit: res.CPULimit, MemoryLimit: res.MemoryLimit}, r)
	if err != nil {
		return c, err //nolint:wrapcheck // it names the figure
	}
	if most := v.Int("max_vcpus"); most > 0 && r.Flavour == sizing.Go {
		out.Guest.Boot = min(out.Guest.Boot, most)
		out.Guest.Hotplugged = min(out.Guest.Hotplugged, most-out.Guest.Boot)
	}
	out.Helper.Threads = min(out.Helper.Threads, out.Guest.Boot)
	if v.Str("network_queues") != auto {
		out.Helper.Threads = min(out.Guest.Boot, v.Int("network_queues"))
	}
	return out, nil
}

// facts say what the model made of a cell: of a trial cut short, by how much.
func facts(c model.Config, res study.Resolved) map[string]string {
	seconds := func(s float64) string { return time.Duration(s * float64(time.Second)).String() }
	if res.Workload.Kind == kindFio {
		return map[string]string{"model.isolation": string(res.Traits.Family)}
	}
	out := map[string]string{"model.isolation": string(c.Isolation), "model.host_cores": fmt.Sprint(c.Host.Cores)}
	if res.Workload.Kind == kindNet {
		out["model.measured"] = seconds(c.Load.Duration) + " of " + cmp.Or(res.Params.Str("duration"), seconds(c.Load.Duration))
		out["model.warmup"] = seconds(c.Load.Warmup) + " of " + res.Params.Str("warmup")
	}
	return out
}
