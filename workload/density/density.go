// Package density is the workload density: how much of the host's memory one idle sandbox takes, how
// much of its disk, and how long it takes to start beside the others.
//
// The data path: 1. Roles asks run for N sandboxes with a program that only
// sleeps or waits for requests (programs.go); 2. run starts one after another, each when
// the last one is ready, and writes a workload.IdleLine with the host's available memory, the
// space of the sandboxes' files and the time of the start after each, and one more when all are gone;
// 3. Parse fits a line through the rising part: its slope is the memory of one sandbox, and what is not
// freed at the end is the leak. The slope of the space is its disk, the median of the times its start.
//
// It uses the host's available memory, not a sum over processes: only that includes page
// tables, kernel stacks, cgroups and network devices, and counts shared pages once. It is a
// sum of pages (host/freemem), not MemAvailable, which leaves out what a CPU has just freed:
// after a trial that freed hundreds of MB, MemAvailable did not fall with the next sandboxes.
// Everything else on the host changes it too, so the fit is the Theil-Sen estimator, the
// median of the slopes of all pairs of points, which tolerates up to 29 % of bad points (P. K.
// Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968). The
// difference of the ends would depend on two points, least squares on the worst ones.
package density

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// New returns the workload.
func New() workload.Workload { return density{hostMemory} }

type density struct {
	memory func() int64 // the host's whole memory, in bytes; 0: unknown
}

const (
	// page is the least memory of a sandbox, and the floor of the result.
	page = 4096
	// A leak of leakPart of a sandbox's memory, for each sandbox, gives a warning if it is more
	// than leakFloor in total: run takes readings as settled when they stay within half of that,
	// and the kernel frees cgroups late.
	leakPart  = 0.1
	leakFloor = 1 << 20
	// maxBytes is the largest host memory that is accepted.
	maxBytes = int64(1) << 56
	// maxSeconds bounds the time of one start: more than a day cannot be a measurement.
	maxSeconds = 86400
	// The responses, and the warning that the first is below noise.
	response     = "memory_per_sandbox"
	diskResponse = "disk_per_sandbox"
	start        = "start_p50"
	belowNoise   = record.BelowNoise + response
)

func (density) Name() string { return "density" }

func (density) About() string {
	return "starts N sandboxes that wait and reads the host's memory, and the disk space of their files, after each: what one of them takes, and what leaks"
}

func (density) Params() []param.Param {
	return []param.Param{
		{Name: "program", Type: param.Enum, Default: "pause", Words: []string{"pause", "sleep", "node", "ruby", "redis"}, Help: "what waits in each: pause: the smallest program; sleep: the host's; node, ruby: a web service that has answered; redis: redis-server that holds data"},
		{Name: "data", Type: param.Size, Default: "auto", Words: []string{"auto"}, Min: 1 << 20, Max: 1 << 44, Help: "what each redis-server holds; auto: 1 GB, or less so that all of them fit into half of the host's memory"},
		{Name: "count", Type: param.Int, Default: "5", Min: 3, Max: 500, Help: "sandboxes at the same time; more average more of the host's own changes out"},
		{Name: "disks", Type: param.Bool, Default: "false", Help: "also read the disk space of the sandboxes' own files; for sandboxes that have some, such as vm with root_disk: overlay or copy"},
	}
}

func (density) Responses(v param.Values) []record.Response {
	out := []record.Response{
		{Name: response, Unit: record.Byte, Better: record.Lower, Help: "the host's memory, free or cache, that each further sandbox takes (Theil-Sen slope)"},
		{Name: start, Unit: record.Second, Better: record.Lower, Help: "time from the call that makes a sandbox until its program runs, or has answered: the median over the sandboxes"},
		{Name: "leak", Unit: record.Byte, Better: record.Neither, Help: "available memory before the first sandbox less that after the last is gone; negative when the host freed some meanwhile"},
	}
	if v.Str("disks") == "true" {
		out = append(out, record.Response{Name: diskResponse, Unit: record.Byte, Better: record.Lower, Help: "disk space of the files that each further sandbox writes, including its root disk (Theil-Sen slope)"})
	}
	return out
}

func (d density) Roles(v param.Values) ([]workload.Role, error) {
	r, err := d.role(v)
	if err != nil {
		return nil, err
	}
	return []workload.Role{r}, nil
}

