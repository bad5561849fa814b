package cgroup

import (
	"bytes"
	"math"

	"tare/internal/held"
	"tare/record"
)

// which of an endpoint's cgroups a file is read from.
type which int

const (
	outer   which = iota // the outermost, which include their descendants
	limited              // those with a limit
	both                 // for figures that version 1 counts in each cgroup separately
)

// source is one file that has a figure.
type source struct {
	controller string // "" is the unified hierarchy
	file       string
	from       which
	scale      float64 // to the base unit
	parse      func([]byte) (uint64, bool)
	late       bool   // may have no figure at first
	per        string // file beside it with the number by which the figure is divided; "": do not divide
}

// figure is one series and the files that may have it, best first.
type figure struct {
	name    string
	unit    record.Unit
	better  record.Better
	kind    record.SampleType
	help    string
	sources []source
	whole   bool // it is valid only if every cgroup that is read has it
}

// figures lists all series. Version 1's files come first: on a hybrid host they have the
// figures, and the unified tree may have an empty cgroup of the same name. On a version 2
// host they do not exist.
func figures() []figure {
	return []figure{
		{
			"cgroup_cpu", record.Second, record.Lower, record.Counter, "CPU time of all the sandbox's processes",
			[]source{{"cpuacct", "cpuacct.usage", outer, 1e-9, bare, false, ""}, {"", "cpu.stat", outer, 1e-6, key("usage_usec"), false, ""}}, false,
		},
		{
			"cgroup_cpu_user", record.Second, record.Lower, record.Counter, "the part of it in user mode",
			[]source{{"cpuacct", "cpuacct.usage_user", outer, 1e-9, bare, false, ""}, {"cpuacct", "cpuacct.stat", outer, 1e-2, key("user"), false, ""}, {"", "cpu.stat", outer, 1e-6, key("user_usec"), false, ""}}, false,
		},
		{
			"cgroup_cpu_system", record.Second, record.Lower, record.Counter, "the part of it in the kernel",
			[]source{{"cpuacct", "cpuacct.usage_sys", outer, 1e-9, bare, false, ""}, {"cpuacct", "cpuacct.stat", outer, 1e-2, key("system"), false, ""}, {"", "cpu.stat", outer, 1e-6, key("system_usec"), false, ""}}, false,
		},
		{
			record.CgroupPeriods, record.Count, record.Neither, record.Counter, "enforcement periods of the CPU limit in which the sandbox ran",
			[]source{{"cpu", "cpu.stat", limited, 1, key("nr_periods"), false, ""}, {"", "cpu.stat", limited, 1, key("nr_periods"), false, ""}}, false,
		},
		{
			record.CgroupThrottledPeriods, record.Count, record.Lower, record.Counter, "those of them in which the limit was reached",
			[]source{{"cpu", "cpu.stat", limited, 1, key("nr_throttled"), false, ""}, {"", "cpu.stat", limited, 1, key("nr_throttled"), false, ""}}, false,
		},
		{
			record.CgroupThrottledTime, record.Second, record.Lower, record.Counter, "time held back by the CPU limit, summed over processors",
			[]source{{"cpu", "cpu.stat", limited, 1e-9, key("throttled_time"), false, ""}, {"", "cpu.stat", limited, 1e-6, key("throttled_usec"), false, ""}}, false,
		},
		{
			record.CPUQuota, record.Cores, record.Neither, record.Gauge, "cores that the cgroup with the CPU limit may use; no series without a limit",
			[]source{{"cpu", "cpu.cfs_quota_us", limited, 1, bare, true, "cpu.cfs_period_us"}, {"", "cpu.max", limited, 1e-6, share, true, ""}}, true,
		},
		{
			"cgroup_memory", record.Byte, record.Lower, record.Gauge, "memory charged, page cache included",
			[]source{{"memory", "memory.usage_in_bytes", outer, 1, bare, false, ""}, {"", "memory.current", outer, 1, bare, false, ""}}, false,
		},
		{
			"cgroup_memory_peak", record.Byte, record.Lower, record.Gauge, "the most that was charged at once, so far",
			[]source{{"memory", "memory.max_usage_in_bytes", outer, 1, bare, false, ""}, {"", "memory.peak", outer, 1, bare, false, ""}}, false,
		},
		{
			record.CgroupAnon, record.Byte, record.Lower, record.Gauge, "memory that no file backs: heaps and stacks",
			[]source{{"memory", "memory.stat", outer, 1, key("total_rss"), false, ""}, {"", "memory.stat", outer, 1, key("anon"), false, ""}}, false,
		},
		{
			record.CgroupShmem, record.Byte, record.Lower, record.Gauge, "shared memory and tmpfs; the memory of a guest that QEMU shares with virtiofsd",
			[]source{{"memory", "memory.stat", outer, 1, key("total_shmem"), false, ""}, {"", "memory.stat", outer, 1, key("shmem"), false, ""}}, false,
		},
		{
			record.CgroupKernel, record.Byte, record.Lower, record.Gauge, "memory of the kernel for it: page tables, stacks, sockets",
			[]source{{"memory", "memory.kmem.usage_in_bytes", outer, 1, bare, false, ""}, {"", "memory.stat", outer, 1, key("kernel"), false, ""}}, false,
		},
		{
			"cgroup_oom_kills", record.Count, record.Lower, record.Counter, "processes killed for memory",
			[]source{{"memory", "memory.oom_control", both, 1, key("oom_kill"), false, ""}, {"", "memory.events", outer, 1, key("oom_kill"), false, ""}}, false,
		},
		{
			"cgroup_tasks", record.Count, record.Neither, record.Gauge, "threads in the sandbox, as the host counts them",
			[]source{{"pids", "pids.current", outer, 1, bare, false, ""}, {"", "pids.current", outer, 1, bare, false, ""}}, false,
		},
		{
			"cgroup_cpu_pressure", record.Second, record.Lower, record.Counter, "time in which some thread waited for a processor",
			[]source{{"", "cpu.pressure", outer, 1e-6, some, false, ""}}, false,
		},
		{
			"cgroup_memory_pressure", record.Second, record.Lower, record.Counter, "time in which some thread waited for memory",
			[]source{{"", "memory.pressure", outer, 1e-6, some, false, ""}}, false,
		},
		{
			record.CgroupIOPressure, record.Second, record.Lower, record.Counter, "time in which some thread waited for a disk",
			[]source{{"", "io.pressure", outer, 1e-6, some, false, ""}}, false,
		},
		disks(record.CgroupIORead, record.Byte, "bytes read from disks", "io_service_bytes", "Read ", "rbytes="),
		disks(record.CgroupIOWritten, record.Byte, "bytes written to disks", "io_service_bytes", "Write ", "wbytes="),
		disks(record.CgroupIOReads, record.Count, "requests that read from disks", "io_serviced", "Read ", "rios="),
		disks(record.CgroupIOWrites, record.Count, "requests that wrote to disks", "io_serviced", "Write ", "wios="),
		limit(record.CgroupIOLimitRead, record.BytesPerSecond, "bytes a second that it may read from its most limited disk; no series without a limit", "read_bps_device", "rbps="),
		limit(record.CgroupIOLimitWrite, record.BytesPerSecond, "bytes a second that it may write there", "write_bps_device", "wbps="),
		limit(record.CgroupIOLimitReads, record.PerSecond, "requests a second that may read there", "read_iops_device", "riops="),
		limit(record.CgroupIOLimitWrites, record.PerSecond, "requests a second that may write there", "write_iops_device", "wiops="),
	}
}

