// Package density is the workload density: how much of the host's memory one
// idle sandbox takes.
//
// The data path: 1. Roles asks run for N sandboxes with a program that only
// waits, for nothing or for requests (programs.go); 2. run starts one after
// another, each when the one before does its work, and writes a
// workload.IdleLine with the host's available memory after each, and one more
// when all are gone; 3. Parse fits a line through the rising part: its slope is the memory of one
// sandbox; what is not given back is the leak.
//
// The host's available memory, and not a sum over processes: only it has page
// tables, kernel stacks, cgroups and network devices in it, and counts shared
// pages once. It is a sum of pages (host/freemem) and not MemAvailable, which
// leaves out what a CPU has just freed: behind a trial that gave back hundreds of
// MB it did not fall with the next sandboxes. It is also where everything else on the host shows, so the fit is
// the Theil-Sen estimator, the median of the slopes of all pairs of points,
// which up to 29 % of bad points leave unmoved (P. K. Sen, "Estimates of the
// regression coefficient based on Kendall's tau", JASA 63, 1968). The
// difference of the ends rests on two points alone, least squares on the worst.
package density

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// New returns the workload.
func New() workload.Workload { return density{hostMemory} }

type density struct {
	memory func() int64 // the host's, in bytes, as long as it runs the same; 0: not known
}

const (
	// page is the least that a sandbox can take, and the floor of the result.
	page = 4096
	// leakPart of a sandbox's memory, left behind by each, is worth a warning, if it is
	// more than leakFloor in all: run takes the readings before and after as at rest
	// when they keep within half of that, and the kernel gives cgroups back late.
	leakPart  = 0.1
	leakFloor = 1 << 20
	// maxBytes bounds what is believed of a host's memory.
	maxBytes = int64(1) << 56
	// response is what is compared, belowNoise the warning that it cannot be.
	response   = "memory_per_sandbox"
	belowNoise = record.BelowNoise + response
)

func (density) Name() string { return "density" }

func (density) About() string {
	return "starts N sandboxes that wait and reads the host's memory after each: what one of them takes, and what leaks"
}

func (density) Params() []param.Param {
	return []param.Param{
		{Name: "program", Type: param.Enum, Default: "pause", Words: []string{"pause", "sleep", "node", "ruby", "redis"}, Help: "what waits in each: pause: the smallest program; sleep: the host's; node, ruby: a web service that has answered; redis: redis-server that holds data"},
		{Name: "data", Type: param.Size, Default: "auto", Words: []string{"auto"}, Min: 1 << 20, Max: 1 << 44, Help: "what each redis-server holds; auto: 1 GB, or less so that all of them fit into half of the host's memory"},
		{Name: "count", Type: param.Int, Default: "5", Min: 3, Max: 500, Help: "sandboxes at the same time; more average more of the host's own changes out"},
	}
}

func (density) Responses(param.Values) []record.Response {
	return []record.Response{
		{Name: response, Unit: record.Byte, Better: record.Lower, Help: "the host's memory, free or cache, that each further sandbox takes (Theil-Sen slope)"},
		{Name: "leak", Unit: record.Byte, Better: record.Neither, Help: "available memory before the first sandbox less that after the last is gone; negative when the host freed some meanwhile"},
	}
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
	y := make([]float64, n+1) // memory taken, by number of sandboxes
	for i, l := range lines[:n+1] {
		if l.Count != i {
			return rd, fmt.Errorf("density: reading %d is of %d sandboxes, want %d", i+1, l.Count, i)
		}
		y[i] = float64(lines[0].Available - l.Available)
		rd.Samples = append(rd.Samples, record.Sample{Name: "available", Labels: record.MakeLabels("sandboxes", strconv.Itoa(i)),
			Unit: record.Byte, Kind: record.Value, Value: float64(l.Available)})
	}
	slope, spread := fit(y)
	leak := float64(lines[0].Available - lines[n+1].Available)
	rd.Warnings = warnings(y, slope, spread, leak)
	d.holds(&rd, v, slope)
	rd.Samples = append(rd.Samples,
		record.Sample{Name: response, Unit: record.Byte, Kind: record.Value, Value: max(slope, page),
			Original: fmt.Sprintf("slope %.0f B, spread %.0f B", slope, spread)},
		record.Sample{Name: "leak", Unit: record.Byte, Kind: record.Value, Value: leak})
	return rd, nil
}

// check refuses readings that cannot be.
func check(l workload.IdleLine) error {
	if l.Available <= 0 || l.Available > maxBytes || l.Count < 0 {
		return fmt.Errorf("%d bytes available with %d sandboxes is out of range", l.Available, l.Count)
	}
	return nil
}

// fit returns the Theil-Sen slope of y over its index, and the spread of the
// points around that line: 1.4826 times the median absolute deviation, which
// for normal noise is the standard deviation.
func fit(y []float64) (slope, spread float64) {
	slopes := make([]float64, 0, len(y)*(len(y)-1)/2)
	for i := range y {
		for j := i + 1; j < len(y); j++ {
			slopes = append(slopes, (y[j]-y[i])/float64(j-i))
		}
	}
	slope = output.Median(slopes)
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

// warnings says what to doubt.
func warnings(y []float64, slope, spread, leak float64) []record.Warning {
	n := len(y) - 1
	var out []record.Warning
	add := func(code, format string, args ...any) {
		out = append(out, record.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	// The standard error of a slope over 0..n with this spread: 12/(n(n+1)(n+2))
	// is one over the sum of squares of the counts around their mean.
	k := float64(n)
	noise := spread * math.Sqrt(12/(k*(k+1)*(k+2)))
	switch {
	case slope < page:
		add(belowNoise, "the host's available memory did not fall with idle sandboxes (slope %.0f B), since others on it gave back as much meanwhile: the value is the floor of one page, not a measurement; use a larger count on a quiet host", slope)
	case slope < 2*noise:
		add(belowNoise, "memory_per_sandbox of %.0f B is not clear of the host's own changes (standard error %.0f B); use a larger count on a quiet host", slope, noise)
	}
	up := 0
	for i := 1; i <= n; i++ {
		if y[i] < y[i-1] {
			up++
		}
	}
	if up > 0 {
		add("memory-not-monotone", "after %d of %d starts the host had more memory available than before: something else on it changed", up, n)
	}
	// A leak is a difference of two readings: within three spreads of a reading it
	// is the host's own changes.
	if leak > max(leakPart*k*max(slope, page), 3*spread, leakFloor) {
		add("memory-leak", "%.0f B of the %.0f B that %d sandboxes took were not given back when they were gone", leak, k*max(slope, page), n)
	}
	return out
}
