package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tare/workload/inside"
	"tare/workload/objects/pace"
	"tare/workload/output"
	"tare/workload/registry/app"
)

// pipeline is a load of arrivals on a schedule. Each builds an image, pushes it, pulls and unpacks it, and starts its program.
type pipeline struct {
	load
	dir    string // of the application's files, and of unpacked images
	source *app.Source
	due    []time.Duration // of each arrival, since the beginning
	first  int             // arrival in the measured time
}

// steps are the steps of an arrival, in their order. A step's time is that since the step before. The first one is the wait for
// a free client.
func steps() []string { return []string{"waited", "built", "pushed", "pulled", "started"} }

// arrivals returns when arrivals are due within a time, from its beginning.
func arrivals(p pace.Pace, within time.Duration) (due []time.Duration) {
	n := int(2*p.Rate(1)*within.Seconds()) + p.Burst + 100 // more than enough
	at := p.Due(n, 1)
	for i := range n {
		if at(i) < within {
			due = append(due, at(i))
		}
	}
	return due
}

// parseRate reads a schedule that has as many arrivals a second, however many there are.
func parseRate(text string) (pace.Pace, error) {
	p, err := pace.Parse(text)
	if err != nil {
		return p, err
	}
	switch p.How {
	case pace.Even, pace.Random, pace.Poisson, pace.Bursts:
		return p, nil
	}
	return p, fmt.Errorf("%q has no rate of arrivals; write a number a second, such as 2, poisson 2, or burst 4 every 2s", text)
}

// newPipeline writes the application's files.
func newPipeline(l *load, dir, rate string) (*pipeline, error) {
	schedule, err := parseRate(rate)
	if err != nil {
		return nil, fmt.Errorf("%w: --rate: %w", inside.ErrUsage, err)
	}
	p := &pipeline{load: *l, dir: dir, due: arrivals(schedule, l.warmup+l.duration)}
	for p.first < len(p.due) && p.due[p.first] < l.warmup {
		p.first++
	}
	if p.first == len(p.due) {
		return nil, errors.New("no image is due in the measured time; make duration longer, or rate larger")
	}
	p.source, err = app.New(filepath.Join(dir, "source"), l.content.layers, l.content.size)
	return p, err
}

// drain is how long the load goes on after the measured time until it leaves images unfinished.
func drain(duration time.Duration) time.Duration { return max(duration, 10*time.Second) }

// arrived has the times of one arrival.
type arrived struct {
	parts []time.Duration // of the steps that it has finished
	ended time.Time       // zero: unfinished
}

// run is the load. It returns what was measured.
func (p *pipeline) run(ctx context.Context) (*report, error) {
	begun := time.Now()
	from, to := begun.Add(p.warmup), begun.Add(p.warmup+p.duration)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limited, stop := context.WithDeadline(ctx, to.Add(drain(p.duration)))
	defer stop()
	var user, system time.Duration
	watch := time.AfterFunc(p.warmup, func() { user, system = inside.CPU() })
	defer watch.Stop()
	all := make([]arrived, len(p.due))
	var next atomic.Int64
	var clients sync.WaitGroup
	for range p.clients {
		clients.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) || !inside.SleepUntil(limited, begun.Add(p.due[i])) || limited.Err() != nil {
					return
				}
				err := p.roll(limited, uint64(i), begun.Add(p.due[i]), &all[i]) //nolint:gosec // not negative
				if err != nil && limited.Err() == nil {
					cancel(fmt.Errorf("image %d: %w", i, err))
				}
			}
		})
	}
	clients.Wait()
	inside.SleepUntil(ctx, to)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	end := time.Now()
	userEnd, systemEnd := inside.CPU()
	r := &report{Format: format, Operation: operationPipeline, Clients: p.clients, Window: p.duration.Seconds(), Load: end.Sub(from).Seconds(),
		User: (userEnd - user).Seconds(), System: (systemEnd - system).Seconds()}
	for i := range all {
		if t := all[i].ended; !t.Before(from) && t.Before(to) {
			r.Images++
		}
	}
	r.Bytes = r.Images * float64(p.content.bytes())
	return r, p.sum(r, all[p.first:], begun, end)
}

// sum sums up the arrivals of the measured time. Those that are unfinished count with the time until the end.
func (p *pipeline) sum(r *report, all []arrived, begun, end time.Time) (err error) {
	total := newHistogram()
	parts := make([]*hdrhistogram.Histogram, len(steps()))
	means := make([]float64, len(parts))
	for i := range parts {
		parts[i] = newHistogram()
	}
	for i := range all {
		a := &all[i]
		due := begun.Add(p.due[p.first+i])
		if a.ended.IsZero() {
			r.Unfinished++
			note(total, end.Sub(due))
			if len(a.parts) < len(steps()) { // the step in which it is
				sum := time.Duration(0)
				for _, d := range a.parts {
					sum += d
				}
				a.parts = append(a.parts, end.Sub(due)-sum)
			}
		} else {
			note(total, a.ended.Sub(due))
		}
		for j, d := range a.parts {
			note(parts[j], d)
			means[j] += d.Seconds() / float64(len(all))
		}
	}
	r.Arrivals = len(all)
	for i, name := range steps() {
		s := part{Name: name, Mean: means[i]}
		if parts[i].TotalCount() > 0 {
			if s.Times, err = output.Encode(parts[i]); err != nil {
				return err
			}
		}
		r.Steps = append(r.Steps, s)
	}
	r.Histogram, err = output.Encode(total)
	return err
}

// roll makes one arrival: it builds the image of a number, pushes it, pulls and unpacks it, and starts its program.
func (p *pipeline) roll(ctx context.Context, n uint64, due time.Time, out *arrived) error {
	last := due
	done := func() {
		now := time.Now()
		out.parts, last = append(out.parts, now.Sub(last)), now
	}
	done() // waited
	img, err := p.source.Build(n)
	if err != nil {
		return err
	}
	done()
	ref, err := p.reference(pushed + n)
	if err != nil {
		return err
	}
	if err := remote.Write(ref, img, p.options(ctx)...); err != nil {
		return fmt.Errorf("cannot push it: %w", err)
	}
	done()
	dir := filepath.Join(p.dir, "image-"+strconv.FormatUint(n, 10))
	defer os.RemoveAll(dir) //nolint:errcheck // the volume goes with the trial
	if err := p.deploy(ctx, ref, dir, n); err != nil {
		return fmt.Errorf("it was pushed, and cannot be pulled: %w", err)
	}
	done()
	stop, err := app.Start(ctx, dir)
	if err != nil {
		return err
	}
	done()
	out.ended = last
	stop()
	return nil
}

// deploy pulls an image, and unpacks it.
func (p *pipeline) deploy(ctx context.Context, ref name.Reference, dir string, n uint64) error {
	img, err := remote.Image(ref, p.options(ctx)...)
	if err != nil {
		return err
	}
	return app.Unpack(img, dir, n)
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(longest), 3) }

func note(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 1), int64(longest))) // it fits
}

// parsePipeline reads the flags of a pipeline, and writes the application's files.
func parsePipeline(args []string, stderr io.Writer) (*pipeline, error) {
	fs := inside.Flags("tare internal registry "+operationPipeline, stderr)
	dir := fs.String("dir", "", "`folder` of the application, and of unpacked images")
	rate := fs.String("rate", "2", "images a second")
	l, err := parseLoad(operationPipeline, fs, args)
	if err != nil {
		return nil, err
	}
	if *dir == "" {
		return nil, fmt.Errorf("%w: --dir is missing", inside.ErrUsage)
	}
	return newPipeline(l, *dir, *rate)
}
