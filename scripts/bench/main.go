// Command bench prints the figures of docs/performance.md, each with its target or with the
// same figure of a well-known tool, both measured in this run.
//
// The data path: 1. each figure takes the host's lock, so that no study runs meanwhile; 2. it
// measures tare and the tool in turn, in rounds, so that a machine that drifts changes both;
// 3. each round gives one pair, and compare makes a ratio or a difference of the pairs with an
// interval; 4. the rows are printed as a table in Markdown, or as JSON. A slow figure is not a
// failure: these are measurements, not tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tare/host/state"
	"tare/site/claim"
)

func main() { os.Exit(run(os.Stdout, os.Stderr, os.Args[1:])) }

// bench is one run of this program.
type bench struct {
	tare string // path of the binary under test

	root    string // path of the source
	work    string // directory of this run, on the disk to be measured
	study   string
	results string // of the study, once it has run
	rounds  int    // 0: as many as each figure wants
	stderr  io.Writer
}

// figure is one group of rows that belong together.
type figure struct {
	name, about string
	measure     func(*bench, context.Context) ([]row, error)
	studies     bool // it runs studies, which take the host's lock themselves
}

func figures() []figure {
	return []figure{
		{"plan", "planning 100,000 cells", (*bench).plan, false},
		{"first", "rows that the first study decides", (*bench).firstStudy, true},
		{"memory", "peak memory of tare in a study", (*bench).memory, true},
		{"suite", "peak memory of tare in the gVisor guide's suite", (*bench).suite, true},
		{"harness", "CPU of tare during a trial that does nothing", (*bench).harness, true},
		{"append", "storing one trial", (*bench).append, true},
		{"startup", "a container's lifecycle, beside hyperfine", (*bench).startup, false},
		{"weigh", "the start-up that tare weigh tells, beside hyperfine", (*bench).weigh, true},
		{"decide", "time to decide a slowdown of 10 %, beside hyperfine and runs by hand", (*bench).decide, true},
		{"net", "network driver, beside iperf3 and qperf", (*bench).net, false},
		{"http", "HTTP driver, beside wrk", (*bench).http, false},
		{"collect", "CPU that sampling takes, beside pidstat and top", (*bench).collect, false},
		{"onoff", "responses with collectors on and off", (*bench).onOff, true},
		{"report", "the HTML report of 3,000 cells x 10 trials", (*bench).report, false},
		{"causes", "the report with causes, 1,200 cells x 5 trials x 240,000 readings", (*bench).causes, false},
		{"matrix", "the model on the published network experiment", (*bench).matrix, false},
		{"truth", "planted bottlenecks that are named", (*bench).truth, false},
		{"image", "building images from a warm package cache", (*bench).image, false},
		{"pull", "taking a user's image, beside skopeo", (*bench).pull, false},
		{"boot", "boot of a virtual machine, beside QEMU with a bare init", (*bench).boot, false},
		{"skew", "start of commands in two virtual machines", (*bench).skew, false},
		{"agent", "CPU of sampling a virtual machine", (*bench).agent, true},
		{"barrier", "start of 500 simulated agents", (*bench).barrier, false},
		{"pods", "the same trials in a lab's pods and on this host", (*bench).pods, true},
		{"nodes", "two nodes of the lab at once", (*bench).nodesAtOnce, true},
		{"returns", "the next trial on the lab after kill -9", (*bench).returns, true},
		{"objects", "objects created on a cluster, compared with kube-burner", (*bench).objects, false},
		{"watched", "memory of creating and watching pods, compared with kube-burner", (*bench).watched, false},
		{"sixteen", "peak memory of tare with 16 virtual machines", (*bench).sixteen, true},
	}
}

func run(stdout, stderr io.Writer, args []string) int {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	b := &bench{stderr: stderr}
	fs.StringVar(&b.tare, "tare", "bin/tare", "the binary under test")
	fs.StringVar(&b.study, "study", "studies/first.yaml", "the study whose rows are counted, and whose memory is measured in one block")
	fs.IntVar(&b.rounds, "rounds", 0, "rounds of each comparison; 0: what each figure wants")
	dir := fs.String("dir", os.TempDir(), "directory on the disk to be measured")
	only := fs.String("only", "", "these figures alone, with commas: "+names())
	asJSON := fs.Bool("json", false, "print JSON")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	chosen, err := choose(*only)
	if err == nil {
		err = b.prepare(*dir)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	code, rows := 0, []row(nil)
	for _, f := range chosen {
		begun := time.Now()
		got, err := b.one(ctx, f)
		if err != nil {
			code = 1
			got = append(got, row{Figure: f.about, Note: "not measured: " + err.Error()})
		}
		for i := range got {
			got[i].Group = f.name
		}
		rows = append(rows, got...)
		_, _ = fmt.Fprintf(stderr, "bench: %s (%.0f s)\n", f.about, time.Since(begun).Seconds())
		if ctx.Err() != nil {
			_, _ = fmt.Fprintln(stderr, "bench: interrupted")
			break
		}
	}
	if *asJSON {
		err = writeJSON(stdout, machine(b.tare), rows)
	} else {
		err = writeMarkdown(stdout, machine(b.tare), rows)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return code
}

// one measures a figure, holding the host unless studies do that.
func (b *bench) one(ctx context.Context, f figure) ([]row, error) {
	if !f.studies {
		release, err := b.hold(ctx, f.name)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	return f.measure(b, ctx)
}

func names() string {
	var out []string
	for _, f := range figures() {
		out = append(out, f.name)
	}
	return strings.Join(out, ",")
}

func choose(only string) ([]figure, error) {
	if only == "" {
		return figures(), nil
	}
	var out []figure
	for name := range strings.SplitSeq(only, ",") {
		found := false
		for _, f := range figures() {
			if f.name == strings.TrimSpace(name) {
				out, found = append(out, f), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no figure %q; there are %s", name, names())
		}
	}
	return out, nil
}

// prepare makes paths absolute and the directory of this run.
func (b *bench) prepare(dir string) (err error) {
	for _, p := range []*string{&b.tare, &b.study, &dir} {
		if *p == "" {
			continue
		}
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	if _, err := os.Stat(b.tare); err != nil {
		return fmt.Errorf("no binary to measure: %w; run `make build`, or say -tare PATH", err)
	}
	if b.root, err = os.Getwd(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(b.root, "go.mod")); err != nil {
		return errors.New("run this in the top directory of the source")
	}
	b.work, err = os.MkdirTemp(dir, "tare-bench-")
	return err
}

// wants is the number of rounds.
func (b *bench) wants(n int) int {
	if b.rounds > 0 {
		return b.rounds
	}
	return n
}

// hold takes the host from studies and tests, waiting for them.
func (b *bench) hold(ctx context.Context, what string) (release func(), err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root; run it with sudo")
	}
	said := false
	for {
		l, err := state.Hold(state.RunDir, "bench "+what)
		var held *claim.HeldError
		switch {
		case err == nil:
			return func() { _ = l.Release() }, nil
		case !errors.As(err, &held):
			return nil, err
		case !said:
			said = true
			_, _ = fmt.Fprintln(b.stderr, "bench: waiting:", held)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
