package cause

import (
	"fmt"
	"math"

	"tare/record"
)

// ioLimitRule: what the cgroup may read or write a second, of the limit that is used most. The
// kernel spreads requests evenly over time (cgroup-v2.rst, io.max), so a limit that holds
// requests back is used whole.
func ioLimitRule() rule {
	use := func(f *facts) float64 { return f.own.or(fIOLimit, 0) }
	return rule{kind: IOLimit, limit: linkFull, full: true, needs: []string{"cgroup"}, weight: use,
		shows: []gauge{
			{name: "disk traffic, share of the cgroup's limit", unit: record.Fraction, limit: linkFull, get: plain(fIOLimit), series: []string{record.CgroupIORead, record.CgroupIOWritten, record.CgroupIOReads, record.CgroupIOWrites}},
		}}
}

// deviceRule: a disk that always has a request, or requests that spend their time
// in it. The disk is everybody's, so only that part of them counts which is the
// workload's own by its bytes; operations that are less than a sector each are not
// the disk's.
// A disk serves several requests at once, so being never idle is not being full;
// where most of the operations under way are in it, it is what they wait for. Whether it would do
// more if more were asked of it, only cells with another load tell: see roomy.
func deviceRule() rule {
	return rule{kind: Device, limit: 0.6, full: true, needs: []string{"disk"},
		weight: func(f *facts) float64 { return f.unless(Depth, deviceUse(f)) },
		shows: []gauge{
			{name: "busiest device, share of the time with a request", unit: record.Fraction, limit: alwaysBusy, get: plain(fDeviceBusy), series: []string{record.DeviceBusy}},
			{name: "requests in it", unit: record.Count, get: plain(fDeviceQueue), series: []string{record.DeviceQueue}},
			{name: "time of a request in it", unit: record.Second, get: plain(fDeviceTime), series: []string{record.DeviceQueue, record.DeviceRequests}},
			{name: "part of the time in which a thread waited for a disk (pressure)", unit: record.Fraction, get: plain(fIOPressure), series: []string{record.CgroupIOPressure}},
			{name: "its bytes that are the workload's", unit: record.Fraction, limit: 0.5, get: diskPart, series: []string{record.CgroupIORead, record.CgroupIOWritten}},
		}}
}

// alwaysBusy is the part of the time from which a disk always has a request.
const alwaysBusy = 0.85

// deviceUse is how full the disk is: with operations under way, or by the time that it has one.
func deviceUse(f *facts) float64 {
	part := inDevice(f)
	if busy := f.own[fDeviceBusy]; part > 0 && busy > alwaysBusy && diskPart(f) >= 0.5 {
		return max(part, busy)
	}
	return part
}

// inDevice is the part of the operations under way that is in the disk.
func inDevice(f *facts) float64 {
	s := &f.own
	switch {
	case !s.has(fDeviceBusy, fDisk):
		return math.NaN()
	case !ownDisk(s):
		return 0
	}
	n := f.inFlight()
	if !(n >= 1) {
		n = 1
	}
	return min(1, diskPart(f)*s.or(fDeviceQueue, 0)/n)
}

// ownDisk says that the end's operations are the disk's: each has a sector of it at least.
func ownDisk(s *sheet) bool {
	if s.has(fRate) {
		return s[fDisk] >= 512*s[fRate] // false of NaN
	}
	return s[fDisk] >= 0.5*s.or(fValue, 0)
}

// diskPart is the part of the busiest disk's bytes that the end read and wrote.
func diskPart(f *facts) float64 {
	s := &f.own
	switch {
	case !s.has(fDisk, fDeviceBytes):
		return math.NaN()
	case !(s[fDeviceBytes] > 0):
		return 0
	}
	return min(1, s[fDisk]/s[fDeviceBytes])
}

