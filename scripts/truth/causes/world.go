package causes

import (
	"math"
	"math/rand/v2"
)

// Where a cell runs.
const (
	vm        = "vm"
	sentry    = "sentry"
	container = "container"
)

// world is one cell: its load, and what an operation needs at each place, in seconds.
type world struct {
	place          string
	stream, disk   bool
	n              int // operations under way
	threads        int
	cpus, host     int // processors of the guest, or that may be used; of the host
	queues         int // processors that take interrupts
	helpers        int
	role           string // of the helpers
	work, soft     float64
	helper         float64
	bytes          float64 // of an operation, each way
	link           float64 // B/s
	device         float64 // s of an operation in the disk
	lanes          int     // requests that the disk serves at once
	path           float64 // delay of the sandbox
	sync, syncs    float64 // s of an operation in fsync; of which this is there natively
	trip, gofer    float64 // s of an operation in round trips to the gofer; the part of them that is its CPU
	limit          float64 // operations a second that the cgroup may do on disks; 0: any
	cached         bool    // requests end in memory
	cachedNatively bool
	peer           float64 // delay of the other end
	peerCPU        float64 // of its one thread
	calls          float64 // system calls of an operation
	price          float64 // of intercepting one
	slots          int     // operations inside at once; 0: any number
	quota          float64 // cores; 0: none
	wait           float64 // part of the time that runnable threads wait for the host
	steal          float64 // part of the wanted time that the hypervisor takes
	hostSoft       float64 // soft interrupts of the one host processor that serves this traffic
	lock           float64 // s of an operation under one lock, CPU of a guest thread
	pause          float64 // part of the time in which nothing moves
	pauseCPU       bool    // a processor of the guest works meanwhile
	polling        bool    // helpers never sleep
	neighbour      float64 // part of the disk's time that others take
	drops          float64 // packets a second that are lost
	inflation      float64 // of all CPU of the sandbox, by memory; 1 is none
	guestInflation float64 // of the guest's alone
	others         float64 // part of the host's processors that others use
	crowded        bool    // the host is as full beside the native path: wait is there as well
	c2             float64 // squared coefficient of variation of services
}

// plain draws a world with room everywhere.
func plain(r *rand.Rand, place string, disk, stream bool, least, most int) world {
	w := world{place: place, disk: disk, stream: stream, n: least + r.IntN(most-least+1), inflation: 1, guestInflation: 1}
	w.host = []int{16, 32, 64}[r.IntN(3)]
	w.threads = w.n
	w.cpus = min(w.host/2, max(4, 2*w.n))
	w.queues = max(2, w.cpus/2)
	w.helpers = max(2, w.n)
	w.role = "vhost"
	w.work = spread(r, 4e-6, 1.8)
	w.soft = spread(r, 1.5e-6, 1.5)
	w.helper = spread(r, 2.5e-6, 1.5)
	w.bytes = math.Exp(math.Log(64) + r.Float64()*math.Log(64))
	w.link = spread(r, 30e9, 2)
	w.peer = spread(r, 20e-6, 1.5)
	w.calls = 2
	w.others = 0.15 * r.Float64()
	w.c2 = spread(r, 0.1, 4)
	if stream {
		w.bytes = 65536
		w.link = spread(r, 400e9, 1.5)
		w.n *= 8
		w.peer = 25 * (w.work + w.soft + w.helper) // half of what the threads could do
	}
	if disk {
		w.role = "iothread"
		w.bytes = 4096 * math.Pow(2, float64(r.IntN(5)))
		w.device = spread(r, 60e-6, 2)
		w.lanes = 64
		w.peer, w.link = 0, 0
		w.soft = 0.5e-6
	}
	switch place {
	case sentry:
		w.role = "sentry"
	case container:
		w.helper = 0
	}
	return w
}

func spread(r *rand.Rand, middle, factor float64) float64 {
	return middle * math.Exp((2*r.Float64()-1)*math.Log(factor))
}

// native is the same load without a sandbox. What the host, the link, the disk and the
// workload's shape do is there as well.
func (w world) native() world {
	w.place = "native"
	w.helper, w.path, w.price, w.slots, w.quota, w.lock, w.pause, w.drops, w.peerCPU = 0, 0, 0, 0, 0, 0, 0, 0, 0
	w.inflation, w.guestInflation, w.polling, w.hostSoft, w.neighbour = 1, 1, false, 0, 0
	if !w.crowded {
		w.wait, w.steal = w.wait/4, w.steal/4 // what fills the host is mostly the sandbox's own need of it
	}
	w.cpus, w.queues = w.host, w.host/2
	w.sync, w.trip, w.limit, w.cached = w.syncs, 0, 0, w.cachedNatively
	return w
}

// figures are what a world comes to.
type figures struct {
	rate, time, middle float64 // operations a second, mean and median seconds
	throttled, held    float64 // part of the periods, s/s
}

// cost is what an operation takes of the processors: threads, soft interrupts, helpers.
func (w *world) cost() (work, soft, helper float64) {
	g := w.inflation * w.guestInflation
	return w.work*g + w.calls*w.price/2, w.soft * g, w.helper*w.inflation + w.calls*w.price/2
}

// solve says how fast a world is with n operations under way.
func (w *world) solve(n int) figures {
	work, soft, helper := w.cost()
	slow := 1 / (1 - w.wait) / (1 - w.steal)
	outside := w.peer
	inside := []station{{w.path + w.sync + w.trip, 0}, {w.hostSoft * slow, 1}, {w.lock * w.inflation * slow, 1}}
	if w.helper > 0 {
		inside = append(inside, station{helper * slow, w.helpers})
	} else {
		work += helper
	}
	threads := min(w.threads, n)
	if w.cpus <= threads {
		inside = append(inside, station{(work + soft) * slow, w.cpus})
	} else {
		inside = append(inside, station{work * slow, threads}, station{soft * slow, w.queues})
	}
	if w.link > 0 {
		inside = append(inside, station{w.bytes / w.link, 1}, station{w.bytes / w.link, 1})
	}
	if w.device > 0 && !w.cached {
		inside = append(inside, station{w.device / (1 - w.neighbour), w.lanes})
	}
	if w.peerCPU > 0 {
		inside = append(inside, station{w.peerCPU, 1})
	}
	var f figures
	if w.slots > 0 {
		f.rate, f.time = limited(n, w.slots, inside, max(outside, 1e-7), w.c2)
	} else {
		f.rate, f.time = closed(n, append(inside, station{outside, 0}), w.c2)
	}
	if w.limit > 0 && f.rate > w.limit {
		f.time *= f.rate / w.limit
		f.rate = w.limit
	}
	if w.quota > 0 {
		used := f.rate * (work + soft + helper)
		full := used / w.quota
		// Use varies from period to period: some end early though the mean fits.
		f.throttled = phi((full - 1) / 0.06)
		if full > 1 {
			f.held = min(float64(threads), used) * (1 - 1/full) * 1.1
			f.rate /= full
			f.time *= full
		} else {
			f.held = 0.02 * f.throttled * used
		}
	}
	f.middle = 0.93 * f.time
	f.rate *= 1 - w.pause
	f.time /= 1 - w.pause
	return f
}

func phi(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
