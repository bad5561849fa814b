// Package noop is the workload noop: almost no work, to show what the harness costs in each
// sandbox.
//
// The data path: 1. Roles runs `/tare internal noop` in the sandbox; 2. Main
// sleeps a few times for a short time, reading the clock around each sleep, and
// prints one JSON line; 3. Parse makes samples of it. What the harness does
// around it (start, exec, stop) is in the trial's phases.
//
// The overshoot of a sleep is a cost that every other workload has when it waits: the kernel's
// timer slack (50 us by default, PR_SET_TIMERSLACK in prctl(2)), the wake-up, and the sandbox's
// cost.
package noop

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/inside"
	"tare/workload/output"
)

// New returns the workload.
func New() workload.Workload { return noop{} }

type noop struct{}

const (
	maxSleeps = 10000
	maxSleep  = time.Second
	// maxTime is the longest valid time, in nanoseconds.
	maxTime = int64(24 * time.Hour)
)

// report is what Main prints. All times in nanoseconds.
type report struct {
	Sleep     int64   `json:"sleep_ns"`
	Overshoot []int64 `json:"overshoot_ns"` // of each sleep
	Elapsed   int64   `json:"elapsed_ns"`   // of all sleeps together
	CPU       int64   `json:"cpu_ns"`       // user and system, of the process since its start
}

func (noop) Name() string { return "noop" }

func (noop) About() string {
	return "as good as nothing: sleeps a little, and so shows the harness's own cost and a sandbox's delay of a wake-up"
}

func (noop) Params() []param.Param {
	return []param.Param{
		{Name: "sleeps", Type: param.Int, Default: "100", Min: 0, Max: maxSleeps, Help: "how often it sleeps"},
		{Name: "sleep", Type: param.Duration, Default: "1ms", Min: 0, Max: maxSleep.Seconds(), Help: "how long it sleeps each time"},
	}
}

func (noop) Responses(v param.Values) []record.Response {
	elapsed := record.Response{Name: "elapsed", Unit: record.Second, Better: record.Lower, Help: "all sleeps together, as the program sees it"}
	cpu := record.Response{Name: "cpu", Unit: record.Second, Better: record.Neither, Help: "CPU time that the program was charged since its start (getrusage); some sandboxes count it in ticks of 10 ms"}
	if v.Int("sleeps") == 0 {
		return []record.Response{elapsed, cpu}
	}
	return []record.Response{
		{Name: "sleep_overshoot", Unit: record.Second, Better: record.Lower, Help: "median of how much longer than asked a sleep lasted"},
		elapsed, cpu,
	}
}

func (noop) Roles(v param.Values) ([]workload.Role, error) {
	sleep, n := v.Duration("sleep"), v.Int("sleeps")
	if n > 0 && sleep <= 0 {
		return nil, errors.New("sleep must be longer than 0; for no sleeping at all write sleeps: 0")
	}
	return []workload.Role{{
		Name: "main", Mode: workload.Exec,
		Args:   []string{"/tare", "internal", "noop", "--sleeps=" + strconv.Itoa(n), "--sleep=" + sleep.String()},
		Expect: time.Duration(n) * sleep,
	}}, nil
}

// Main is `tare internal noop`: the program inside the sandbox. It returns the
// exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	fs := inside.Flags("noop", stderr)
	sleeps := fs.Int("sleeps", 100, "how often to sleep")
	sleep := fs.Duration("sleep", time.Millisecond, "how long each time")
	err := inside.Parse(fs, args)
	if err == nil && (*sleeps < 0 || *sleeps > maxSleeps || *sleep < 0 || *sleep > maxSleep) {
		err = fmt.Errorf("%w: --sleeps must be 0 to %d, --sleep 0s to %s", inside.ErrUsage, maxSleeps, maxSleep)
	}
	if err == nil {
		var r report
		if r, err = measure(*sleeps, *sleep); err == nil {
			err = inside.Print(stdout, r)
		}
	}
	return inside.Exit(stderr, "noop", err)
}

// measure sleeps with clock_nanosleep on its own thread. time.Sleep would measure Go's scheduler,
// which waits in epoll for whole milliseconds.
func measure(n int, sleep time.Duration) (report, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := report{Sleep: sleep.Nanoseconds(), Overshoot: make([]int64, 0, n)}
	start := time.Now()
	for range n {
		before := time.Now()
		left := unix.NsecToTimespec(sleep.Nanoseconds())
		for {
			err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &left, &left)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EINTR) { // Go's own preemption signals
				return r, fmt.Errorf("clock_nanosleep: %w", err)
			}
		}
		r.Overshoot = append(r.Overshoot, int64(time.Since(before)-sleep))
	}
	r.Elapsed = time.Since(start).Nanoseconds()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return r, fmt.Errorf("getrusage: %w", err)
	}
	r.CPU = u.Utime.Nano() + u.Stime.Nano()
	return r, nil
}

func (noop) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	r, err := output.JSON[report](out)
	if err != nil {
		return rd, fmt.Errorf("noop: %w", err)
	}
	if n := v.Int("sleeps"); len(r.Overshoot) != n {
		return rd, fmt.Errorf("noop: the report has %d sleeps, but %d were requested", len(r.Overshoot), n)
	}
	if r.Elapsed <= 0 || r.Elapsed > maxTime || r.CPU < 0 || r.CPU > maxTime {
		return rd, fmt.Errorf("noop: elapsed %d ns and CPU %d ns are out of range", r.Elapsed, r.CPU)
	}
	value := func(name string, ns int64, labels ...string) {
		rd.Value(name, record.Second, float64(ns)*1e-9, labels...)
	}
	value("elapsed", r.Elapsed)
	value("cpu", r.CPU)
	if len(r.Overshoot) == 0 {
		return rd, nil
	}
	h := hdrhistogram.New(1, maxTime, 3)
	each := record.Series{Name: "sleep_overshoot", Labels: record.MakeLabels(record.LabelResponse, "sleep_overshoot"), Unit: record.Second, Kind: record.Gauge}
	at := time.Duration(0)
	for _, ns := range r.Overshoot {
		// The kernel never ends a sleep early (clock_nanosleep(2)).
		if ns < 0 || ns > maxTime {
			return rd, fmt.Errorf("noop: a sleep that overshot by %d ns is out of range", ns)
		}
		if at += v.Duration("sleep") + time.Duration(ns); at.Nanoseconds() > 2*maxTime {
			return rd, fmt.Errorf("noop: sleeps of more than %d ns together are out of range", 2*maxTime)
		}
		each.T, each.V = append(each.T, at), append(each.V, float64(ns)*1e-9)
		if err := h.RecordValue(max(ns, 1)); err != nil {
			return rd, fmt.Errorf("noop: an overshoot of %d ns: %w", ns, err)
		}
	}
	slices.Sort(r.Overshoot)
	value("sleep_overshoot", r.Overshoot[len(r.Overshoot)/2])
	value("sleep_overshoot", r.Overshoot[len(r.Overshoot)-1], "stat", "max")
	rd.Series = []record.Series{each}
	return rd, output.Histogram(&rd, "sleep_overshoot", h)
}