// With so many times the load, a cell tells whether the disk was full with less of it. Of twice the load
// a disk with room does most, and a full one next to nothing; where the load grows by
// less, so does the gain (hasRoom and isFull are of twice). And with less load, an operation takes as
// long in a disk with room, and much less where it had to wait.
const (
	hasRoom, isFull   = 1.5, 1.2
	noWait, muchWaits = 1.15, 1.7
)

// gain is how many times as much the disk does with the family's next higher load; more is how
// many times the load that is. NaN without such a cell.
func (f *facts) gain() (gain, more float64) {
	n := f.inFlight()
	if f.high == nil {
		return math.NaN(), math.NaN()
	}
	return f.high.value / f.own.unit(), f.high.load / n
}

// slowed is how many times as long an operation takes as with the family's lowest load. NaN without such
// a cell.
func (f *facts) slowed() float64 {
	n := f.inFlight()
	if f.low == nil || !(f.low.value > 0) || !(n >= spread*f.low.load) {
		return math.NaN()
	}
	return n / f.own.unit() / (f.low.load / f.low.value)
}

// roomy says which it is where most operations under way are in the disk: Device, it
// is full; Depth, too few are under way; Untold, the study does not tell.
func (f *facts) roomy() Name {
	gain, more := f.gain()
	twice := math.Log(min(2, more)) / math.Log(2)
	room, full := math.Pow(hasRoom, twice), math.Pow(isFull, twice)
	off := 1.0 // the trials scatter by so much: what is seen may be more or less by it
	if f.from.open > 0 {
		off = math.Exp(f.from.open)
	}
	switch slowed := f.slowed(); {
	case gain >= room && gain/off > full:
		return Depth
	case gain <= full && gain*off < room:
		return Device
	case !math.IsNaN(gain):
		return Untold
	case slowed >= muchWaits && slowed/off > noWait:
		return Device
	case slowed <= noWait && slowed*off < muchWaits:
		return Depth
	case math.IsNaN(slowed) && f.inFlight() <= alone && !f.several():
		return Depth // nothing waits for another in it
	}
	return Untold
}

// several says that an operation is several requests: then the operations in flight are not the disk's
// depth.
func (f *facts) several() bool {
	return f.own[fDeviceQueue]*diskPart(f) > alone*max(1, f.inFlight())
}

// unless is a weight, or 0 where the disk is told to be the other of Device and Depth.
func (f *facts) unless(other Name, w float64) float64 {
	if w > 0 && f.roomy() == other {
		return 0
	}
	return w
}

// depthRule: most of the operations under way are in the disk, and it would do more at once.
// The limit is the disk's.
func depthRule() rule {
	return rule{kind: Depth, limit: 0.6, full: true, needs: []string{"disk"},
		weight: func(f *facts) float64 {
			if f.several() {
				return 0
			}
			return f.unless(Device, inDevice(f))
		},
		shows: []gauge{
			{name: "operations in flight", unit: record.Count, get: func(f *facts) float64 { return f.inFlight() }},
			{name: "speed with more in flight, times this", unit: record.Fraction, limit: hasRoom, get: func(f *facts) float64 { g, _ := f.gain(); return g }},
			{name: "time of an operation, times that with the fewest in flight", unit: record.Fraction, limit: noWait, get: func(f *facts) float64 { return f.slowed() }},
		}}
}

// fsyncRule: the part of the operations' time that they wait for what was written. The workload
// measures it.
func fsyncRule() rule {
	return rule{kind: Fsync, limit: 0.6, full: true, needs: []string{"disk"}, weight: func(f *facts) float64 { return f.own.or(fSync, 0) },
		shows: []gauge{
			{name: "time in fsync, share of the operations'", unit: record.Fraction, limit: 0.6, get: plain(fSync)},
			{name: "flushes of the disk's cache", unit: record.PerSecond, get: plain(fDeviceFlushes), series: []string{record.DeviceFlushes}},
			{name: "bytes of the disk for each of the workload's", unit: record.Fraction, get: func(f *facts) float64 { return f.own[fDeviceBytes] / f.own[fDisk] }, series: []string{record.DeviceRead, record.DeviceWrote}},
		}}
}

