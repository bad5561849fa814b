package model

import (
	"math"
	"strconv"
	"time"

	"tare/record"
)

// The workload's roles.
const (
	isolated = "server" // the end that is modelled in full
	client   = "client"
)

// virtiofs is virtiofsd's part of Guest.VMM.
const virtiofs = 0.1

// track is a series being recorded; read returns its present value.
type track struct {
	series record.Series
	read   func() float64
	least  float64 // leave the series out if it never reached this
}

type recorder struct {
	tracks   []track
	response record.Series
	last     float64
	sampled  int64   // when the last sample was taken; -1 before the first
	ours     float64 // ns that other threads left to the sandbox, at the last sample
	at       int64
	others   float64 // ns of other load
	total    float64 // ns of the host's cores
}

func (r *recorder) add(name string, u record.Unit, k record.SampleType, read func() float64, labels ...string) *track {
	r.tracks = append(r.tracks, track{series: record.Series{Name: name, Labels: record.MakeLabels(labels...), Unit: u, Kind: k}, read: read})
	return &r.tracks[len(r.tracks)-1]
}

// seconds adds a counter of the sandbox's time, which read gives in nanoseconds.
func (r *recorder) seconds(name string, read func() float64, labels ...string) *track {
	return r.add(name, record.Second, record.Counter, func() float64 { return read() * 1e-9 }, append(labels, record.LabelEndpoint, isolated)...)
}

// role adds what is read of all threads of a role. Without entities its threads are not
// modelled one by one.
func (r *recorder) role(name record.ThreadRole, entities []*entity, cpu func() float64) {
	r.seconds(record.CPUTime, cpu, record.LabelRole, string(name))
	if len(entities) == 0 {
		return
	}
	r.seconds("run_wait", func() float64 { return waited(entities) }, record.LabelRole, string(name))
	r.add("threads", record.Count, record.Gauge, func() float64 { return float64(len(entities)) }, record.LabelRole, string(name), record.LabelEndpoint, isolated)
}

// single adds what is read of one thread.
func (r *recorder) single(role record.ThreadRole, name string, tid int, e *entity, cpu func() float64) {
	labels := []string{record.LabelRole, string(role), "thread", name, "tid", strconv.Itoa(tid)}
	r.seconds("thread_cpu_time", cpu, labels...).least = 0.01
	if e != nil {
		r.seconds("thread_run_wait", func() float64 { return e.wait }, labels...).least = 0.01
	}
}

// init makes the series of the collectors proc, cgroup, guest, system, link and calls.
func (r *recorder) init(s *sim) {
	r.sampled = -1
	r.threads(s)
	r.cgroup(s)
	r.link(s)
	for _, call := range []string{"read", "write"} {
		r.add(record.SystemCalls, record.Count, record.Counter, func() float64 { return s.calls / 2 }, record.LabelEndpoint, isolated, record.LabelCall, call)
	}
	system := func(mode string, read func() float64) {
		top := 0.0
		r.add("system_cpu", record.Second, record.Counter, func() float64 {
			top = max(top, read()) // as the collector does: a slice counts when it ends
			return top * 1e-9
		}, record.LabelMode, mode)
	}
	system("user", func() float64 { return r.others + s.used - s.byHelpers() })
	system("system", func() float64 { return s.byHelpers() })
	system("idle", func() float64 { return max(0, r.total-r.others-s.used) })
	r.response = record.Series{Name: "rate", Unit: record.PerSecond, Kind: record.Gauge}
	if s.Load.Mode == Stream {
		r.response.Name, r.response.Unit = "throughput", record.BytesPerSecond
	}
	r.response.Labels = record.MakeLabels(record.LabelEndpoint, client, "response", r.response.Name)
}

// threads adds what the collector proc reads, and guest of a virtual machine.
func (r *recorder) threads(s *sim) {
	cores := make([]*entity, len(s.cores))
	for i := range s.cores {
		cores[i] = &s.cores[i].entity
	}
	helpers := make([]*entity, len(s.helpers))
	for i := range s.helpers {
		helpers[i] = &s.helpers[i].entity
	}
	const pid = 1000
	helper := s.Helper.Role
	if s.Isolation == Sentry {
		helper = record.RoleSentry
	}
	switch s.Isolation {
	case VM:
		r.role(record.RoleVCPU, cores, func() float64 { return spent(cores) })
		for i, e := range cores {
			r.single(record.RoleVCPU, "CPU "+strconv.Itoa(i)+"/KVM", pid+10+i, e, func() float64 { return e.cpu })
		}
		minor := (1 - virtiofs)
		if helper == record.RoleVMM { // QEMU's main loop is the helper
			r.role(record.RoleVMM, helpers, func() float64 { return spent(helpers) + minor*s.minor })
		} else {
			r.role(helper, helpers, func() float64 { return spent(helpers) })
			r.role(record.RoleVMM, nil, func() float64 { return minor * s.minor })
		}
		r.role(record.RoleVirtiofsd, nil, func() float64 { return virtiofs * s.minor })
		r.guest(s)
	case Sentry:
		// Intercepted calls are served by the sentry's threads.
		r.role(record.RoleSentry, helpers, func() float64 { return spent(helpers) + s.served })
		r.role(record.RoleWorkload, cores, func() float64 { return spent(cores) - s.served })
	default:
		r.role(record.RoleWorkload, cores, func() float64 { return spent(cores) })
	}
	for i, e := range helpers {
		r.single(helper, string(helper)+"-"+strconv.Itoa(pid), pid+1000+i, e, func() float64 { return e.cpu })
	}
	if s.Isolation != VM {
		for i := range s.threads {
			r.single(record.RoleWorkload, "tare", pid+3000+i, nil, func() float64 { return s.threads[i].cpu })
		}
	}
}