func (d density) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	n := v.Int("count")
	lines, err := output.Lines(out, "a memory reading", check)
	if err != nil {
		return rd, fmt.Errorf("density: %w", err)
	}
	if len(lines) != n+2 || lines[n+1].Count != 0 {
		return rd, fmt.Errorf("density: %d readings of memory, want %d: before the first of %d sandboxes, after each, and after all are gone", len(lines), n+2, n)
	}
	y := make([]float64, n+1) // memory used, by number of sandboxes
	var disk, starts []float64
	for i, l := range lines[:n+1] {
		if l.Count != i {
			return rd, fmt.Errorf("density: reading %d is of %d sandboxes, want %d", i+1, l.Count, i)
		}
		y[i] = float64(lines[0].Available - l.Available)
		rd.Value("available", record.Byte, float64(l.Available), "sandboxes", strconv.Itoa(i))
		if l.Disk != nil {
			disk = append(disk, float64(*l.Disk))
			rd.Value("disk", record.Byte, float64(*l.Disk), "sandboxes", strconv.Itoa(i))
		}
		if l.Start > 0 {
			starts = append(starts, l.Start)
		}
	}
	slope, spread := fit(y)
	leak := float64(lines[0].Available - lines[n+1].Available)
	warn(&rd, y, slope, spread, leak)
	d.holds(&rd, v, slope)
	rd.Samples = append(rd.Samples,
		record.Sample{Name: response, Unit: record.Byte, Kind: record.Value, Value: max(slope, page),
			Original: fmt.Sprintf("slope %.0f B, spread %.0f B", slope, spread)},
		record.NewValue("leak", record.Byte, leak))
	if v.Str("disks") == "true" {
		if len(disk) != n+1 {
			return rd, errors.New("density: the sandboxes have no files of their own, so disks: true has nothing to read; leave it out, or give the sandboxes a disk, as root_disk: overlay does for vm")
		}
		takes(&rd, disk)
	}
	if len(starts) == n {
		started(&rd, starts)
	}
	return rd, nil
}

// takes adds the disk space of a sandbox. Only the sandboxes' own files count, so what may blur the line is
// when a guest writes back.
func takes(rd *record.Reading, y []float64) {
	slope, spread := fit(y)
	if noise := noise(spread, len(y)-1); slope < max(page, 2*noise) {
		rd.Warn(record.BelowNoise+diskResponse, "disk_per_sandbox of %.0f B cannot be distinguished from what the sandboxes write over time (standard error %.0f B); use a larger count", slope, noise)
	}
	rd.Samples = append(rd.Samples, record.Sample{Name: diskResponse, Unit: record.Byte, Kind: record.Value, Value: max(slope, page),
		Original: fmt.Sprintf("slope %.0f B, spread %.0f B", slope, spread)})
}

// started adds the times of the starts, as if they had followed each other without a pause.
func started(rd *record.Reading, seconds []float64) {
	ends, end := make([]time.Duration, len(seconds)), time.Duration(0)
	for i, s := range seconds {
		end += time.Duration(s * 1e9)
		ends[i] = end
	}
	output.Repeats(rd, start, record.Second, ends, seconds)
}

// check refuses impossible readings.
func check(l workload.IdleLine) error {
	switch {
	case l.Disk != nil && (*l.Disk < 0 || *l.Disk > maxBytes):
		return fmt.Errorf("%d bytes of disk with %d sandboxes is out of range", *l.Disk, l.Count)
	case l.Start < 0 || l.Start > maxSeconds: // JSON has no NaN
		return fmt.Errorf("the time %g s is out of range", l.Start)
	}
	if l.Available <= 0 || l.Available > maxBytes || l.Count < 0 {
		return fmt.Errorf("%d bytes available with %d sandboxes is out of range", l.Available, l.Count)
	}
	return nil
}

// fit returns the Theil-Sen slope of y over its index, and the spread of the
// points around that line: 1.4826 times the median absolute deviation, which
// for normal noise is the standard deviation.
func fit(y []float64) (slope, spread float64) {
	x := make([]float64, len(y))
	for i := range x {
		x[i] = float64(i)
	}
	slope = output.Slope(x, y)
	rest := make([]float64, len(y))
	for i := range y {
		rest[i] = y[i] - slope*float64(i)
	}
	mid := output.Median(rest)
	for i := range rest {
		rest[i] = math.Abs(rest[i] - mid)
	}
	return slope, 1.4826 * output.Median(rest)
}

// noise is the standard error of a slope over 0..n with this spread: 12/(n(n+1)(n+2)) is the inverse of
// the sum of squares of the counts around their mean.
func noise(spread float64, n int) float64 {
	k := float64(n)
	return spread * math.Sqrt(12/(k*(k+1)*(k+2)))
}

// warn adds the doubts about a trial.
func warn(rd *record.Reading, y []float64, slope, spread, leak float64) {
	n := len(y) - 1
	k, noise := float64(n), noise(spread, n)
	switch {
	case slope < page:
		rd.Warn(belowNoise, "the host's available memory did not fall with idle sandboxes (slope %.0f B), because other programs freed as much meanwhile: the value is the floor of one page, not a measurement; use a larger count on a quiet host", slope)
	case slope < 2*noise:
		rd.Warn(belowNoise, "memory_per_sandbox of %.0f B cannot be distinguished from the host's own changes (standard error %.0f B); use a larger count on a quiet host", slope, noise)
	}
	up := 0
	for i := 1; i <= n; i++ {
		if y[i] < y[i-1] {
			up++
		}
	}
	if up > 0 {
		rd.Warn("memory-not-monotone", "after %d of %d starts the host had more memory available than before: something else on it changed", up, n)
	}
	// A leak is a difference of two readings. Within three spreads of a reading it may be the
	// host's own changes.
	if leak > max(leakPart*k*max(slope, page), 3*spread, leakFloor) {
		rd.Warn("memory-leak", "%.0f B of the %.0f B that %d sandboxes took were not given back when they were gone", leak, k*max(slope, page), n)
	}
}
