package cause

import (
	"maps"
	"math"
	"slices"

	"tare/record"
)

// gathered are the samples of one trial on their way into sheets.
type gathered struct {
	endpoints map[string]*endpointGathered
	system    map[string]float64 // by mode
	devices   map[string]*device
	harness   float64 // CPU of the harness itself
	soft      float64 // of the host's processor that had most; negative where it was not read
}

type endpointGathered struct {
	sheet
	helper             string // role whose thread is fHelperBusy
	most               string // role of helpers that used most
	mostCPU            float64
	busiest, wait      map[string]float64 // by role
	periods, throttled float64
	cpus               map[string]*processor
	machine            map[string]float64 // processors of its machine, by mode, if that is not the trial's
	disk               map[string]float64 // what the cgroup did to disks, and may do, by the sample's name
}

// processor is one of a guest's.
type processor struct{ all, idle, task, soft, steal, count float64 }

type device struct{ busy, queue, bytes, requests, flushes float64 }

func (g *gathered) endpoint(name string) *endpointGathered {
	e := g.endpoints[name]
	if e == nil {
		e = &endpointGathered{sheet: blank(), busiest: map[string]float64{}, wait: map[string]float64{}, disk: map[string]float64{}, cpus: map[string]*processor{}}
		if g.endpoints == nil {
			g.endpoints = map[string]*endpointGathered{}
		}
		g.endpoints[name] = e
	}
	return e
}

func (g *gathered) take(k kind, v float64) {
	switch k.what {
	case systemCPU:
		if k.endpoint != "" { // of that end's own machine
			e := g.endpoint(k.endpoint)
			if e.machine == nil {
				e.machine = map[string]float64{}
			}
			e.machine[k.mode] += v
			return
		}
		if g.system == nil {
			g.system = map[string]float64{}
		}
		g.system[k.mode] += v
		return
	case hostSoft:
		g.soft = max(g.soft, v)
		return
	case deviceBusy, deviceQueue, deviceRead, deviceWrote, deviceRequests, deviceFlushes:
		g.device(k, v)
		return
	}
	if k.endpoint == "" { // the harness's own
		if k.what == cpuTime {
			g.harness += v
		}
		return
	}
	e := g.endpoint(k.endpoint)
	if plain, ok := plainFigure(k.what); ok {
		e.add(plain, v)
		return
	}
	switch k.what {
	case cpuTime:
		e.cpuTime(k.role, v)
	case runWait:
		if k.role != roleHarness && k.role != roleShim {
			e.add(fWait, v)
		}
	case record.ThreadBusiest:
		e.busiest[k.role] = v
	case record.ThreadBusiestWait:
		e.wait[k.role] = v
	case periods:
		e.periods += v
	case throttled:
		e.throttled += v
	case cgroupRead, cgroupWrote:
		e.add(fDisk, v)
		e.disk[k.what] += v
	case cgroupReads, cgroupWrites, limitRead, limitWrite, limitReads, limitWrites:
		e.disk[k.what] += v
	case guestCPU:
		e.cpu(k.cpu).mode(k.mode, v)
	case guestSoftIRQ:
		e.cpu(k.cpu).count += v
	}
}

// plainFigure is the figure of samples that need no working out.
func plainFigure(name string) (figure, bool) {
	switch name {
	case cgroupCPU:
		return fCgroup, true
	case quotaMean:
		return fQuota, true
	case throttleTime:
		return fThrottledTime, true
	case guestRunning:
		return fGuestRunnable, true
	case guestReady:
		return fGuestReady, true
	case systemCalls:
		return fCalls, true
	case ioPressure:
		return fIOPressure, true
	case queuedMean:
		return fQueued, true
	case linkReceived:
		return fLinkIn, true
	case linkSent:
		return fLinkOut, true
	case linkRate:
		return fLinkRate, true
	case linkBacklog:
		return fLinkBacklog, true
	case linkDrops:
		return fLinkDrops, true
	}
	return 0, false
}

func (e *endpointGathered) cpuTime(role string, v float64) {
	switch {
	case role == roleWorkload:
		e.add(fWork, v)
	case role == roleVCPU:
		e.add(fVCPU, v)
	case isHelper(role):
		e.add(fHelperCPU, v)
		if role == roleGofer {
			e.add(fGofer, v)
		}
		if e.most == "" || v > e.mostCPU {
			e.most, e.mostCPU = role, v
		}
	}
}

func (e *endpointGathered) cpu(name string) *processor {
	p := e.cpus[name]
	if p == nil {
		p = &processor{}
		e.cpus[name] = p
	}
	return p
}

func (p *processor) mode(mode string, v float64) {
	p.all += v
	switch mode {
	case "idle", "iowait":
		p.idle += v
	case "user", "system":
		p.task += v
	case "softirq", "irq":
		p.soft += v
	case "steal":
		p.steal += v
	}
}

func (g *gathered) device(k kind, v float64) {
	d := g.devices[k.device]
	if d == nil {
		d = &device{}
		if g.devices == nil {
			g.devices = map[string]*device{}
		}
		g.devices[k.device] = d
	}
	switch k.what {
	case deviceBusy:
		d.busy = v
	case deviceQueue:
		d.queue = v
	case deviceRequests:
		d.requests = v
	case deviceFlushes:
		d.flushes = v
	default:
		d.bytes += v
	}
}

