// Package fio is the workload fio: reading and writing files with the real fio
//
// The data path: 1. Roles turns the parameters into a fio command that lays out the
// files that are read (really written, not preallocated; read once where they are to be
// in the page cache) and, for after it, one that measures for a fixed time, so that its
// window opens with its ramp's end and is over when fio prints;
// 2. fio prints JSON with the bins of its own latency histograms (json+), and a
// shell its logs of the rate after that (log.go); 3. parse reads every job of it; 4. Parse
// sums the jobs and merges their histograms, by direction, into samples.
//
// Latency is fio's lat: from the submission of a request to its completion. fio's clat lacks
// the submission, which has the isolation's cost of a system call. Reference: fio(1),
// "Interpreting the output"; json+ in
// https://fio.readthedocs.io/en/latest/fio_doc.html#json-output.
package fio

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/workload"
	"tare/workload/target"
)

// New returns the workload.
func New() workload.Workload { return fio{} }

type fio struct{}

func (fio) Name() string { return "fio" }

func (fio) About() string {
	return "fio: reads and writes files; shows what an isolation costs storage, in its data path and in system calls"
}

func (fio) Params() []param.Param {
	return []param.Param{
		{Name: "rw", Type: param.Enum, Default: "randread", Words: []string{"read", "write", "randread", "randwrite", "rw", "randrw"}, Help: "direction and order of the requests; rw and randrw are half reads, half writes"},
		{Name: "bs", Type: param.Size, Default: "4KiB", Min: 512, Max: 64 << 20, Help: "size of a request"},
		{Name: "size", Type: param.Size, Default: "64MiB", Min: 4096, Max: 1 << 40, Help: "size of each job's file"},
		{Name: "jobs", Type: param.Int, Default: "1", Min: 1, Max: 64, Help: "processes, each with a file of its own"},
		{Name: "iodepth", Type: param.Int, Default: "1", Min: 1, Max: 1024, Help: "requests of a job in flight; more than 1 needs the engine libaio or io_uring"},
		{Name: "engine", Type: param.Enum, Default: "psync", Words: []string{"sync", "psync", "libaio", "io_uring"}, Help: "system calls that are used: read and write, pread and pwrite, io_submit, io_uring"},
		{Name: "cache", Type: param.Enum, Default: "warm", Words: []string{"warm", "dropped", "direct"}, Help: "warm: the files are in the page cache; dropped: they leave it before the load, which ends with the files; direct: past it (O_DIRECT); not every sandbox obeys the last two"},
		{Name: "rate", Type: param.Float, Offered: true, Default: "0", Min: 0, Max: 1e7, Help: "requests a second over all jobs, at random times (open loop, fio's rate_iops); 0: as fast as answers come"},
		{Name: "fsync", Type: param.Int, Default: "0", Min: 0, Max: 1 << 20, Help: "fsync after this many writes; 0 for never"},
		{Name: "duration", Type: param.Duration, Default: "2s", Min: 0.1, Max: 3600, Help: "measured time"},
		{Name: "warmup", Type: param.Duration, Default: "500ms", Min: 0, Max: 3600, Help: "time before the measuring begins (fio's ramp_time)"},
		target.Param("the files are", "; block, no files but a block device on the disk; device, the block device that the parameter device names", append(target.Files(), target.Block, target.Device)...),
		{Name: "device", Type: param.String, Default: "", Help: "with target device: the host's block device, such as /dev/sdb, or several with : between them; what they hold is lost"},
		{Name: "overwrite", Type: param.String, Default: "", Help: "what the device holds and may lose, as its refusal names it, such as ext4 0b7d42aa-...; of several devices with : between them; without it, a device that holds anything is refused"},
		{Name: "free", Type: param.Int, Default: "0", Min: 0, Max: 90, Replaces: "size", Help: "percent of the target's free space that the files of all jobs take together, instead of size; 0: use size"},
		{Name: "prepare", Type: param.String, Valid: checkPrepare, Help: "steps before the load: trim (a device), fill (write all of it), precondition (overwrite at random until the rate is steady)"},
		{Name: "jobfile", Type: param.File, Help: "a job file of fio, used instead of rw, bs, jobs and the like, which it can contain as ${RW}, ${BS}, ${JOBS}"},
		{Name: "vars", Type: param.String, Help: "values of the job file's other ${VARIABLES}: mix=70 think=2ms"},
	}
}