// cgroup adds what the collector of the same name reads.
func (r *recorder) cgroup(s *sim) {
	r.seconds(record.CgroupCPU, func() float64 { return s.used })
	if !s.quota.on {
		return
	}
	count := func(name string, read func() float64) {
		r.add(name, record.Count, record.Counter, read, record.LabelEndpoint, isolated)
	}
	r.add(record.CPUQuota, record.Cores, record.Gauge, func() float64 { return s.Quota.Cores }, record.LabelEndpoint, isolated)
	count(record.CgroupPeriods, func() float64 { return s.quota.periods })
	count(record.CgroupThrottledPeriods, func() float64 { return s.quota.hits })
	r.seconds(record.CgroupThrottledTime, func() float64 { return s.quota.time })
}

// link adds what the collector of the same name reads of a port. What waits is on
// neither side's counter yet.
func (r *recorder) link(s *sim) {
	in := func() float64 { w, _ := s.waiting(); return w }
	out := func() float64 { _, w := s.waiting(); return w }
	rising := func(read func() float64) func() float64 {
		top := 0.0
		return func() float64 {
			top = max(top, read()) // a nanosecond's rounding of the link's times
			return top
		}
	}
	end := []string{record.LabelEndpoint, isolated}
	r.add(record.LinkReceived, record.Byte, record.Counter, rising(func() float64 { return s.toBytes - in() }), end...)
	r.add(record.LinkSent, record.Byte, record.Counter, rising(func() float64 { return s.fromBytes - out() }), end...)
	r.add(record.LinkRate, record.BytesPerSecond, record.Gauge, func() float64 { return s.Path.LinkRate }, end...)
	r.add(record.LinkBacklog, record.Byte, record.Gauge, func() float64 { return in() + out() }, end...)
}

func (s *sim) byHelpers() float64 {
	var x float64
	for i := range s.helpers {
		x += s.helpers[i].cpu
	}
	return x
}

// guest adds the series of the guest's kernel: its processors' modes. Time that the host did not
// give is steal.
func (r *recorder) guest(s *sim) {
	for i := range s.cores {
		c := &s.cores[i]
		stolen := func() float64 { return c.wait }
		for _, m := range []struct {
			mode string
			read func() float64
		}{
			{"user", func() float64 { return c.user }}, {"system", func() float64 { return c.system }},
			{"softirq", func() float64 { return c.softirq }}, {"steal", stolen},
			{"idle", func() float64 { return float64(s.now) - c.user - c.system - c.softirq - c.wait }},
		} {
			top := 0.0
			r.add(record.GuestCPU, record.Second, record.Counter, func() float64 {
				top = max(top, m.read()) // a slice counts when it ends
				return top * 1e-9
			}, record.LabelEndpoint, isolated, record.LabelCPU, strconv.Itoa(i), record.LabelMode, m.mode)
		}
		r.add(record.GuestSoftIRQs, record.Count, record.Counter, func() float64 { return c.received }, record.LabelEndpoint, isolated,
			record.LabelCPU, strconv.Itoa(i), record.LabelMode, "net_rx")
	}
	r.add(record.GuestRunnable, record.Count, record.Gauge, func() float64 {
		n := s.parked
		for i := range s.cores {
			if s.cores[i].state != idle && s.cores[i].doing == work {
				n++
			}
		}
		return float64(n)
	}, record.LabelEndpoint, isolated)
}

func spent(of []*entity) float64 {
	var x float64
	for _, e := range of {
		x += e.cpu
	}
	return x
}

func waited(of []*entity) float64 {
	var x float64
	for _, e := range of {
		x += e.wait
	}
	return x
}

// sample reads every counter. Other load uses the rest of the host's cores.
func (r *recorder) sample(s *sim) {
	r.settle(s)
	r.sampled = s.now
	t := time.Duration(s.now)
	for i := range r.tracks {
		x := &r.tracks[i]
		x.series.T = append(x.series.T, t)
		x.series.V = append(x.series.V, x.read())
	}
}

func (r *recorder) settle(s *sim) {
	room := float64(s.Host.Cores) * float64(s.now-r.at)
	r.others += max(0, min(float64(s.Host.Contenders)*float64(s.now-r.at), room-(s.used-r.ours)))
	r.total += room
	r.ours, r.at = s.used, s.now
}

func (r *recorder) progress(s *sim) {
	v := s.total
	if s.Load.Mode == Stream {
		v *= float64(s.Load.Size)
	}
	r.response.T = append(r.response.T, time.Duration(s.now))
	r.response.V = append(r.response.V, (v-r.last)/(float64(progressEvery)*1e-9))
	r.last = v
}

// series returns the series that a collector would have listed.
func (r *recorder) series() []record.Series {
	out := []record.Series{r.response}
	for _, t := range r.tracks {
		if n := len(t.series.V); n > 0 && (t.least == 0 || t.series.V[n-1] >= t.least) && !math.IsNaN(t.series.V[n-1]) {
			out = append(out, t.series)
		}
	}
	return out
}