// apart is the difference of the parts of two sides' bytes that no disk had from which
// they do not read and write the same thing.
const apart = 0.5

// What a page cache is named by: at least so many bytes, since read-ahead, metadata and the journal are some of them; a window that is so
// long that a program's start and end, which took up to a second on a busy host, do not look like bytes that are missing, unless the
// workload tells how long its load ran; and where no side read and wrote past the page cache (direct is what it misses at most), one as long
// as the kernel may keep what was written (Linux, admin-guide/sysctl/vm.rst, dirty_expire_centisecs: 30 s).
const (
	leastVolume = 16 << 20 // B
	longWindow  = 5.0      // s
	direct      = 0.2
	writtenBack = 30.0 // s
)

// brief says why the trials are too short to name the page cache; "" if they are not. What was not read, as in imported results, is no
// reason.
func (f *facts) brief() string {
	for _, s := range []*sheet{&f.own, &f.base} {
		switch {
		case s[fVolume] < leastVolume:
			return fmt.Sprintf("only %.2g MB were read and written in a trial", s[fVolume]/1e6)
		case s[fWindow] < longWindow && !s.has(fLoaded):
			return fmt.Sprintf("the measured window of %s is too short to tell which bytes reached a disk", duration(s[fWindow]))
		case s[fWindow] < writtenBack && min(f.own[fMissed], f.base[fMissed]) > direct:
			return fmt.Sprintf("both use the page cache, and the measured window of %s is too short to tell what reaches a disk later", duration(s[fWindow]))
		}
	}
	return ""
}

// pageCacheRule: the bytes of a disk benchmark that no disk had, on one side of the comparison alone.
func pageCacheRule() rule {
	return rule{kind: PageCache, limit: apart, needs: []string{"disk"},
		weight: func(f *facts) float64 {
			d := f.own[fMissed] - f.base[fMissed]
			switch {
			case f.baseline || math.IsNaN(d):
				return 0
			case d < 0 && !f.costs: // the disk's own way
				return 0
			}
			return math.Abs(d)
		},
		shows: []gauge{
			{name: "the workload's bytes that reached no disk", unit: record.Fraction, get: plain(fMissed), series: []string{record.CgroupIORead, record.CgroupIOWritten, record.DeviceRead, record.DeviceWrote}},
			{name: "the baseline's bytes that reached no disk", unit: record.Fraction, get: func(f *facts) float64 { return f.base[fMissed] }},
		}}
}

// tripping is the part of an operation's added time from which a gofer's own work shows that
// operations wait for it. The rest of a round trip are two wake-ups, in which nothing is busy.
const tripping = 0.1

// goferRule: operations ask another process for files, and wait for its answer.
func goferRule() rule {
	part := func(f *facts) float64 {
		if !f.own.has(fGofer) {
			return 0
		}
		return f.trips()
	}
	return rule{kind: Gofer, limit: 0.25, needs: []string{"proc"}, weight: part,
		shows: []gauge{
			{name: "round trips to the gofer, share of an operation's time", unit: record.Fraction, limit: 0.25, get: func(f *facts) float64 {
				if !f.own.has(fGofer) {
					return math.NaN()
				}
				return f.trips()
			}},
			{name: "gofer, share of a core", unit: record.Cores, get: plain(fGofer), series: []string{record.CPUTime}},
		}}
}

// trips is the part of an operation's time in round trips to the gofer: its own work, and the time
// that was added and in which nothing was busy. 0 where its work is too little for that.
func (f *facts) trips() float64 {
	t, added := f.time(), f.time()-f.baseFacts().time()
	work := f.own.or(fGofer, 0) / f.own.or(fRate, math.NaN())
	if f.baseline || !(added > 0) || !(work >= tripping*added) {
		return 0
	}
	return min(1, (work+max(0, f.added()))/t)
}
