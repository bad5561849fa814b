package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"tare/internal/window"
	"tare/record"
)

// Disk is a fio load on a disk, past the page cache. Each job is a thread with requests in flight: in a closed loop, or at a
// rate. Times are in seconds, sizes in bytes.
type Disk struct {
	Seed        uint64
	Copies      int // of the load and its machine, on one device; 0 for one that is not named as the first
	Jobs, Depth int // of each copy
	Size        int
	Rate        float64 // requests a second that are due, of each copy, at random; 0: a request follows when another is done
	Write       bool
	Sequential  bool

	Machine bool // the jobs are in a virtual machine
	VCPUs   int  // of it: a queue of the disk belongs to each
	Threads int  // I/O threads that share the queues; 0: the VMM's main loop serves them

	Submit float64 // CPU of a request in its job's thread
	Guest  float64 // the same in a machine
	Serve  float64 // CPU of a request in an I/O thread
	Share  float64 // by what part of Serve another thread makes it dearer
	Loop   float64 // CPU of a request in the main loop
	Wake   float64 // until a thread takes a request and the guest its answer
	Awake  float64 // the same of the main loop
	Device Device
	Noise  Noise

	Fsync   float64 // until what a write wrote is on the disk, after its own time; 0: nothing waits for that
	Limit   float64 // requests a second that the control group may do; 0: any number
	Cached  float64 // time of a request that the page cache answers, without the device; 0: none is
	Trip    float64 // round trip of a request to a process that opens and reads files for the sandbox
	TripCPU float64 // of that process, within Trip
	Host    int     // processors of the host
}

// Device is a disk.
type Device struct {
	Read, Write float64 // time of a request
	Sequential  float64 // part of it, of sequential ones
	Requests    float64 // a second at most
	ReadRate    float64 // bytes a second at most
	WriteRate   float64
}

// DefaultDisk is a machine with a main loop on four NVMe drives. docs/model.md says where its
// figures come from.
func DefaultDisk() Disk {
	return Disk{Seed: 1, Jobs: 1, Depth: 1, Size: 4096, Machine: true, VCPUs: 16,
		Submit: 2e-6, Guest: 3e-6, Serve: 5e-6, Share: 0.145, Loop: 6.5e-6, Wake: 17e-6, Awake: 35e-6,
		Device: Device{Read: 80e-6, Write: 15e-6, Sequential: 0.6, Requests: 1.6e6, ReadRate: 12e9, WriteRate: 6e9},
		Noise:  Noise{Trial: 0.01, Op: 0.2}, Host: 64}
}

// Bounds on a Disk, and how many requests are modelled.
const (
	maxDiskFlight = 1 << 16
	maxDiskRate   = 1e7
	diskRequests  = 3000
)

// Check names a figure that is out of bounds.
func (d *Disk) Check() error {
	switch {
	case d.Jobs < 1 || d.Depth < 1 || d.Copies < 0 || d.Jobs > maxDiskFlight/d.Depth/max(1, d.Copies):
		return fmt.Errorf("model: %d copies of %d jobs with %d requests each; write 1 to %d in all", max(1, d.Copies), d.Jobs, d.Depth, maxDiskFlight)
	case d.Size < 1 || d.Size > 1<<30:
		return fmt.Errorf("model: a request of %d bytes; write 1 to 1 GiB", d.Size)
	case d.Machine && d.VCPUs < 1 || d.Threads < 0:
		return fmt.Errorf("model: %d vCPUs and %d I/O threads", d.VCPUs, d.Threads)
	case !(d.Rate >= 0) || d.Rate > maxDiskRate:
		return fmt.Errorf("model: %g requests a second; write 0 to %g", d.Rate, maxDiskRate)
	case !(min(d.Fsync, d.Limit, d.Cached, d.Trip, d.TripCPU) >= 0) || d.TripCPU > d.Trip || d.Host < 1:
		return fmt.Errorf("model: an fsync of %g s, a limit of %g requests a second, %g s for a request in memory and a round trip of %g s, %g s of it work, on %d processors", d.Fsync, d.Limit, d.Cached, d.Trip, d.TripCPU, d.Host)
	}
	for name, v := range map[string]float64{"requests": d.Device.Requests, "read rate": d.Device.ReadRate, "write rate": d.Device.WriteRate} {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("model: the device's %s is %g; write a positive number", name, v)
		}
	}
	return nil
}

// Stages that a request goes through, as kinds of events: each is the moment at which it
// arrives there.
const (
	atJob kind = iota
	atThread
	atDevice
	afterDevice
	atEnd
)

