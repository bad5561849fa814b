package causes

import (
	"math"
	"math/rand/v2"
	"strconv"

	"tare/record"
)

// trial writes what the collectors and the workload would say of one trial of a world
// with n operations under way. day is what this block has in common with the baseline's
// trial, loose the standard deviation of what it has not.
func (w world) trial(r *rand.Rand, n int, day, loose float64, cell record.Cell, block, seq int) *record.Trial {
	f := day * math.Exp(loose*r.NormFloat64())
	w.work *= f
	w.soft *= f
	w.helper *= f
	w.peer *= f
	w.device *= f * math.Exp(loose*r.NormFloat64())
	v := vary{r, cell.Key() != ""}
	w.pause = v.part(w.pause, 0.15)
	w.wait = v.part(w.wait, 0.1)
	w.steal = v.part(w.steal, 0.1)
	x := w.solve(n)
	t := &record.Trial{Seq: seq, Block: block, Attempt: 1, Cell: cell, Status: record.OK}
	o := out{t: t, r: r}
	o.responses(&w, x)
	o.processors(&w, x, n)
	if w.place == vm {
		o.guest(&w, x, n)
	}
	o.devices(&w, x, n)
	o.machine(&w, x)
	return t
}

// vary makes parts of the time differ from trial to trial.
type vary struct {
	r  *rand.Rand
	on bool
}

func (v vary) part(x, by float64) float64 {
	return min(0.97, x*math.Exp(by*v.r.NormFloat64()))
}

// out collects samples; each has an error of its own of about 1 %.
type out struct {
	t *record.Trial
	r *rand.Rand
}

func (o *out) say(name string, v float64, labels ...string) {
	o.t.Samples = append(o.t.Samples, record.Sample{Name: name, Labels: record.MakeLabels(labels...), Value: v * math.Exp(0.01*o.r.NormFloat64())})
}

func (o *out) end(name string, v float64, labels ...string) {
	o.say(name, v, append(labels, "end", "server")...)
}

func (o *out) responses(w *world, x figures) {
	exact := func(name string, v float64) {
		o.t.Samples = append(o.t.Samples, record.Sample{Name: name, Value: v})
	}
	switch {
	case w.disk:
		exact("iops", x.rate)
		exact("bandwidth", x.rate*w.bytes)
		if w.sync > 0 {
			exact("fsync_share", min(1, w.sync/x.time*math.Exp(0.01*o.r.NormFloat64())))
		}
	case w.stream:
		exact("throughput", x.rate*w.bytes)
		return
	default:
		exact("rate", x.rate)
	}
	exact("latency_mean", x.time)
	o.t.Samples = append(o.t.Samples, record.Sample{Name: "latency_p50", Value: x.middle * math.Exp(0.005*o.r.NormFloat64())})
}

// processors are what proc and cgroup read.
func (o *out) processors(w *world, x figures, n int) {
	work, soft, helper := w.cost()
	threads := float64(min(w.threads, n))
	seen := 1.0 // stolen time is charged to threads on most kernels
	if w.steal > 0 {
		seen = 1 / (1 - w.steal)
	}
	tasks, softs, helpers := x.rate*(work+w.lock*w.inflation)*seen, x.rate*soft*seen, x.rate*helper*seen
	if w.pauseCPU {
		tasks += w.pause
	}
	waits := w.wait / (1 - w.wait)
	switch w.place {
	case vm:
		vcpu := (tasks + softs) * (1.02 + 0.1*o.r.Float64())
		o.role("vcpu", vcpu, min(1, vcpu/float64(min(w.cpus, int(threads)+1))*1.1), waits*vcpu+x.held, waits)
		o.role("vmm", 0.01+0.02*o.r.Float64(), 0.01, 0.001, 0)
	default:
		if w.helper == 0 {
			tasks += helpers
			helpers = 0
		}
		// Soft interrupts run beside the threads, most on other processors, and are charged
		// to the workload all the same.
		busiest := min(1, (tasks+0.1*softs)/threads*(1+0.1*o.r.Float64()))
		tasks += softs
		o.role("workload", tasks, busiest, waits*tasks+x.held, waits)
	}
	if helpers > 0 || w.polling {
		busiest := min(1, helpers/float64(min(w.helpers, n)))
		if w.polling {
			helpers = float64(w.helpers) * (0.97 + 0.02*o.r.Float64())
			busiest = min(1, helpers/float64(w.helpers))
		}
		o.role(w.role, helpers, busiest, waits*helpers, waits)
	}
	if trips := x.rate * w.trip * w.gofer; trips > 0 {
		o.role("gofer", trips, min(1, trips), 0, 0)
		helpers += trips
	}
	all := tasks + helpers
	if w.place == vm {
		all = (tasks+softs)*1.07 + helpers + 0.02
	}
	o.end("cgroup_cpu_rate", all)
	if w.quota > 0 {
		o.end("cpu_quota_mean", w.quota)
		o.end("cgroup_periods_rate", 10)
		o.end("cgroup_throttled_periods_rate", 10*min(1, x.throttled))
		o.end("cgroup_throttled_time_rate", x.held)
	}
	o.say("cpu_time_rate", 0.1, "role", "harness")
	peer := min(0.6, x.rate*4e-6/math.Sqrt(float64(n)))
	if w.peerCPU > 0 {
		peer = min(1, x.rate*w.peerCPU+peer/4)
	}
	o.say("cpu_time_rate", peer, "end", "client", "role", "workload")
	o.say("thread_busiest", peer, "end", "client", "role", "workload")
	if o.r.Float64() < 0.8 {
		o.end("system_calls_rate", x.rate*w.calls, "call", "read")
	}
}

