// Command fuzz lets every fuzz target of the module look for new inputs:
//
//	go run ./scripts/fuzz [-time 5s] [-only REGEXP] [PACKAGE...]
//
// It builds the test binary of each package once and runs each target in it, as many
// packages at a time as there are processors. It prints a line when a target ends, continues
// after a failure, and prints the total at the end. It exits with 1 if a target failed, did
// too few executions, or could not be built.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	each := flag.Duration("time", 5*time.Second, "how long each target runs")
	only := flag.String("only", "", "run the targets whose \"PACKAGE NAME\" this `regexp` matches")
	cache := flag.String("cache", ".cache/fuzz", "the `folder` that keeps the new inputs for the next run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f, err := newFuzzer(*each, *only, *cache)
	if err == nil {
		var good bool
		if good, err = f.all(ctx, os.Stdout, flag.Args()); err == nil && good {
			return
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
	}
	stop()
	os.Exit(1)
}

// fuzzer runs targets, those of one package one after another.
type fuzzer struct {
	dir   string // of the module, "" is the working directory
	each  time.Duration
	only  *regexp.Regexp
	cache string // absolute

	workers int // of each target: its processes that search
}

func newFuzzer(each time.Duration, only, cache string) (*fuzzer, error) {
	re, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("cannot read -only: %w", err)
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return nil, fmt.Errorf("cannot find the folder of -cache: %w", err)
	}
	return &fuzzer{each: each, only: re, cache: cache}, nil
}

// all runs the targets of the packages, by default of all packages. It reports whether
// every target succeeded.
func (f *fuzzer) all(ctx context.Context, w io.Writer, patterns []string) (bool, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	packages, err := f.list(ctx, patterns)
	if err != nil {
		return false, err
	}
	bin, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	start := time.Now()
	// Linking and the start of a target use one processor each. The search uses the others
	// only where there are fewer packages than processors.
	jobs := min(runtime.NumCPU(), max(1, len(packages)))
	f.workers = max(1, runtime.NumCPU()/jobs)
	if jobs > 1 {
		f.compile(ctx, packages)
	}
	queue := make(chan pack)
	sum := &total{w: w}
	var running sync.WaitGroup
	for i := range jobs {
		running.Go(func() {
			program := filepath.Join(bin, fmt.Sprint("test", i))
			for p := range queue {
				f.run(ctx, p, program, sum)
			}
		})
	}
	for _, p := range packages {
		queue <- p
	}
	close(queue)
	running.Wait()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	fmt.Fprintf(w, "%s in %v\n", sum, time.Since(start).Round(time.Second))
	return len(sum.failed) == 0 && sum.targets > 0, nil
}

// run builds a package as that program and runs its targets, until the context ends.
func (f *fuzzer) run(ctx context.Context, p pack, program string, sum *total) {
	if ctx.Err() != nil {
		return
	}
	if said, err := f.build(ctx, p, program); err != nil {
		if ctx.Err() == nil {
			sum.broken(p, err, said)
		}
		return
	}
	for _, target := range p.targets {
		res := f.target(ctx, p, target, program)
		if ctx.Err() != nil {
			return
		}
		sum.add(res)
	}
}

// total prints the results of the targets, and adds them up.
type total struct {
	w io.Writer

	mu                  sync.Mutex
	targets, executions int
	failed, slow        []string
}

func (s *total) add(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.w, r)
	s.targets++
	s.executions += r.executions
	switch {
	case r.failed != "":
		s.failed = append(s.failed, r.name)
	case r.rate() < slow:
		s.slow = append(s.slow, r.name)
	}
}

// broken is a package that cannot be built.
func (s *total) broken(p pack, err error, said []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.w, "FAIL  %s: it cannot be built: %v\n%s", p.path, err, said)
	s.failed = append(s.failed, p.path)
}

func (s *total) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(s.failed)) {
		fmt.Fprintf(&b, "failed: %s\n", name)
	}
	fmt.Fprintf(&b, "%d targets, %d executions, %d failed, %d below %d executions a second of CPU time,", s.targets, s.executions, len(s.failed), len(s.slow), slow)
	return b.String()
}