// diskSim is a load under way. Times are in nanoseconds.
type diskSim struct {
	Disk
	cost                      func(seconds float64) int64
	pause                     func() int64 // from a due request of a job to its next
	due                       []int64      // when each job's next request is
	q                         events
	job, helper               []int64 // when each is free
	device, limited           int64   // when the device takes the next request, and the limit lets the next pass
	began                     []int64 // by place in flight
	inside                    int     // requests in the device
	changed                   int64   // when that changed
	submit, serve, wake, rate float64
	took                      float64
	sums                      diskSums
}

// diskSums count over the measured time, in nanoseconds.
type diskSums struct {
	busy, queue, work, sync, trips float64   // of the device: with a request, requests x time; CPU of jobs; time in fsync; CPU of trips
	helper                         []float64 // CPU of each
	sent, unsent                   float64   // at a rate: requests
}

// RunDisk models the load until enough requests are done. Requests of a warm-up
// do not count.
func RunDisk(d Disk) (*Result, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(d.Seed, 2)) //nolint:gosec // a model
	noisy := func(sigma float64) float64 { return math.Exp(sigma * r.NormFloat64()) }
	all := noisy(d.Noise.Trial)
	copies := d.copies()
	s := diskSim{Disk: d, job: make([]int64, copies*d.Jobs), helper: make([]int64, copies*max(1, d.Threads)), began: make([]int64, copies*d.Jobs*d.Depth)}
	s.cost = func(x float64) int64 { return int64(x * 1e9 * all * noisy(d.Noise.Op)) }
	s.pause = func() int64 { return int64(r.ExpFloat64() * 1e9 * float64(d.Jobs) / d.Rate) }
	s.due = make([]int64, len(s.job))
	s.submit, s.serve, s.wake, s.rate, s.took = d.costs()
	s.sums.helper = make([]float64, len(s.helper))
	for i := range s.began {
		s.q.push(s.next(int32(i), 0), atJob, int32(i), 0)
	}
	skip, from := diskRequests/4+2*len(s.began), int64(0)
	var latencies, first []float64 // of all copies, and of the first
	now := int64(0)
	for len(latencies) < diskRequests*copies {
		e := s.q.pop()
		now = e.at
		if e.kind() != atEnd {
			s.step(&e)
			continue
		}
		if skip--; skip == 0 {
			from, s.changed = now, now
			s.sums = diskSums{helper: make([]float64, len(s.helper))}
			s.behind(now) // fio, too, begins its schedule anew after its ramp
		}
		next := now
		if skip < 0 {
			latencies = append(latencies, float64(now-s.began[e.a])*1e-9)
			if int(e.a)/d.Depth < d.Jobs {
				first = append(first, latencies[len(latencies)-1])
			}
		}
		if d.Fsync > 0 { // the job waits, and the request's own time is over
			wait := s.cost(d.Fsync)
			next += wait
			s.sums.sync += float64(wait)
		}
		s.q.push(s.next(e.a, next), atJob, e.a, 0)
	}
	s.account(now, 0)
	s.sums.unsent = s.behind(now)
	res := d.result(latencies, from, now, &s.sums)
	if d.Copies > 0 {
		for _, x := range d.responses(first, from, now) {
			x.Name = record.FirstPrefix + x.Name
			res.Reading.Samples = append(res.Reading.Samples, x)
		}
	}
	return res, nil
}

// next is when a free place sends: at once, or, at a rate, when a request of its job is due.
func (s *diskSim) next(place int32, now int64) int64 {
	if s.Rate == 0 {
		return now
	}
	j := int(place) / s.Depth
	at := max(now, s.due[j])
	s.due[j] += s.pause()
	return at
}

// behind counts the requests that are due, but not sent because no place is free, and drops them.
func (s *diskSim) behind(now int64) (n float64) {
	for j := range s.due {
		for ; s.Rate > 0 && s.due[j] < now; s.due[j] += s.pause() {
			n++
		}
	}
	return n
}

