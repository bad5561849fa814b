// Package syscalls is the workload "syscall": the time of one system call.
//
// The data path: 1. Roles writes one command; 2. Main prepares the call
// (calls.go, pingpong.go), finds how many make a batch of half a millisecond,
// and runs batches on locked threads for the warm-up and the duration; 3. the
// report, one line of JSON, holds a histogram of the batch means; 4. Parse
// reads it.
package syscalls

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// Workload is the workload "syscall". The zero value is ready.
type Workload struct{}

var _ workload.Workload = Workload{}

// Name is "syscall".
func (Workload) Name() string { return "syscall" }

// About is one sentence.
func (Workload) About() string {
	return "one kind of system call in a tight loop: the time of each, without a library between"
}

// Params are the kind of call, the threads and the times.
func (Workload) Params() []param.Param {
	return []param.Param{
		{Name: "call", Type: param.Enum, Default: "getpid", Words: names(), Help: "kind of system call; the page of documentation says what each does"},
		{Name: "threads", Type: param.Int, Default: "1", Min: 1, Max: maxThreads, Help: "threads that call at once"},
		{Name: "warmup", Type: param.Duration, Default: "200ms", Min: 0, Max: maxSeconds, Help: "calls before measuring begins"},
		{Name: "duration", Type: param.Duration, Default: "1s", Min: 0.01, Max: maxSeconds, Help: "measured time"},
	}
}

// Responses are the time of an operation and the rate of all threads together.
func (Workload) Responses(param.Values) []record.Response {
	return []record.Response{
		{Name: "time_per_call", Unit: record.Second, Better: record.Lower, Operation: "call",
			Help: "median over batches of the mean time of an operation on one thread"},
		{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Operation: "call", Help: "operations of all threads"},
	}
}

// Roles is one command.
func (Workload) Roles(v param.Values) ([]workload.Role, error) {
	return []workload.Role{{
		Name: "main", Mode: workload.Exec,
		// Go's interruption of long loops, every 10 ms, is not needed here.
		Env: []string{"GODEBUG=asyncpreemptoff=1"},
		Args: []string{"/tare", "internal", "syscall", "--call", v.Str("call"), "--threads", strconv.Itoa(v.Int("threads")),
			"--warmup", v.Duration("warmup").String(), "--duration", v.Duration("duration").String()},
		Warmup: v.Duration("warmup"), Expect: v.Duration("duration"),
	}}, nil
}

// Parse reads the report. time_per_call comes from the histogram of the batch means, so it always
// agrees with the stored histogram.
func (Workload) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	r, err := output.JSON[report](out)
	if err != nil {
		return rd, fmt.Errorf("the report of syscall: %w", err)
	}
	if r.Format != 1 {
		return rd, fmt.Errorf("the report of syscall has the format %d, this tare reads 1", r.Format)
	}
	if role != "main" || r.Call != v.Str("call") {
		return rd, fmt.Errorf("the report of syscall (role %s) is for the call %q, but the parameter call is %q", role, r.Call, v.Str("call"))
	}
	if r.Window < 1e-9 || r.Window > 1e6 || r.Operations < 1 || r.User < 0 || r.System < 0 {
		return rd, fmt.Errorf("the report of syscall is out of range: %d operations in %g s, processor time %g and %g s", r.Operations, r.Window, r.User, r.System)
	}
	h, err := hdrhistogram.Decode([]byte(r.Histogram))
	if err != nil {
		return rd, fmt.Errorf("the histogram of syscall: %w", err)
	}
	if n := h.TotalCount(); n < 1 || n > math.MaxInt32 || h.Max() > 2*histogramMax {
		return rd, fmt.Errorf("the histogram of syscall has %d batches up to %d ps, which is out of range", n, h.Max())
	}
	at := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) * histogramUnit }
	rd.Value("time_per_call", record.Second, at(50))
	rd.Value("rate", record.PerSecond, float64(r.Operations)/r.Window)
	rd.Value("time_per_call", record.Second, float64(h.Min())*histogramUnit, "of", "min")
	rd.Value("time_per_call", record.Second, at(90), "of", "p90")
	rd.Value("time_per_call", record.Second, math.Max(0, h.Mean())*histogramUnit, "of", "mean")
	rd.Value("batches", record.Count, float64(h.TotalCount()))
	rd.Value("cpu_user", record.Cores, r.User/r.Window)
	rd.Value("cpu_system", record.Cores, r.System/r.Window)
	rd.Histograms = []record.Histogram{{Name: "batch_mean", Unit: record.Second, Scale: histogramUnit, Encoded: []byte(r.Histogram)}}
	end := (v.Duration("warmup") + v.Duration("duration")).Seconds()
	if s, ok := r.Series.Series("rate", record.PerSecond, end); ok {
		rd.Series = append(rd.Series, s)
	}
	if s, ok := r.Times.Series("time_per_call", record.Second, end); ok {
		rd.Series = append(rd.Series, s)
	}
	return rd, nil
}
