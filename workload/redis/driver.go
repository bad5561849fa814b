package redis

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/workload/child"
	"tare/workload/inside"
	"tare/workload/output"
)

// program is the path of redis-benchmark in the image.
const program = "/usr/bin/redis-benchmark"

// result is one line that Main prints.
type result struct {
	Test     string  `json:"test"`
	Requests int64   `json:"requests"`    // requested from redis-benchmark in the measured run
	WarmRate float64 `json:"warmup_rate"` // requests a second while warming up
	WarmFor  float64 `json:"warmup_s"`
	CSV      string  `json:"csv"` // redis-benchmark's output

	// What the server counted meanwhile.
	Server string `json:"redis_version"`
	Calls  int64  `json:"calls"`
	Failed int64  `json:"failed"` // refused, or ended in an error
	Hits   int64  `json:"hits"`   // lookups that found their key
	Misses int64  `json:"misses"` // lookups that did not
	Ran    bool   `json:"ran_empty"`
}

// options are the options of Main.
type options struct {
	server                  string
	tests                   []test
	clients, pipeline, size int
	keys                    int
	duration, warmup        time.Duration
	requests                int64
}

// Main is `tare internal redis`: the driver of redis-benchmark inside the client's
// sandbox. It returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "redis: %v\n", err)
		return 2
	}
	if err := drive(ctx, o, stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "redis: %v\n", err)
		return 1
	}
	return 0
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := inside.Flags("redis", stderr)
	server := fs.String("server", "127.0.0.1", "address of redis-server")
	port := fs.Int("port", 6379, "its port")
	names := fs.String("tests", "all", "tests to run, joined by commas")
	fs.IntVar(&o.clients, "clients", 50, "connections")
	fs.IntVar(&o.pipeline, "pipeline", 1, "requests sent together")
	fs.IntVar(&o.size, "size", 3, "bytes of a value")
	fs.IntVar(&o.keys, "keys", 10000, "different keys")
	fs.DurationVar(&o.duration, "duration", 500*time.Millisecond, "measured time of a test")
	fs.DurationVar(&o.warmup, "warmup", 100*time.Millisecond, "load before it")
	fs.Int64Var(&o.requests, "requests", 0, "of a test; 0: by duration")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 || o.clients < 1 || o.pipeline < 1 || o.size < 1 || o.keys < 1 || o.requests < 0 || o.requests > maxRequests {
		return o, fmt.Errorf("a number is out of range, or there is one word too many: %q", args)
	}
	o.server = net.JoinHostPort(*server, strconv.Itoa(*port))
	var err error
	o.tests, err = chosen(*names)
	return o, err
}

var errTold = errors.New("it was told to stop")

// drive runs the tests one after another, until the context ends; then the present request to
// the server ends too.
func drive(ctx context.Context, o options, stdout io.Writer) error {
	c, err := dial(ctx, o.server)
	if err != nil {
		return err
	}
	defer c.close()
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	for _, t := range o.tests {
		r, err := measure(ctx, c, o, t)
		if ctx.Err() != nil {
			err = errTold // not the error that this caused
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// measure runs one test.
func measure(ctx context.Context, c *conn, o options, t test) (result, error) {
	r := result{Test: t.name}
	n, err := o.warm(ctx, c, t, &r)
	if err != nil {
		return r, err
	}
	left, err := c.prepare(t, o, n)
	if err != nil {
		return r, err
	}
	if _, err := c.do("CONFIG", "RESETSTAT"); err != nil {
		return r, err
	}
	r.Requests = n
	if r.CSV, err = o.benchmark(ctx, t, n); err != nil {
		return r, err
	}
	got, err := c.counts(t.command)
	if err != nil {
		return r, err
	}
	r.Server, r.Calls, r.Failed, r.Hits, r.Misses = got.version, got.calls, got.failed, got.hits, got.misses
	if left != "" {
		there, err := c.do("EXISTS", left)
		if err != nil {
			return r, err
		}
		r.Ran = there != "1"
	}
	return r, nil
}

// warm runs the test until one run takes the warm-up's time, and returns how many
// requests the measured one needs.
func (o options) warm(ctx context.Context, c *conn, t test, r *result) (int64, error) {
	least := int64(max(1000, 2*o.clients*o.pipeline))
	n := least
	const tries = 8
	for range tries {
		if _, err := c.prepare(t, o, n); err != nil {
			return 0, err
		}
		csv, err := o.benchmark(ctx, t, n)
		if err != nil {
			return 0, err
		}
		row, err := parseCSV(csv, t.name)
		if err != nil {
			return 0, err
		}
		r.WarmRate, r.WarmFor = row.rate, float64(n)/row.rate
		// Nine tenths are enough: another run would cost ten times the rest.
		if r.WarmFor >= 0.9*o.warmup.Seconds() || n >= maxRequests {
			break
		}
		// By the rate so far, but at most tenfold: a run of milliseconds, mostly making
		// connections, says little.
		want := math.Min(float64(n)*10, math.Ceil(1.1*row.rate*o.warmup.Seconds()))
		n = o.whole(math.Max(want, float64(n+1)))
	}
	if o.requests > 0 {
		return o.whole(float64(o.requests)), nil
	}
	return max(least, o.whole(r.WarmRate*o.duration.Seconds())), nil
}

// whole rounds a number of requests up to whole pipelines.
func (o options) whole(n float64) int64 {
	p := int64(o.pipeline)
	return (min(int64(math.Ceil(n)), maxRequests) + p - 1) / p * p
}

// benchmark runs redis-benchmark once and returns what it printed.
func (o options) benchmark(ctx context.Context, t test, n int64) (string, error) {
	host, port, err := net.SplitHostPort(o.server)
	if err != nil {
		return "", err
	}
	cmd := child.Command(ctx, program, "-h", host, "-p", port, "-t", t.name, "--csv",
		"-n", strconv.FormatInt(n, 10), "-c", strconv.Itoa(o.clients), "-P", strconv.Itoa(o.pipeline),
		"-d", strconv.Itoa(o.size), "-r", strconv.Itoa(o.keys))
	var out, errs output.Tail
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = child.Run(cmd, nil)
	says := errs.String()
	switch {
	case ctx.Err() != nil:
		return "", errTold
	case err != nil:
		return "", fmt.Errorf("redis-benchmark failed (%w): %s", err, output.Said(says))
	case strings.Contains(says, "Error"):
		// It continues after some errors, and exits with 0.
		return "", fmt.Errorf("redis-benchmark says: %s", output.Said(says))
	}
	csv, err := out.Whole()
	if err != nil {
		return "", fmt.Errorf("redis-benchmark: %w", err)
	}
	return string(csv), nil
}