// step moves one request on.
func (s *diskSim) step(e *event) {
	now, j := e.at, int(e.a)/s.Depth
	switch e.kind() {
	case atJob:
		s.began[e.a] = now
		s.sums.sent++
		c := s.cost(s.submit)
		s.job[j] = max(s.job[j], now) + c
		s.sums.work += float64(c)
		next := atThread
		if !s.Machine {
			next = atDevice
		}
		at := s.job[j]
		if s.Trip > 0 {
			trip := s.cost(s.Trip)
			at += trip
			s.sums.trips += float64(trip) * s.TripCPU / s.Trip
		}
		s.q.push(at, next, e.a, 0)
	case atThread: // a job stays on its vCPU, whose queue one thread serves
		threads := max(1, s.Threads)
		k := j/s.Jobs*threads + j%s.Jobs%s.VCPUs%threads
		c := s.cost(s.serve)
		s.helper[k] = max(s.helper[k], now) + c
		s.sums.helper[k] += float64(c)
		s.q.push(s.helper[k], atDevice, e.a, 0)
	case atDevice:
		if s.Limit > 0 && e.b == 0 { // a request may pass when the limit lets it, one after the other
			at := max(s.limited, now)
			s.limited = at + int64(1e9/s.Limit)
			s.q.push(at, atDevice, e.a, 1)
			return
		}
		s.arrive(now, e.a)
	default:
		s.account(now, -1)
		s.q.push(now+int64(e.b), atEnd, e.a, 0)
	}
}

// arrive is a request before the device, which takes requests one after the other, and works on them at
// once.
func (s *diskSim) arrive(now int64, place int32) {
	if s.Cached > 0 {
		s.q.push(now+s.cost(s.Cached+s.wake), atEnd, place, 0)
		return
	}
	s.account(now, 1)
	s.device = max(s.device, now) + s.cost(1/s.Device.Requests+float64(s.Size)/s.rate)
	own := s.cost(s.took + s.wake)
	in := int64(float64(own) * s.took / (s.took + s.wake))
	s.q.push(s.device+in, afterDevice, place, int32(own-in)) //nolint:gosec // some microseconds
}

// account adds the time since the last change of the requests in the device, and changes them.
func (s *diskSim) account(now int64, by int) {
	d := float64(now - s.changed)
	if s.inside > 0 {
		s.sums.busy += d
	}
	s.sums.queue += d * float64(s.inside)
	s.inside += by
	s.changed = now
}

// costs are those of a request: CPU of its job and of the thread that serves it, the time until
// both are awake, the device's rate, and its own time.
func (d *Disk) costs() (submit, serve, wake, rate, took float64) {
	submit, rate, took = d.Submit, d.Device.ReadRate, d.Device.Read
	if d.Write {
		rate, took = d.Device.WriteRate, d.Device.Write
	}
	if d.Sequential {
		took *= d.Device.Sequential
	}
	if !d.Machine {
		return submit, 0, 0, rate, took
	}
	submit, serve, wake = d.Guest, d.Loop, d.Awake
	if d.Threads > 0 {
		used := min(d.Threads, d.Jobs, d.VCPUs)
		serve, wake = d.Serve*(1+d.Share*float64(used-1)), d.Wake
	}
	return submit, serve, wake, rate, took
}

// result has the responses of the workload fio.
func (d *Disk) result(latencies []float64, from, to int64, sums *diskSums) *Result {
	n, seconds := float64(len(latencies)), float64(to-from)*1e-9
	res := &Result{Facts: map[string]string{}, Measured: window.Span{From: time.Duration(from), To: time.Duration(to)}}
	for k := range d.copies() {
		res.Facts[record.CopyName(diskEnd, k+1)+"."+record.FactAccelerator] = Accelerator
	}
	rd := &res.Reading
	rd.Samples = d.responses(latencies, from, to)
	per := 1e-9 / seconds
	if d.Fsync > 0 {
		rd.Value("fsync_latency_mean", record.Second, sums.sync*1e-9/n)
		rd.Value("fsync_share", record.Fraction, min(1, sums.sync*per/float64(d.copies()*d.Jobs*d.Depth)))
	}
	if due := sums.sent + sums.unsent; d.Rate > 0 {
		rd.Value(record.SampleDue, record.Count, due)
		rd.Value(record.SampleUnsent, record.Count, sums.unsent)
		if sums.unsent > 0.01*due {
			rd.Warn("fio-overload", "of %g requests a second that were due, %.4g were sent", d.Rate*float64(max(1, d.Copies)), sums.sent/seconds)
		}
	}
	d.processors(rd, sums, per)
	d.disks(rd, sums, per, n/seconds)
	return res
}

// responses are those of the requests that took so long.
func (d *Disk) responses(latencies []float64, from, to int64) []record.Sample {
	slices.Sort(latencies)
	rate := float64(len(latencies)) / (float64(to-from) * 1e-9)
	out := []record.Sample{record.NewValue("iops", record.PerSecond, rate), record.NewValue("throughput", record.BytesPerSecond, rate*float64(d.Size))}
	if len(latencies) == 0 {
		return out
	}
	return append(out, record.NewValue("latency_p50", record.Second, latencies[len(latencies)/2]),
		record.NewValue("latency_p99", record.Second, latencies[len(latencies)*99/100]))
}