// sheets are those of the trial's ends, by name.
func (g *gathered) sheets(r *Reader) []endpointSheet {
	var out []endpointSheet
	ours := g.ours()
	for _, name := range slices.Sorted(maps.Keys(g.endpoints)) {
		e := g.endpoints[name]
		e.threads()
		e.guest()
		if e.periods > 0 {
			e.sheet[fThrottled] = min(1, e.throttled/e.periods)
		}
		e.limits()
		if e.machine != nil {
			processors(&e.sheet, e.machine)
		} else {
			g.machine(&e.sheet, ours)
		}
		if e.helper == "" { // results of an older tare have no single threads
			e.helper = e.most
		}
		x := endpointSheet{endpoint: r.name(name), helper: r.name(e.helper)}
		for i, v := range e.sheet {
			x.figures[i] = float32(v)
		}
		out = append(out, x)
	}
	return out
}

// limits finds which limit of a disk is used most.
func (e *endpointGathered) limits() {
	for _, p := range [][2]string{{cgroupRead, limitRead}, {cgroupWrote, limitWrite}, {cgroupReads, limitReads}, {cgroupWrites, limitWrites}} {
		if most := e.disk[p[1]]; most > 0 {
			e.sheet[fIOLimit] = max(e.or(fIOLimit, 0), min(1, e.disk[p[0]]/most))
		}
	}
}

// threads finds the single thread of each kind that used most.
func (e *endpointGathered) threads() {
	for _, role := range slices.Sorted(maps.Keys(e.busiest)) {
		var busy, wait figure
		switch {
		case role == roleWorkload:
			busy, wait = fWorkBusy, fWorkWait
		case role == roleVCPU:
			busy, wait = fVCPUBusy, fVCPUWait
		case isHelper(role):
			if e.has(fHelperBusy) && e.busiest[role] <= e.sheet[fHelperBusy] {
				continue
			}
			busy, wait = fHelperBusy, fHelperWait
			e.helper = role
		default:
			continue
		}
		e.sheet[busy] = e.busiest[role]
		e.sheet[wait] = math.NaN()
		if w, ok := e.wait[role]; ok {
			e.sheet[wait] = w
		}
	}
}

// guest sums up its processors. Their own time counts, which need not pass as fast
// as the host's.
func (e *endpointGathered) guest() {
	var sum processor
	var busiest, top, soft, part float64
	n := 0.0
	for _, p := range e.cpus {
		sum.count += p.count
	}
	for _, name := range slices.Sorted(maps.Keys(e.cpus)) {
		p := e.cpus[name]
		if !(p.all > 0) {
			continue
		}
		n++
		sum.task += p.task / p.all
		sum.soft += p.soft / p.all
		sum.steal += p.steal / p.all
		busiest = max(busiest, 1-p.idle/p.all)
		top = max(top, p.task/p.all)
		if s := p.soft / p.all; s > soft {
			soft = s
			if sum.count > 0 {
				part = p.count / sum.count
			}
		}
	}
	if n == 0 {
		return
	}
	s := &e.sheet
	s[fGuestCPUs], s[fGuestTask], s[fGuest], s[fGuestSteal] = n, sum.task, sum.task+sum.soft, sum.steal
	s[fGuestBusiest], s[fGuestTop], s[fGuestSoft] = busiest, top, soft
	if sum.count > 0 {
		s[fGuestSoftPart] = part
	}
}

// ours is the CPU of all ends of the trial and of the harness.
func (g *gathered) ours() float64 {
	out := g.harness
	for _, name := range slices.Sorted(maps.Keys(g.endpoints)) {
		if g.endpoints[name].machine != nil {
			continue // on another machine
		}
		s := &g.endpoints[name].sheet
		out += s.or(fCgroup, s.or(fWork, 0)+s.or(fVCPU, 0)+s.or(fHelperCPU, 0))
	}
	return out
}

// processors adds what was read of a machine's processors; false if nothing was.
func processors(s *sheet, modes map[string]float64) bool {
	all := 0.0
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		all += modes[mode]
	}
	if !(all > 0) {
		return false
	}
	s[fHostCores] = all
	wanted := all - modes["idle"] - modes["iowait"]
	s[fHostSteal] = 0
	if wanted > 0 {
		s[fHostSteal] = min(1, modes["steal"]/wanted)
	}
	s[fHostBusy] = max(0, 1-(modes["idle"]+modes["iowait"])/all)
	return true
}

// machine adds what was read of the whole host. Interrupts are nobody's: they serve
// the trial's packets as well as others'.
func (g *gathered) machine(s *sheet, ours float64) {
	if processors(s, g.system) {
		s[fHostOthers] = max(0, g.system["user"]+g.system["nice"]+g.system["system"]+g.system["steal"]-ours)
	}
	if g.soft >= 0 {
		s[fHostSoft] = g.soft
	}
	for _, name := range slices.Sorted(maps.Keys(g.devices)) {
		if d := g.devices[name]; !(d.busy <= s.or(fDeviceBusy, -1)) {
			s[fDeviceBusy], s[fDeviceQueue], s[fDeviceBytes] = d.busy, d.queue, d.bytes
			s[fDeviceFlushes] = d.flushes
			if d.requests > 0 {
				s[fDeviceTime] = d.queue / d.requests
			}
		}
	}
}
