package files

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"tare/workload/inside"
	"tare/workload/output"
)

// config is what the program in the sandbox does.
type config struct {
	Load       string        `json:"load"`
	Operations string        `json:"operations"`
	Dir        string        `json:"dir"` // everything is below it
	Files      int           `json:"files"`
	Depth      int           `json:"depth"`
	Width      int           `json:"width"`
	Size       int64         `json:"file_bytes"`
	Threads    int           `json:"threads"`
	Cold       bool          `json:"cold"`
	Warmup     time.Duration `json:"warmup_ns"`
	Duration   time.Duration `json:"duration_ns"`
}

// load is one of the loads.
type load interface {
	layout() error             // what is there before the first round
	round(rec *recorder) error // one pass over the files, or one run of the program
	check() error              // is there what was made?
}

func (c config) load() (load, error) {
	if c.Load == metadataLoad {
		return newMetadata(c)
	}
	return newProgram(c)
}

// report is the output, one line of JSON.
type report struct {
	Format int     `json:"tare_files"` // 1
	Load   string  `json:"load"`
	Rounds int     `json:"rounds"` // in the measured time
	Phases []phase `json:"phases"`
}

// phase is everything that was measured about one operation.
type phase struct {
	Name       string        `json:"name"`
	Operations int64         `json:"operations"`
	Time       float64       `json:"time_s"`    // of all its rounds together
	Histogram  string        `json:"histogram"` // of the operations' times: HdrHistogram V2, nanoseconds
	Series     output.Points `json:"series"`    // a rate, or the times of runs
}

const (
	histogramMax = int64(time.Hour)
	step         = 50 * time.Millisecond // of the series of rates, at least
	mostSteps    = 500
)

// recorder collects what the rounds report. During the warm-up it keeps only the series.
type recorder struct {
	base     time.Time
	measured bool
	step     time.Duration
	order    []string
	phases   map[string]*recorded
	warmup   histograms // what nobody looks at
}

type recorded struct {
	phase
	times histograms
	// since the last point of the series
	ops  int64
	busy time.Duration
	last time.Duration
}

// histograms has one histogram for each thread.
type histograms []*hdrhistogram.Histogram

func (r *recorder) of(name string) *recorded {
	p := r.phases[name]
	if p == nil {
		p = &recorded{phase: phase{Name: name}}
		r.phases[name], r.order = p, append(r.order, name)
	}
	return p
}

// histogram has the times of one thread's operations, in nanoseconds.
func (r *recorder) histogram(name string, thread int) *hdrhistogram.Histogram {
	all := &r.warmup
	if r.measured {
		all = &r.of(name).times
	}
	for len(*all) <= thread {
		*all = append(*all, hdrhistogram.New(1, histogramMax, 3))
	}
	return (*all)[thread]
}

// add takes the number of operations and the time that they took together.
func (r *recorder) add(name string, ops int64, took time.Duration) {
	p := r.of(name)
	if r.measured {
		p.Operations += ops
		p.Time += took.Seconds()
	}
	p.ops += ops
	p.busy += took
	if at := time.Since(r.base); p.busy > 0 && at-p.last >= r.step {
		p.Series.T = append(p.Series.T, at.Seconds())
		p.Series.V = append(p.Series.V, float64(p.ops)/p.busy.Seconds())
		p.ops, p.busy, p.last = 0, 0, at
	}
}

// run takes the time of a whole program.
func (r *recorder) run(name string, took time.Duration) {
	p := r.of(name)
	p.Series.T = append(p.Series.T, time.Since(r.base).Seconds())
	p.Series.V = append(p.Series.V, took.Seconds())
	_ = r.histogram(name, 0).RecordValue(min(int64(took), histogramMax))
	if r.measured {
		p.Operations++
		p.Time += took.Seconds()
	}
}

// finished returns the phases in order, with their histograms.
func (r *recorder) finished() ([]phase, error) {
	var out []phase
	for _, name := range r.order {
		p := r.phases[name]
		all := p.times[0]
		for _, h := range p.times[1:] {
			all.Merge(h)
		}
		var err error
		if p.Histogram, err = output.Encode(all); err != nil {
			return nil, err
		}
		out = append(out, p.phase)
	}
	return out, nil
}

// Main is `tare internal files [--layout] CONFIG`. It returns the exit code: 0, 1 for a failed
// run, 2 for wrong arguments.
func Main(args []string, stdout, stderr io.Writer) int {
	fs := inside.Flags("tare internal files", stderr)
	text := fs.String("config", "", "what to do, in JSON")
	layout := fs.Bool("layout", false, "only make what the load finds")
	err := inside.Parse(fs, args)
	if err != nil {
		return inside.Exit(stderr, "files", err)
	}
	var c config
	if err := json.Unmarshal([]byte(*text), &c); err != nil {
		return inside.Exit(stderr, "files", fmt.Errorf("%w: the configuration: %w", inside.ErrUsage, err))
	}
	l, err := c.load()
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", inside.ErrUsage, err)
	case *layout:
		err = lay(c, l)
	default:
		var r *report
		if r, err = measure(c, l); err != nil {
			break
		}
		if err = inside.Print(stdout, r); err == nil { // which ends the measured window
			err = l.check()
		}
	}
	return inside.Exit(stderr, "files", err)
}

// lay makes what the load finds.
func lay(c config, l load) error {
	if err := l.layout(); err != nil {
		return err
	}
	unix.Sync() // a later write-back would disturb the load
	if c.Cold {
		// The host drops its own caches. A guest's kernel has caches too, which this write drops.
		// If it is forbidden, the kernel is the host's, or there is nothing to drop.
		_ = os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
	}
	return nil
}

// measure makes rounds for the warm-up and the duration, at least one of them measured. A cold
// load has one round.
func measure(c config, l load) (*report, error) {
	rec := &recorder{base: time.Now(), step: max(step, (c.Warmup+c.Duration)/mostSteps), phases: map[string]*recorded{}}
	out := &report{Format: 1, Load: c.Load}
	for {
		at := time.Since(rec.base)
		if out.Rounds > 0 && (c.Cold || at >= c.Warmup+c.Duration) {
			break
		}
		rec.measured = c.Cold || at >= c.Warmup
		if err := l.round(rec); err != nil {
			return nil, err
		}
		if rec.measured {
			out.Rounds++
		}
	}
	var err error
	out.Phases, err = rec.finished()
	return out, err
}