// diskEnd is the role of the workload fio.
const diskEnd = "main"

// disks is what the collectors disk and cgroup read. Each copy's cgroup is charged for its own requests.
func (d *Disk) disks(rd *record.Reading, sums *diskSums, per, rate float64) {
	if d.Cached > 0 {
		rate = 0
	}
	part := func(v float64, write bool) float64 { // of reads, or of writes
		if write != d.Write {
			return 0
		}
		return v
	}
	rated := func(name string, u record.Unit, v float64, labels []string) {
		rd.Value(name+record.RateSuffix, u, v, labels...)
	}
	disk, bytes := []string{record.LabelDevice, "nvme0n1"}, rate*float64(d.Size)
	rated(record.DeviceBusy, record.Cores, min(1, sums.busy*per), disk)
	rated(record.DeviceQueue, record.Cores, sums.queue*per, disk)
	rated(record.DeviceRead, record.BytesPerSecond, part(bytes, false), disk)
	rated(record.DeviceWrote, record.BytesPerSecond, part(bytes, true), disk)
	rated(record.DeviceRequests, record.PerSecond, rate, disk)
	copies := float64(d.copies())
	for k := range d.copies() {
		end := []string{record.LabelEndpoint, record.CopyName(diskEnd, k+1)}
		rated(record.CgroupIORead, record.BytesPerSecond, part(bytes/copies, false), end)
		rated(record.CgroupIOWritten, record.BytesPerSecond, part(bytes/copies, true), end)
		rated(record.CgroupIOReads, record.PerSecond, part(rate/copies, false), end)
		rated(record.CgroupIOWrites, record.PerSecond, part(rate/copies, true), end)
		if d.Limit > 0 {
			limit := record.CgroupIOLimitReads
			if d.Write {
				limit = record.CgroupIOLimitWrites
			}
			rd.Value(limit+"_mean", record.PerSecond, d.Limit/copies, end...)
		}
	}
}

// copies is how many there are.
func (d *Disk) copies() int { return max(1, d.Copies) }

// processors is what the collectors proc, cgroup, guest and system read.
func (d *Disk) processors(rd *record.Reading, sums *diskSums, per float64) {
	total := 0.0
	for k := range d.copies() {
		total += d.end(rd, sums, per, k)
	}
	rd.Value("system_cpu"+record.RateSuffix, record.Cores, min(total, float64(d.Host)), record.LabelMode, "system")
	rd.Value("system_cpu"+record.RateSuffix, record.Cores, max(0, float64(d.Host)-total), record.LabelMode, "idle")
}

// end is what they read of one copy, from 0, whose machine or process is an end of its own. It returns its cores.
func (d *Disk) end(rd *record.Reading, sums *diskSums, per float64, k int) (total float64) {
	end := []string{record.LabelEndpoint, record.CopyName(diskEnd, k+1)}
	role := func(r record.ThreadRole, all, busiest float64) {
		labels := append(slices.Clip(end), record.LabelRole, string(r))
		rd.Value(record.CPUTime+record.RateSuffix, record.Cores, all, labels...)
		rd.Value(record.ThreadBusiest, record.Cores, min(1, busiest), labels...)
		rd.Value("run_wait"+record.RateSuffix, record.Cores, 0, labels...)
		total += all
	}
	work := sums.work * per / float64(d.copies())
	if !d.Machine {
		role(record.RoleWorkload, work, work/float64(d.Jobs))
	} else {
		used, helpers := min(d.Jobs, d.VCPUs), 0.0
		for i := range d.VCPUs {
			u := 0.0
			if i < used {
				u = min(1, work/float64(used))
			}
			labels := append(slices.Clip(end), record.LabelCPU, strconv.Itoa(i), record.LabelMode)
			rd.Value(record.GuestCPU+record.RateSuffix, record.Cores, u, append(slices.Clip(labels), "system")...)
			rd.Value(record.GuestCPU+record.RateSuffix, record.Cores, 1-u, append(slices.Clip(labels), "idle")...)
		}
		role(record.RoleVCPU, work, work/float64(used))
		threads := max(1, d.Threads)
		own := sums.helper[k*threads : (k+1)*threads]
		for _, b := range own {
			helpers += b * per
		}
		r := record.RoleIOThread
		if d.Threads == 0 {
			r = record.RoleVMM
		}
		role(r, helpers, slices.Max(own)*per)
	}
	if d.Trip > 0 {
		trips := sums.trips * per / float64(d.copies())
		role(record.RoleGofer, trips, trips)
	}
	rd.Value(record.CgroupCPU+record.RateSuffix, record.Cores, total, end...)
	return total
}