func (fio) Roles(v param.Values) ([]workload.Role, error) {
	if v.Str("jobfile") != "" {
		return jobRoles(v)
	}
	bs, size, engine := v.Size("bs"), v.Size("size"), v.Str("engine")
	duration, warmup := v.Duration("duration"), v.Duration("warmup")
	if err := checkTarget(v); err != nil {
		return nil, err
	}
	switch {
	case v.Str("vars") != "":
		return nil, &param.ValueError{Param: "vars", Err: errors.New("vars are of a job file; add jobfile: FILE, or remove vars")}
	case v.Int("iodepth") > 1 && (engine == "sync" || engine == "psync"):
		return nil, fmt.Errorf("iodepth = %s has no effect with engine = %s, which has one request in flight; write engine: libaio or io_uring", v.Str("iodepth"), engine)
	case size < bs:
		return nil, fmt.Errorf("size = %s is smaller than bs = %s", v.Str("size"), v.Str("bs"))
	case v.Str("cache") == "direct" && bs%512 != 0:
		return nil, fmt.Errorf("bs = %s is not a multiple of 512 bytes, which cache = direct needs", v.Str("bs"))
	case v.Str("cache") == "dropped" && writesOnly(v.Str("rw")):
		return nil, fmt.Errorf("cache = dropped has no effect with rw = %s, which reads nothing; write cache: warm, or direct", v.Str("rw"))
	case v.Int("fsync") > 0 && directions(v.Str("rw"))[0] == "read" && len(directions(v.Str("rw"))) == 1:
		return nil, fmt.Errorf("fsync = %s has no effect with rw = %s, which writes nothing", v.Str("fsync"), v.Str("rw"))
	case duration%time.Millisecond != 0:
		return nil, fmt.Errorf("duration = %s is not a whole number of milliseconds", v.Str("duration"))
	case warmup%time.Millisecond != 0:
		return nil, fmt.Errorf("warmup = %s is not a whole number of milliseconds", v.Str("warmup"))
	}
	pace, err := pacing(v)
	if err != nil {
		return nil, err
	}
	role := workload.Role{
		Name: "main", Mode: workload.Exec, Needs: []string{"fio", "sh", "cat"},
		Volumes: volumes(v), Writable: v.Str("target") == "root", Room: size * int64(v.Int("jobs")),
		DropCaches: cold(v), Warmup: warmup, Expect: duration,
		Until: "{", // the start of its JSON: what follows is not load
	}
	if !writesOnly(v.Str("rw")) { // what is written alone is made by the load itself
		role.Before = layoutCommand(v)
	}
	role.Args = append([]string{"sh", "-c", script, "sh"}, files(v)...)
	role.Args = append(role.Args,
		"--bs="+strconv.FormatInt(bs, 10),
		"--iodepth="+v.Str("iodepth"),
		"--ioengine="+engine,
		"--direct="+flag(v.Str("cache") == "direct"),
		// By default fio drops the files from the cache whenever it opens them, with every
		// pass: a sandbox that ignores posix_fadvise(2) would read memory where others read the
		// disk.
		"--invalidate="+flag(v.Str("cache") == "dropped"),
		"--fsync="+v.Str("fsync"),
		"--runtime="+millis(duration), "--ramp_time="+millis(warmup),
		"--eta=never", "--output-format=json+")
	role.Args = append(role.Args, pace...)
	for _, o := range reported(duration) {
		role.Args = append(role.Args, "--"+o)
	}
	if !cold(v) {
		// A second pass over the files would find them in the page cache if the sandbox ignores
		// the advice to drop them, so a cold load has one pass.
		role.Args = append(role.Args, "--time_based")
	}
	if err := prepare(&role, v); err != nil {
		return nil, err
	}
	return []workload.Role{role}, nil
}

// reported are the options that make fio report what Parse reads.
func reported(duration time.Duration) []string {
	return []string{
		"group_reporting=0", // each job reports; parse adds them up
		// It would search /sys for the disk's counters, before the load and every 250 ms. These
		// calls do not belong to the load, and many sandboxes do not have that disk.
		"disk_util=0",
		"lat_percentiles=1", "clat_percentiles=1", "slat_percentiles=1",
		"write_iops_log=" + logPrefix, "log_avg_msec=" + interval(duration), "iopsavgtime=" + interval(duration),
	}
}

// checkTarget refuses what no load can have.
func checkTarget(v param.Values) error {
	switch {
	case (v.Str("target") == target.Device) != (v.Str("device") != ""):
		return errors.New("target = device and device = /dev/NAME need each other; write both, or neither")
	case v.Str("overwrite") != "" && v.Str("device") == "":
		return errors.New("overwrite has no effect without a device; write target: device and device: /dev/NAME, or remove it")
	case v.Str("overwrite") != "" && strings.Count(v.Str("overwrite"), ":") != strings.Count(v.Str("device"), ":"):
		return fmt.Errorf("overwrite = %s and device = %s do not have the same number of parts; write one for each device, empty for one that holds nothing", v.Str("overwrite"), v.Str("device"))
	case v.Str("device") == "":
		return nil
	}
	seen := map[string]bool{}
	for given := range strings.SplitSeq(v.Str("device"), ":") {
		path := filepath.Clean(given)
		switch {
		case !strings.HasPrefix(path, "/dev/"):
			return fmt.Errorf("device = %s is not below /dev; write the path of a block device, such as /dev/sdb", path)
		case seen[path]:
			return fmt.Errorf("device = %s names %s twice; remove one", v.Str("device"), path)
		}
		seen[path] = true
	}
	return nil
}

// Counting implements workload.Counter. fio takes some 0.2 s to start, more on a busy machine,
// and makes a thousand calls meanwhile. A warm-up that leaves that out, and a second of load,
// give only the calls of requests. One pass over cold files would end too soon, and a request
// makes the same calls for cold and for cached data.
func (fio) Counting(v param.Values) param.Values {
	out := maps.Clone(v)
	out["warmup"] = max(v.Duration("warmup"), countWarmup).String()
	out["duration"] = max(v.Duration("duration"), countDuration).String()
	if v.Str("cache") == "dropped" {
		out["cache"] = "warm"
	}
	return out
}

const (
	countWarmup   = 500 * time.Millisecond
	countDuration = time.Second
)

// warmLayout lays the files out and reads them once. fio ends a layout with posix_fadvise(2),
// POSIX_FADV_DONTNEED, even with --invalidate=0, so the page cache may be empty after it. The
// files are read in the sandbox, so that its own cache, if it has one, is warm too.
const warmLayout = `dir=$1 && shift && fio "$@" && cat "$dir"/tare.*.* >/dev/null`

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }
