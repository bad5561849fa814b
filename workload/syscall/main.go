package syscalls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tare/workload/inside"
	"tare/workload/output"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

const (
	// batchTime is the time of a batch: long compared with the clock's 50 ns, short compared
	// with a scheduler's slice, so that most batches are undisturbed.
	batchTime   = 500 * time.Microsecond
	step        = 20 * time.Millisecond // of the series, at least
	mostSteps   = 500                   // of the measured time
	maxThreads  = 64
	maxSeconds  = 3600
	maxPerBatch = 1 << 20
)

// report is the output: one line of JSON.
type report struct {
	Format     int     `json:"tare_syscall"` // 1
	Call       string  `json:"call"`
	Threads    int     `json:"threads"`
	Each       int     `json:"calls_per_operation"`
	Window     float64 `json:"window_s"`
	Operations int64   `json:"operations"`
	Batches    int64   `json:"batches"`
	Batch      int     `json:"operations_per_batch"` // of the first thread
	Min        float64 `json:"min_s"`                // of the batch means
	Median     float64 `json:"median_s"`
	User       float64 `json:"cpu_user_s"`
	System     float64 `json:"cpu_system_s"`
	Histogram  string  `json:"batch_mean_histogram"` // HdrHistogram V2, picoseconds an operation
	// In intervals of 20 ms, or longer for more than 10 s.
	Series output.Points `json:"series"`
	Times  output.Points `json:"time_series"` // median of the batch means, s an operation
}

type thread struct {
	op      func(int) unix.Errno
	closing func()
	batch   int

	_    [64]byte
	ops  atomic.Int64
	_    [64]byte
	hist *hdrhistogram.Histogram // of the batch means, in picoseconds
	done int64                   // operations in the window
	last time.Duration           // when the last of them ended
	errn unix.Errno

	now   []float64       // batch means of the interval under way, s an operation
	times map[int]float64 // median of each interval that had a batch, by its number
}