// disks is a count of what reached disks.
func disks(name string, u record.Unit, help, v1, field1, field2 string) figure {
	return figure{name, u, record.Neither, record.Counter, help,
		[]source{{"blkio", "blkio.throttle." + v1 + "_recursive", outer, 1, device(field1), true, ""}, {"", "io.stat", outer, 1, device(field2), true, ""}}, false}
}

// limit is what io.max, or version 1's blkio.throttle files, let a group do a second.
func limit(name string, u record.Unit, help, v1, field2 string) figure {
	return figure{name, u, record.Neither, record.Gauge, help,
		[]source{{"blkio", "blkio.throttle." + v1, both, 1, lowest(""), true, ""}, {"", "io.max", both, 1, lowest(field2), true, ""}}, false}
}

// bare reads a file that is one number.
func bare(b []byte) (uint64, bool) {
	n, _, ok := held.Uint(b)
	return n, ok
}

// key reads one line of a flat keyed file.
func key(name string) func([]byte) (uint64, bool) {
	return func(b []byte) (uint64, bool) { return held.Value(b, name) }
}

// share reads cpu.max, "QUOTA PERIOD", as millionths of a processor. Without a
// limit QUOTA is the word max.
func share(b []byte) (uint64, bool) {
	const million = 1_000_000
	quota, rest, ok := held.Uint(b)
	if !ok || len(rest) == 0 || rest[0] != ' ' {
		return 0, false
	}
	period, _, ok := held.Uint(rest[1:])
	if !ok || period == 0 || quota > math.MaxUint64/million {
		return 0, false
	}
	return quota * million / period, true
}

func some(b []byte) (uint64, bool) { return held.Pressure(b, "some") }

// device adds up one field over the devices of io.stat
//
//	8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0
//
// or of version 1's blkio files, "8:16 Read 1459200" and at the end "Total ...".
// A file without a line of a device gives no figure: either the group had no traffic yet, or
// the kernel does not count it. On hosts whose disks bypass the throttling layer the file
// stays at "Total 0", so a zero could be wrong.
func device(field string) func([]byte) (uint64, bool) {
	name := []byte(" " + field)
	return func(b []byte) (sum uint64, found bool) {
		for len(b) > 0 {
			var value []byte
			if value, b = nextDevice(b, name); value == nil {
				continue
			}
			n, _, ok := held.Uint(value)
			if !ok || sum+n < sum {
				return 0, false
			}
			sum, found = sum+n, true
		}
		return sum, found
	}
}

// lowest finds the lowest limit of any device: in io.max after the field's name, where max is no
// limit, or in version 1's files as all that follows the device.
//
//	8:16 rbps=2097152 wbps=max riops=max wiops=120
//	8:16 2097152
func lowest(field string) func([]byte) (uint64, bool) {
	name := []byte(" " + field)
	return func(b []byte) (least uint64, found bool) {
		for len(b) > 0 {
			var value []byte
			value, b = nextDevice(b, name)
			if n, _, ok := held.Uint(value); ok && (!found || n < least) {
				least, found = n, true
			}
		}
		return least, found
	}
}

// nextDevice takes the first line off b. It returns what follows name on it, or nil if the line
// is not a device's or has no such field.
func nextDevice(b, name []byte) (value, rest []byte) {
	line, rest := held.Line(b)
	i := bytes.Index(line, name)
	if i < 0 || bytes.IndexByte(line[:i], ':') < 0 {
		return nil, rest
	}
	return line[i+len(name):], rest
}
