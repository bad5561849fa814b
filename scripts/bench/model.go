package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"tare/model"
	"tare/record"
)

// matrix measures the model on every cell of the published network experiment
// (docs/kata-network.md): as many at once as there are processors.
func (b *bench) matrix(ctx context.Context) ([]row, error) {
	cells, err := b.e1Cells(ctx)
	if err != nil {
		return nil, err
	}
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := played(ctx, cells, func(int, *model.Result) error { return nil }); err != nil {
		return nil, err
	}
	took := time.Since(begun).Seconds()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		return nil, err
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)*1e-6 }
	cpu := seconds(after.Utime) + seconds(after.Stime) - seconds(before.Utime) - seconds(before.Stime)
	what := fmt.Sprintf("the model on the published network experiment, %d cells of %.3g s", len(cells), model.Default().Load.Duration)
	return []row{
		row{Figure: what + fmt.Sprintf(", on %d processors", runtime.GOMAXPROCS(0)), Unit: "s", Tare: took, Rounds: 1}.below(60),
		{Figure: "the same: CPU time", Unit: "s", Tare: cpu, Rounds: 1},
	}, nil
}

// played runs the model on cells, as many at once as there are processors, and
// hands each result to take, one at a time; at is its cell's place.
func played(ctx context.Context, cells []record.Cell, take func(at int, r *model.Result) error) error {
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		failed error
		next   int
	)
	// one gives the next place, until there is none or something failed.
	one := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		at := next
		next++
		return at, at < len(cells) && failed == nil
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for at, more := one(); more; at, more = one() {
				c, err := configOf(cells[at], at)
				var r *model.Result
				if err == nil {
					err = ctx.Err()
				}
				if err == nil {
					r, err = model.Run(c)
				}
				mu.Lock()
				if err == nil && failed == nil {
					err = take(at, r)
				}
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return failed
}

// configOf is what a cell of e1Study is in the model.
func configOf(cell record.Cell, seed int) (c model.Config, err error) {
	c = model.Default()
	c.Seed = uint64(seed) + 1 //nolint:gosec // a place in a list
	level := func(name string) string { v, _ := cell.Get(name); return v }
	if level("workload") == "bandwidth" {
		c.Load.Mode = model.Stream
	}
	if c.Load.Connections, err = strconv.Atoi(level("connections")); err != nil {
		return c, err
	}
	sizes := map[string]int{"16B": 16, "256B": 256, "4KiB": 4096, "64KiB": 65536}
	c.Load.Size = sizes[level("size")]
	limit := 0.0
	if v := level("cpu-limit"); v != "none" {
		if limit, err = strconv.ParseFloat(v, 64); err != nil {
			return c, err
		}
	}
	if level("sandbox") == "process" {
		return c.Native(limit), nil
	}
	boot := -1 // all of the host's
	if v := level("default_vcpus"); v != "all" {
		if boot, err = strconv.Atoi(v); err != nil {
			return c, err
		}
	}
	return c.Sized(boot, limit)
}