// Main is `tare internal syscall`. It returns the exit code: 0, 1 for a failed
// run, 2 for wrong arguments.
func Main(args []string, stdout, stderr io.Writer) int {
	return inside.Main("syscall", args, stdout, stderr, run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := inside.Flags("tare internal syscall", stderr)
	name := fs.String("call", "getpid", "kind of system call")
	threads := fs.Int("threads", 1, "threads that call at once")
	warmup := fs.Duration("warmup", 200*time.Millisecond, "calls before measuring")
	duration := fs.Duration("duration", time.Second, "time to measure")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	r, err := measure(ctx, *name, *threads, *warmup, *duration)
	if err != nil {
		return err
	}
	return inside.Print(stdout, r)
}

// measure runs the call on every thread for warm-up and duration.
func measure(ctx context.Context, name string, n int, warmup, duration time.Duration) (*report, error) {
	c, err := find(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", inside.ErrUsage, err)
	case n < 1 || n > maxThreads:
		return nil, fmt.Errorf("%w: threads %d is out of range; use 1 to %d", inside.ErrUsage, n, maxThreads)
	case duration <= 0 || duration.Seconds() > maxSeconds || warmup < 0 || warmup.Seconds() > maxSeconds:
		return nil, fmt.Errorf("%w: duration %v, warmup %v: use up to an hour each, and some duration", inside.ErrUsage, duration, warmup)
	}
	// RawSyscall does not inform the Go scheduler, so every thread (and its partner in a ping-pong)
	// needs its own P, and the garbage collector, which would wait for them, is off.
	if want := 2*n + 2; runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	var ts []*thread
	defer func() {
		for _, t := range ts {
			t.closing()
		}
	}()
	for range n {
		op, closing, err := c.open()
		if err != nil {
			return nil, err
		}
		t := &thread{op: op, closing: closing, hist: hdrhistogram.New(1, histogramMax, 3)}
		ts = append(ts, t)
		if t.batch, err = calibrate(op); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return collect(ctx, c, ts, warmup, duration)
}

// histogramMax is 60 s in picoseconds, histogramUnit one picosecond in seconds:
// in nanoseconds a call of 60 ns would have two digits.
const (
	histogramMax  = int64(60e12)
	histogramUnit = 1e-12
)

// calibrate finds how many operations make a batch. The fastest of three tries counts, because
// an interruption would make a batch of a few calls look long.
func calibrate(op func(int) unix.Errno) (int, error) {
	for n := 1; ; n *= 2 {
		fastest := time.Duration(math.MaxInt64)
		for range 3 {
			start := time.Now()
			if e := op(n); e != 0 {
				return 0, e
			}
			fastest = min(fastest, time.Since(start))
		}
		if fastest >= batchTime/2 || n >= maxPerBatch { // doubling again would not come nearer
			return n, nil
		}
	}
}

// collect lets the threads run, records the rate every interval, and makes the report.
func collect(ctx context.Context, c call, ts []*thread, warmup, duration time.Duration) (*report, error) {
	r := &report{Format: 1, Call: c.name, Threads: len(ts), Each: c.each, Batch: ts[0].batch}
	var stop atomic.Bool
	var wg sync.WaitGroup
	base := time.Now()
	begin, end := warmup, warmup+duration
	interval := max(step, duration/mostSteps)
	for _, t := range ts {
		t.times, t.now = make(map[int]float64, 2*mostSteps), make([]float64, 0, 4*step/batchTime)
		wg.Go(func() {
			runtime.LockOSThread()
			t.loop(base, begin, end, interval, &stop)
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()

	user, system, marked := time.Duration(0), time.Duration(0), false
	last, lastAt := int64(0), time.Duration(0)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-ctx.Done():
			stop.Store(true)
			<-ended
			return nil, errors.New("interrupted")
		case <-ended:
			running = false
		case <-tick.C:
			var sum int64
			for _, t := range ts {
				sum += t.ops.Load()
			}
			at := time.Since(base)
			r.Series.T = append(r.Series.T, at.Seconds())
			r.Series.V = append(r.Series.V, float64(sum-last)/(at-lastAt).Seconds())
			last, lastAt = sum, at
			if !marked && at >= begin {
				marked = true
				user, system = inside.CPU()
			}
		}
	}
	u, s := inside.CPU()
	r.User, r.System = (u - user).Seconds(), (s - system).Seconds()
	all := hdrhistogram.New(1, histogramMax, 3)
	for _, t := range ts {
		if t.errn != 0 {
			return nil, fmt.Errorf("%s: %w", c.name, t.errn)
		}
		all.Merge(t.hist)
		r.Operations += t.done
		r.Window = max(r.Window, (t.last - begin).Seconds())
	}
	r.Times = times(ts, interval)
	if r.Batches = all.TotalCount(); r.Batches == 0 {
		return nil, errors.New("no batch ended in the measured time; increase duration")
	}
	r.Min, r.Median = float64(all.Min())*histogramUnit, float64(all.ValueAtPercentile(50))*histogramUnit
	var err error
	r.Histogram, err = output.Encode(all)
	return r, err
}

// loop runs batches. A batch counts if it began after the warm-up; the clock is read once a
// batch. If the thread did not run in the window, on a very busy machine, loop continues until
// one batch has ended.
func (t *thread) loop(base time.Time, begin, end, interval time.Duration, stop *atomic.Bool) {
	var ops int64
	slot := 0
	for at := time.Since(base); (at < end || t.done == 0) && !stop.Load(); {
		if t.errn = t.op(t.batch); t.errn != 0 {
			return
		}
		now := time.Since(base)
		ops += int64(t.batch)
		t.ops.Store(ops)
		// This takes a microsecond each interval, in the time of the next batch.
		if k := int(now / interval); k != slot {
			t.close(slot)
			slot = k
		}
		t.now = append(t.now, (now-at).Seconds()/float64(t.batch))
		if at >= begin {
			ps := math.Round(float64(now-at) * 1000 / float64(t.batch))
			_ = t.hist.RecordValue(max(1, min(int64(ps), histogramMax)))
			t.done += int64(t.batch)
			t.last = now
		}
		at = now
	}
}

// close ends an interval.
func (t *thread) close(slot int) {
	if len(t.now) > 0 {
		slices.Sort(t.now)
		t.times[slot] = t.now[len(t.now)/2]
		t.now = t.now[:0]
	}
}

// times returns the mean over the threads of each interval's median.
func times(ts []*thread, interval time.Duration) output.Points {
	sums, counts := map[int]float64{}, map[int]float64{}
	for _, t := range ts {
		for k, x := range t.times {
			sums[k] += x
			counts[k]++
		}
	}
	var out output.Points
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		out.T = append(out.T, (time.Duration(k+1) * interval).Seconds())
		out.V = append(out.V, sums[k]/counts[k])
	}
	return out
}

// names lists the kinds of call in order.
func names() []string {
	var out []string
	for _, c := range calls() {
		out = append(out, c.name)
	}
	return slices.Clip(out)
}
