package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tare/internal/window"
	"tare/record"
)

// Disk is a fio load on a disk, past the page cache. It is a closed loop: each job is a thread with
// requests in flight. Times are in seconds, sizes in bytes.
type Disk struct {
	Seed        uint64
	Copies      int // of the load and its machine, on one device; 0 for one that is not named as the first
	Jobs, Depth int // of each copy
	Size        int
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
		Noise:  Noise{Trial: 0.01, Op: 0.2}}
}

// Bounds on a Disk, and how many requests are modelled.
const (
	maxDiskFlight = 1 << 16
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
	atEnd
)

// RunDisk models the load until enough requests are done. Requests of a warm-up
// do not count.
func RunDisk(d Disk) (*Result, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(d.Seed, 2)) //nolint:gosec // a model
	noisy := func(sigma float64) float64 { return math.Exp(sigma * r.NormFloat64()) }
	all := noisy(d.Noise.Trial)
	cost := func(s float64) int64 { return int64(s * 1e9 * all * noisy(d.Noise.Op)) }

	copies, threads := max(1, d.Copies), max(1, d.Threads)
	job, helper, device := make([]int64, copies*d.Jobs), make([]int64, copies*threads), int64(0) // when each is free
	began := make([]int64, len(job)*d.Depth)
	busy := make([]int64, len(helper))
	var q events
	for i := range began {
		q.push(0, atJob, int32(i), 0)
	}
	submit, serve, wake, rate, took := d.costs()
	skip, from, base := diskRequests/4+2*len(began), int64(0), make([]int64, len(helper))
	var latencies, first []float64 // of all copies, and of the first
	now := int64(0)
	for len(latencies) < diskRequests*copies {
		e := q.pop()
		now = e.at
		j := int(e.a) / d.Depth
		switch e.kind() {
		case atJob:
			began[e.a] = now
			job[j] = max(job[j], now) + cost(submit)
			next := atThread
			if !d.Machine {
				next = atDevice
			}
			q.push(job[j], next, e.a, 0)
		case atThread: // a job stays on its vCPU, whose queue one thread serves
			k := j/d.Jobs*threads + j%d.Jobs%d.VCPUs%threads
			c := cost(serve)
			helper[k], busy[k] = max(helper[k], now)+c, busy[k]+c
			q.push(helper[k], atDevice, e.a, 0)
		case atDevice: // it takes requests one after the other, and works on them at once
			device = max(device, now) + cost(1/d.Device.Requests+float64(d.Size)/rate)
			q.push(device+cost(took+wake), atEnd, e.a, 0)
		default:
			if skip--; skip == 0 {
				from = now
				copy(base, busy)
			}
			if skip < 0 {
				latencies = append(latencies, float64(now-began[e.a])*1e-9)
				if j < d.Jobs {
					first = append(first, latencies[len(latencies)-1])
				}
			}
			q.push(now, atJob, e.a, 0)
		}
	}
	for i := range busy {
		busy[i] -= base[i]
	}
	res := d.result(latencies, from, now, busy)
	if d.Copies > 0 {
		for _, s := range d.responses(first, from, now) {
			s.Name = record.FirstPrefix + s.Name
			res.Reading.Samples = append(res.Reading.Samples, s)
		}
	}
	return res, nil
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
func (d *Disk) result(latencies []float64, from, to int64, busy []int64) *Result {
	seconds := float64(to-from) * 1e-9
	res := &Result{Facts: map[string]string{"main." + record.FactAccelerator: Accelerator},
		Measured: window.Span{From: time.Duration(from), To: time.Duration(to)}}
	res.Reading.Samples = d.responses(latencies, from, to)
	if d.Machine {
		role := record.RoleIOThread
		if d.Threads == 0 {
			role = record.RoleVMM
		}
		total, most := 0.0, 0.0
		for _, b := range busy {
			cores := float64(b) * 1e-9 / seconds
			total, most = total+cores, max(most, cores)
		}
		labels := []string{record.LabelEndpoint, "main", record.LabelRole, string(role)}
		res.Reading.Value(record.CPUTime+record.RateSuffix, record.Cores, total, labels...)
		res.Reading.Value(record.ThreadBusiest, record.Cores, min(1, most), labels...)
	}
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