func (o *out) role(role string, all, busiest, waited, part float64) {
	o.end("cpu_time_rate", all, "role", role)
	o.end("run_wait_rate", waited+0.005*all, "role", role)
	if busiest > 0.02 {
		o.end("thread_busiest", min(1, busiest), "role", role)
		o.end("thread_busiest_wait", busiest*(part+0.005), "role", role)
	}
}

// guest is its own account of its processors.
func (o *out) guest(w *world, x figures, n int) {
	work, soft, _ := w.cost()
	task, softs := x.rate*(work+w.lock*w.inflation), x.rate*soft
	if w.pauseCPU {
		task += w.pause
	}
	threads := float64(min(w.threads, n))
	stolen := w.wait + w.steal
	stolen = stolen / (1 - min(0.95, stolen)) * (task + softs) / float64(w.cpus)
	on := float64(w.cpus)
	if threads < on && o.r.IntN(2) == 0 { // threads stay where they are, or move about
		on = threads
	}
	for i := range w.cpus {
		cpu := strconv.Itoa(i)
		u, s := 0.0, 0.0
		if float64(i) < on {
			u = task / on
		}
		if i < w.queues {
			s = softs / float64(min(w.queues, w.cpus))
		}
		if u+s > 1 {
			u, s = u/(u+s), s/(u+s)
		}
		st := min(stolen, max(0, 1-u-s))
		o.end("guest_cpu_rate", 0.3*u, "cpu", cpu, "mode", "user")
		o.end("guest_cpu_rate", 0.7*u, "cpu", cpu, "mode", "system")
		o.end("guest_cpu_rate", s, "cpu", cpu, "mode", "softirq")
		o.end("guest_cpu_rate", st, "cpu", cpu, "mode", "steal")
		o.end("guest_cpu_rate", max(0, 1-u-s-st), "cpu", cpu, "mode", "idle")
		share := 0.05 / float64(w.cpus)
		if i < w.queues {
			share = 1
		}
		o.end("guest_softirqs_rate", x.rate*share/float64(w.queues), "cpu", cpu, "mode", "net_rx")
	}
	running := min(threads, task*1.2)
	o.end("guest_runnable_mean", running)
	o.end("guest_runnable_max", math.Ceil(min(threads, running*2+0.5)))
}

// devices are what link and disk read.
func (o *out) devices(w *world, x figures, n int) {
	if w.link > 0 {
		o.end("link_received_rate", x.rate*w.bytes)
		o.end("link_sent_rate", x.rate*w.bytes)
		o.end("link_rate_mean", w.link)
		o.end("link_backlog_mean", max(0, x.rate*w.bytes/w.link-0.7)*1e5)
		if w.drops > 0 {
			o.end("link_drops_rate", w.drops)
		}
	}
	if w.disk {
		d := []string{"device", "sda"}
		took := w.device / (1 - w.neighbour)
		queue := x.rate * took
		if work, soft, helper := w.cost(); w.lanes < n { // requests that wait for the disk are not elsewhere
			queue = max(queue, float64(n)-x.rate*(w.peer+work+soft+helper))
		}
		busy := 1 - math.Exp(-queue)
		if w.neighbour > 0 {
			busy = 1 - (1-busy)*(1-w.neighbour)
			queue += w.neighbour * 4
		}
		if float64(w.lanes) < float64(n) && x.rate*w.device/float64(w.lanes) > 0.95 {
			busy = 0.99
		}
		reached := x.rate
		if w.cached {
			reached, queue, busy = 0.01*x.rate*o.r.Float64(), 0.01, 0.01
		}
		o.say("device_busy_rate", min(1, busy), d...)
		o.say("device_queue_rate", queue, d...)
		o.say("device_requests_rate", reached*(1+3*w.neighbour), d...)
		o.say("device_read_rate", reached*w.bytes*(1+3*w.neighbour), d...)
		o.end("cgroup_io_read_rate", reached*w.bytes)
		o.end("cgroup_io_reads_rate", reached)
		if w.limit > 0 {
			o.end("cgroup_io_limit_reads_mean", w.limit)
		}
	}
}

// machine is what system reads.
func (o *out) machine(w *world, x figures) {
	work, soft, helper := w.cost()
	host := float64(w.host)
	ours := x.rate * (work + helper)
	if w.place == vm {
		ours += x.rate * soft
	}
	if w.polling {
		ours += float64(w.helpers)
	}
	busy := min(host, ours+w.others*host)
	if w.others == 1 {
		busy = host * (0.985 + 0.015*o.r.Float64())
	}
	stolen := w.steal / (1 - min(0.95, w.steal)) * ours
	if w.steal > 0 { // the neighbour takes what other processors want as well
		stolen = w.steal / (1 - min(0.95, w.steal)) * busy
	}
	irq := x.rate * w.hostSoft
	if w.place != vm {
		irq += x.rate * soft * 0.3
	}
	irq += 0.02
	o.say("system_cpu_rate", 0.6*busy, "mode", "user")
	o.say("system_cpu_rate", 0.4*busy, "mode", "system")
	o.say("system_cpu_rate", irq, "mode", "softirq")
	o.say("system_cpu_rate", stolen, "mode", "steal")
	o.say("system_cpu_rate", max(0, host-busy-irq-stolen), "mode", "idle")
	if w.hostSoft > 0.001/x.rate {
		o.say("system_cpu_softirq_rate", min(1, x.rate*w.hostSoft+0.01), "cpu", "1")
	}
	o.say("system_cpu_softirq_rate", 0.02, "cpu", "0")
}
