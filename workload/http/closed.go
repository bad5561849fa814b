package httpload

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/workload/child"
	"tare/workload/inside"
	"tare/workload/output"
)

//go:embed wrk.lua
var script []byte

// closed is one load by wrk.
type closed struct {
	target      target
	program     string // wrk
	connections int
	threads     int
	warmup      time.Duration
	duration    time.Duration
	every       bool          // the script checks each answer
	delay       time.Duration // the longest pause before a request
	stderr      io.Writer
}

// run warms up with a process of wrk that checks every answer, then measures with
// another.
func (c *closed) run(ctx context.Context) (*report, error) {
	if c.connections < 1 || c.threads < 1 || c.connections%c.threads != 0 {
		return nil, fmt.Errorf("%w: --connections %d cannot be shared evenly by --threads %d", inside.ErrUsage, c.connections, c.threads)
	}
	// wrk inherits this, so it survives a SIGINT that comes before it has installed its
	// handler, which takes 100 ms on a busy machine.
	signal.Ignore(syscall.SIGINT)
	defer signal.Reset(syscall.SIGINT)
	answer, _, err := c.target.exchanges()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tare-wrk-")
	if err != nil {
		return nil, fmt.Errorf("cannot store wrk's script: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // /tmp goes with the sandbox
	lua := dir + "/wrk.lua"
	if err := os.WriteFile(lua, script, 0o600); err != nil {
		return nil, fmt.Errorf("cannot store wrk's script: %w", err)
	}
	if c.warmup > 0 {
		if _, _, err := c.all(ctx, lua, max(c.warmup-look, c.warmup/2), true, answer); err != nil {
			return nil, fmt.Errorf("warming up: %w", err)
		}
	}
	s, usage, err := c.all(ctx, lua, c.duration, c.every, answer)
	if err != nil {
		return nil, err
	}
	// wrk does not report answers that it still waits for: a server that hangs has fewer
	// answers, but no wrong ones.
	if _, _, err := c.target.exchanges(); err != nil {
		return nil, fmt.Errorf("after the load: %w", err)
	}
	r := &report{
		Format: 1, Load: "closed", Connections: c.connections, Threads: c.threads, Body: c.target.body, Answer: answer,
		Window: float64(s.Duration) * 1e-6, Requests: s.Requests, Bytes: s.Bytes, Latency: s.Latency, Histogram: s.merged,
		User: usage.user.Seconds(), System: usage.system.Seconds(),
	}
	if late := time.Duration(s.Duration)*time.Microsecond - c.duration; late > time.Second {
		r.warn("http-late-end", "wrk measured %s longer than duration: the machine is too busy for it, or its sandbox loses signals", late.Round(10*time.Millisecond))
	}
	if busy := (r.User + r.System) / r.Window / float64(c.threads*len(c.target.groups())); busy > 0.9 {
		r.warn("http-client-busy", "wrk used %.0f%% of its threads' time: it may be what limits the rate; raise threads, and give it processors of its own", busy*100)
	}
	return r, nil
}

// look is how often wrk's threads check whether the time is over.
const look = 100 * time.Millisecond

// wrk runs wrk once. wrk supports only whole seconds. Other times are ended by a SIGINT, at
// which it prints its summary as usual.
func (c *closed) wrk(ctx context.Context, lua string, d time.Duration, every bool) (summary, spent, error) {
	whole := d.Truncate(time.Second)
	if d != whole || d == 0 {
		whole += 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, d+c.target.timeout+10*time.Second)
	defer cancel()
	check := "totals"
	if every {
		check = "every"
	}
	cmd := child.Command(ctx, c.program,
		"-t", strconv.Itoa(c.threads), "-c", strconv.Itoa(c.connections), "-d", strconv.Itoa(int(whole.Seconds()))+"s",
		"--timeout", strconv.Itoa(int((c.target.timeout+time.Second-1)/time.Second))+"s", "-s", lua,
		c.target.url.String(), "--", strconv.FormatInt(c.target.body, 10), check,
		strconv.FormatBool(!c.target.close), strconv.FormatInt(c.delay.Milliseconds(), 10), strings.Join(c.target.names(), ","))
	cmd.Env = c.target.environment()
	out := output.Tail{Most: maxSummary}
	errs := &announced{line: "TARE done\n", seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &out, errs
	ended := make(chan struct{})
	err := child.Run(cmd, func(p *os.Process) {
		if d < whole {
			go interrupt(p, d, errs.seen, ended)
		}
	})
	close(ended)
	if cmd.ProcessState == nil {
		return summary{}, spent{}, fmt.Errorf("wrk did not start: %w", err)
	}
	text := errs.text()
	if text != "" {
		_, _ = fmt.Fprintln(c.stderr, text)
	}
	switch {
	case ctx.Err() != nil:
		return summary{}, spent{}, fmt.Errorf("wrk did not end: %w", context.Cause(ctx))
	case err != nil:
		return summary{}, spent{}, fmt.Errorf("wrk failed (%w): %s", err, output.Said(text))
	}
	b, err := out.Whole()
	if err != nil {
		return summary{}, spent{}, fmt.Errorf("wrk: %w", err)
	}
	s, err := readSummary(b)
	return s, spent{cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime()}, err
}

// maxSummary bounds wrk's output, in bytes: each different latency, in microseconds, takes
// about ten bytes, and no observed run had a million.
const maxSummary = 16 << 20

// interrupt sends SIGINT after d. It repeats the signal, because one that comes before wrk has
// a handler is lost, until wrk announces its summary: another signal could cut that off.
func interrupt(p *os.Process, d time.Duration, done, ended <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-ended:
			return
		case <-t.C:
			_ = p.Signal(syscall.SIGINT) // it may have ended
			t.Reset(look + look/2)
		}
	}
}

// announced keeps the end of what is written to it, and closes a channel at a certain line.
type announced struct {
	output.Tail
	line string
	seen chan struct{}
	told bool
}

func (a *announced) Write(p []byte) (int, error) {
	n, err := a.Tail.Write(p)
	if !a.told && strings.Contains(a.String(), a.line) {
		a.told = true
		close(a.seen)
	}
	return n, err
}

// text returns what was written, without that line.
func (a *announced) text() string {
	return strings.TrimSpace(strings.Replace(a.String(), a.line, "", 1))
}
