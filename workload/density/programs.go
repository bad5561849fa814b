package density

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/servers"
)

const (
	// Guesses of one start and the wait for the memory to settle: of a program that
	// only waits, and of a service with its interpreter.
	perSandbox = 500 * time.Millisecond
	perService = 3 * time.Second
	// fillRate, in bytes a second, is a low guess of how fast a redis-server fills
	// itself: gVisor's first touch of memory is slow.
	fillRate = 100 << 20

	// A value with its header (sds, 6 bytes) exactly fills a size class of redis's allocator,
	// jemalloc; a key with its entry takes about keyBytes more. So the server uses what was
	// requested, to 1 %.
	valueClass = 10240
	valueBytes = valueClass - 6
	keyBytes   = 100

	wanted   = 1_000_000_000 // of data: auto
	rounding = 1_000_000
)

// hostMemory returns the host's whole memory. Available memory was rejected: it differs from
// trial to trial, and so would the amount of data.
func hostMemory() int64 {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit) //nolint:gosec // far below 2^63
}

// role returns the role of the program that waits in each sandbox.
func (d density) role(v param.Values) (workload.Role, error) {
	n := v.Int("count")
	r := workload.Role{Name: "main", Mode: workload.Idle, Count: n}
	each := perSandbox
	if v.Str("data") != "auto" && v.Str("program") != "redis" {
		return r, fmt.Errorf("data = %s is for program: redis, not for %s", v.Str("data"), v.Str("program"))
	}
	switch v.Str("program") {
	case "sleep":
		// A shell reports that it runs and then becomes the sleep, so only that process stays.
		// The time is the longest that every sleep(1) accepts.
		r.Args, r.Needs = []string{"/bin/sh", "-c", "echo x; exec sleep 2147483647"}, []string{"sh", "sleep"}
	case "node", "ruby":
		s, _ := servers.Find(v.Str("program"))
		r.Args, r.Image, r.Probe, each = s.Args, s.Image, &s.Probe, perService
	case "redis":
		size, err := d.data(v)
		if err != nil {
			return r, err
		}
		each += time.Duration(size * int64(time.Second) / fillRate)
		s := servers.Redis(servers.RedisPort, "--enable-debug-command", "yes")
		// The probe's request fills the server, and its answer comes when the server is full. So
		// the sandbox needs no other program, whose memory would count. Repeated requests change
		// nothing, because DEBUG POPULATE keeps existing keys.
		s.Probe.Send, s.Probe.Want = fmt.Sprintf("DEBUG POPULATE %d key %d\r\n", max(1, size/(valueClass+keyBytes)), valueBytes), "+OK"
		r.Args, r.Image, r.Probe = s.Args, s.Image, &s.Probe
	default:
		r.Args = []string{"/tare-pause"}
	}
	r.Expect = time.Duration(n) * each
	return r, nil
}

// data returns how much each redis-server holds, in bytes.
func (d density) data(v param.Values) (int64, error) {
	total, n := d.memory(), int64(max(1, v.Int("count")))
	if v.Str("data") == "auto" {
		if room := total / 2 / n; total > 0 && room < wanted {
			return max(rounding, room/rounding*rounding), nil
		}
		return wanted, nil
	}
	size := v.Size("data")
	if limit := total / 4 * 3; total > 0 && size > limit/n {
		return 0, fmt.Errorf("data = %s in each of count = %d sandboxes is more than three quarters of this host's %s; write data: auto, or a smaller count",
			v.Str("data"), n, param.FormatSize(total))
	}
	return size, nil
}

// holds adds how much data the sandboxes held, and a warning if the memory does not show it.
func (d density) holds(rd *record.Reading, v param.Values, slope float64) {
	if v.Str("program") != "redis" {
		return
	}
	size, err := d.data(v)
	if err != nil {
		return // impossible: Roles refuses it
	}
	rd.Value("data", record.Byte, float64(size))
	if v.Str("data") == "auto" && size < wanted {
		rd.Warn("data-scaled", "each redis-server held %.0f MB instead of 1 GB, so that %s of them fit into half of this host's memory", float64(size)/1e6, v.Str("count"))
	}
	if slope < float64(size)/2 {
		rd.Warn("data-unseen", "each redis-server held %.0f MB and took only %.0f MB of the host's memory: others on it gave memory back meanwhile (see the readings, samples 'available'), or it merges, compresses or swaps out memory (KSM, zram, swap)", float64(size)/1e6, slope/1e6)
	}
}
