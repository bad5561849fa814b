package httpload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tare/workload/inside"
)

// Main is `tare internal http`: closed, open or file, by the first argument. It
// returns the exit code: 0, 1 for a failed run, 2 for wrong arguments. The report goes to
// stdout, errors go to stderr.
func Main(args []string, stdout, stderr io.Writer) int {
	return inside.Main("http", args, stdout, stderr, command)
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	what, args := inside.Verb(args)
	switch what {
	case "closed", "open", "loop":
		return load(ctx, what, args, stdout, stderr)
	case "file":
		return makeFile(args, stderr)
	}
	return fmt.Errorf("%w: write closed, open, loop or file first", inside.ErrUsage)
}

func load(ctx context.Context, what string, args []string, stdout, stderr io.Writer) error {
	fs := inside.Flags("tare internal http "+what, stderr)
	raw := fs.String("url", "", "what to ask for: http://HOST:PORT/PATH; closed, loop: https:// too")
	size := fs.Int64("size", 0, "`bytes` that the body of every answer must have")
	connections := fs.Int("connections", 1, "connections, kept open")
	warmup := fs.Duration("warmup", time.Second, "load before measuring")
	duration := fs.Duration("duration", 5*time.Second, "time to measure")
	timeout := fs.Duration("timeout", 5*time.Second, "of one answer")
	threads := fs.Int("threads", 1, "closed: threads of wrk")
	check := fs.String("check", "totals", "closed: totals or every")
	wrk := fs.String("wrk", "/usr/bin/wrk", "closed: the `program` wrk")
	rate := fs.Float64("rate", 0, "open, loop: requests a second; loop: 0 for a closed loop")
	keep := fs.Bool("keep-alive", true, "a connection serves many requests")
	hosts := fs.String("hosts", "", "`names` for the header Host, joined by commas, which requests take in turn")
	each := fs.String("each", "", "instead of --url: `URLs` without ports, joined by spaces, which requests take in turn")
	at := fs.String("at", "", "with --each: the `host` that has them all")
	ports := fs.String("ports", "80,443", "with --each: its ports for http and https")
	delay := fs.Duration("delay", 0, "closed: the longest pause before a request")
	var security TLS
	fs.BoolVar(&security.Resume, "resume", false, "loop, https: new connections resume a session")
	fs.StringVar(&security.Trust, "trust", TrustSystem, "https: system, any, or a `file` of certificates; closed: any")
	fs.StringVar(&security.Name, "server-name", "localhost", "loop, https: the name in the certificate")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	var t target
	var err error
	if *each != "" {
		t, err = newTargets(strings.Fields(*each), *at, *ports, *size, *timeout, security)
	} else {
		t, err = newTarget(*raw, *size, *timeout, security)
	}
	if err != nil {
		return err
	}
	t.close = !*keep
	if *hosts != "" {
		t.hosts = strings.Split(*hosts, ",")
	}
	switch {
	case t.tls == nil || what == "loop":
	case what == "closed" && security.Trust != TrustAny:
		return fmt.Errorf("%w: wrk trusts any certificate; write --trust any", inside.ErrUsage)
	case what == "open":
		return fmt.Errorf("%w: --url %q: open load has no TLS; write loop", inside.ErrUsage, *raw)
	}
	if *duration <= 0 || *warmup < 0 {
		return fmt.Errorf("%w: --duration must be over 0, --warmup not negative", inside.ErrUsage)
	}
	var r *report
	o := open{target: t, connections: *connections, rate: *rate, warmup: *warmup, duration: *duration, keepAlive: *keep,
		resume: security.Resume, handshakes: handshakes{took: newHistogram()}}
	switch {
	case what == "open" && *rate == 0:
		return fmt.Errorf("%w: --rate must be over 0", inside.ErrUsage)
	case what != "closed":
		r, err = o.run(ctx)
	default:
		if *check != "totals" && *check != "every" {
			return fmt.Errorf("%w: --check %q must be totals or every", inside.ErrUsage, *check)
		}
		c := closed{target: t, program: *wrk, connections: *connections, threads: *threads,
			warmup: *warmup, duration: *duration, every: *check == "every", delay: *delay, stderr: stderr}
		r, err = c.run(ctx)
	}
	if err != nil {
		return err
	}
	return inside.Print(stdout, r)
}

// makeFile makes the served file: always the same lines of text.
func makeFile(args []string, stderr io.Writer) error {
	fs := inside.Flags("tare internal http file", stderr)
	path := fs.String("path", "", "of the file; its folder is made")
	size := fs.Int64("size", 0, "`bytes`")
	shared := fs.String("open", "", "a `folder` above it that all may enter")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	if *path == "" || *size < 0 || *size > maxFile {
		return fmt.Errorf("%w: --path is missing, or --size is not from 0 to %d", inside.ErrUsage, maxFile)
	}
	// The server drops root before it reads.
	if err := os.MkdirAll(filepath.Dir(*path), 0o755); err != nil { //nolint:gosec // see above
		return fmt.Errorf("cannot make the file that is served: %w", err)
	}
	if *shared != "" {
		if err := os.Chmod(*shared, 0o755); err != nil { //nolint:gosec // see above
			return fmt.Errorf("cannot open the folder of the file that is served: %w", err)
		}
	}
	const line = "The quick brown fox jumps over the lazy dog, and so on to the end.\n"
	data := bytes.Repeat([]byte(line), int(*size)/len(line)+1)[:*size]
	if err := os.WriteFile(*path, data, 0o644); err != nil { //nolint:gosec // see above
		return fmt.Errorf("cannot make the file that is served: %w", err)
	}
	// Apache marks the ETag of a file younger than a second as weak, which takes two more bytes.
	// Then the answers would differ in length.
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(*path, old, old); err != nil {
		return fmt.Errorf("cannot make the file that is served: %w", err)
	}
	return nil
}
