package netload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/record"
	"tare/workload/inside/raw"
)

// lockedBuffer is written by the server while the test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// asMain makes the test binary the driver: two endpoints in one process would stop
// each other's world for a garbage collection.
const asMain = "TARE_NET_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func driver(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), asMain+"=1", "GODEBUG=asyncpreemptoff=1")
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 20 * time.Second
	return c
}

// startServer runs a server on a free port of the loopback; stop sends it the
// signal, SIGTERM for an orderly end, and returns its exit code and output.
func startServer(t *testing.T, args ...string) (port int, stop func(os.Signal) (int, string)) {
	t.Helper()
	var out lockedBuffer
	c := driver(context.Background(), append([]string{"server", "--host", "127.0.0.1", "--port", "0"}, args...)...)
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func(s os.Signal) (int, string) {
		once.Do(func() { _ = c.Process.Signal(s); _ = c.Wait() })
		return c.ProcessState.ExitCode(), out.String()
	}
	t.Cleanup(func() { stop(syscall.SIGKILL) })
	for range 6000 {
		if s := out.String(); strings.HasPrefix(s, ready) && strings.HasSuffix(s, "\n") {
			_, p, err := net.SplitHostPort(strings.TrimSpace(s[strings.LastIndex(s, " ")+1:]))
			if err != nil {
				t.Fatal(err)
			}
			if port, err = strconv.Atoi(p); err != nil {
				t.Fatal(err)
			}
			return port, stop
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the server is not ready: %s", out.String())
	return 0, nil
}

func runClientArgs(ctx context.Context, port int, args ...string) (*report, int, string) {
	var out, errs bytes.Buffer
	c := driver(ctx, append([]string{"client", "--server", "127.0.0.1", "--port", strconv.Itoa(port),
		"--warmup", "50ms", "--duration", "200ms"}, args...)...)
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run()
	code := c.ProcessState.ExitCode()
	var r report
	if code == 0 {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			return nil, code, err.Error()
		}
	}
	return &r, code, errs.String()
}

// TestBothEnds runs every kind of session against one server: the ends' counts
// must agree, and the figures must follow from them.
func TestBothEnds(t *testing.T) {
	port, stop := startServer(t)
	for i, args := range [][]string{
		{"--mode", "rr"},
		{"--mode", "rr", "--size", "100000", "--reply", "1", "--connections", "3"},
		{"--mode", "rr", "--protocol", "udp", "--connections", "2"},
		{"--mode", "rr", "--protocol", "udp", "--size", "9000", "--reply", "3"},
		{"--mode", "rr", "--protocol", "udp", "--neighbours", "100", "--addresses", "127.0.1.0/25", "--connections", "2"},
		{"--mode", "rr", "--count", "500", "--connections", "3"},
		{"--mode", "rr", "--rate", "1000", "--connections", "2"},
		{"--mode", "rr", "--rate", "1000", "--count", "100"},
		{"--mode", "stream", "--size", "65536"},
		{"--mode", "stream", "--size", "1", "--nodelay=false"},
		{"--mode", "stream", "--size", "1000000", "--direction", "download", "--connections", "2"},
		{"--mode", "stream", "--size", "1000", "--count", "1000"},
		{"--mode", "stream", "--size", "1000", "--count", "1000", "--direction", "download"},
	} {
		name := strings.Join(args, " ")
		r, code, errs := runClientArgs(t.Context(), port, args...)
		if code != 0 {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
			continue
		}
		for _, w := range r.Warnings {
			if w.Code == "net-ends-differ" {
				t.Errorf("%s: %s", name, w.Text)
			}
		}
		if r.Operations == 0 || r.Bytes == 0 || r.Window <= 0 || r.Peer == nil || r.Peer.Endpoint != "server" || r.Peer.Session != i+1 {
			t.Errorf("%s: report %+v", name, r)
		}
		if want := r.Config.Count; want > 0 && r.Config.Mode == "rr" && r.Operations != want && r.Config.Rate == 0 {
			t.Errorf("%s: %d operations, want %d", name, r.Operations, want)
		}
		if (r.Latency != "") != (r.Config.Mode == "rr") {
			t.Errorf("%s: latency %q", name, r.Latency)
		}
	}
	code, out := stop(syscall.SIGTERM)
	if code != 0 || !strings.Contains(out, `"end":"server"`) {
		t.Errorf("the server ended with %d: %s", code, out)
	}
}

func TestServerWithoutClient(t *testing.T) {
	_, stop := startServer(t)
	if code, out := stop(syscall.SIGTERM); code != 1 || !strings.Contains(out, "no client") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestServerBounds(t *testing.T) {
	port, _ := startServer(t, "--max-connections", "2")
	_, code, errs := runClientArgs(t.Context(), port, "--connections", "3")
	if code != 1 || !strings.Contains(errs, "at most 2") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	// What no client of ours sends: the server must answer in words.
	for _, line := range []string{
		`{"version":1,"mode":"rr","protocol":"tcp","direction":"upload","size_bytes":1073741824,"connections":1,"duration_s":1,"timeout_s":1}`,
		`{"version":9}`,
		`{"version":1,"mode":"rr","protocol":"udp","direction":"upload","size_bytes":1,"connections":1,"duration_s":1,"timeout_s":1,"udp_ports":[-1]}`,
	} {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, line+"\n")
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		b, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(b), `"error"`) {
			t.Errorf("%s: answer %q, %v", line, b, err)
		}
		_ = c.Close()
	}
}

func TestSecondClientIsRefused(t *testing.T) {
	port, _ := startServer(t)
	// How soon a client is at work depends on the machine. As long as the second one is
	// served they did not meet, and all goes slower.
	for wait := 300 * time.Millisecond; ; wait *= 2 {
		done := make(chan int, 1)
		go func() {
			_, code, _ := runClientArgs(context.WithoutCancel(t.Context()), port, "--duration", (3 * wait).String())
			done <- code
		}()
		time.Sleep(wait)
		_, code, errs := runClientArgs(t.Context(), port)
		first := <-done
		if code == 0 && wait < 5*time.Second {
			continue
		}
		if code != 1 || !strings.Contains(errs, "another session") {
			t.Errorf("exit code %d: %s", code, errs)
		}
		if first != 0 {
			t.Errorf("the first client was disturbed: exit code %d", first)
		}
		return
	}
}

// TestDeadServer ends the server in the middle: the client must say so soon,
// and not hang.
func TestDeadServer(t *testing.T) {
	for _, args := range [][]string{
		{"--mode", "rr"},
		{"--mode", "rr", "--protocol", "udp", "--timeout", "600ms"},
		{"--mode", "stream"},
		{"--mode", "stream", "--direction", "download"},
		{"--mode", "rr", "--rate", "100"},
	} {
		port, stop := startServer(t)
		time.AfterFunc(300*time.Millisecond, func() { stop(syscall.SIGKILL) })
		start := time.Now()
		_, code, errs := runClientArgs(t.Context(), port, append(args, "--duration", "2m")...)
		if code != 1 || len(strings.Fields(errs)) < 6 {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%v: it took %v", args, d)
		}
	}
}

// TestSilentServer is one that accepts and never answers, as a frozen sandbox.
func TestSilentServer(t *testing.T) {
	c, s := net.Pipe()
	defer func() { _ = c.Close(); _ = s.Close() }()
	go func() { _, _ = io.Copy(io.Discard, s) }()
	w := newWire(c, nil)
	if err := w.send(order{Op: opBegin}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reply(50 * time.Millisecond); err == nil {
		t.Error("a silent server is no error")
	}
}

// TestStalledConnection freezes the data while the control connection lives:
// the watch must end it.
func TestStalledConnection(t *testing.T) {
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := ln.Accept() // reads nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	k, err := prepareTCP(c.(*net.TCPConn), true)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &config{Mode: "rr", Size: 1, Connections: 1, Timeout: 0.3}
	raw.Threads(1)
	b := newBench(cfg, []*socket{k})
	defer b.close()
	b.workers[0].end, b.workers[0].hist = int64(time.Hour), newHistogram()
	b.start(askTCP)
	go b.watch(t.Context(), nil)
	if err := b.join(t.Context(), 10*time.Second); err == nil || !strings.Contains(err.Error(), "no byte moved") {
		t.Errorf("join = %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	port, _ := startServer(t)
	for wait := 300 * time.Millisecond; ; wait *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		_, code, errs := runClientArgs(ctx, port, "--duration", "30s")
		cancel()
		if code == -1 && wait < 5*time.Second {
			continue // it was killed before it had come to listen for signals
		}
		if code != 1 || !strings.Contains(errs, "interrupted") {
			t.Errorf("exit code %d: %s", code, errs)
		}
		return
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"peer"}, {"client"}, {"client", "--server", "x", "--size", "0"},
		{"client", "--server", "x", "--protocol", "udp", "--neighbours", "9", "--addresses", "127.0.1.0/29"}, {"client", "--server", "x", "--protocol", "udp", "--neighbours", "9", "--addresses", "::1/64"},
		{"client", "--server", "x", "--mode", "stream", "--rate", "1"}, {"server", "extra"}, {"server", "--nope"}} {
		if code := Main(args, io.Discard, io.Discard); code != 2 {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
	}
}

// TestCompareSeesALoss spoils one count.
func TestCompareSeesALoss(t *testing.T) {
	c := &report{Config: config{Mode: "rr", Protocol: "tcp"}, TotalSent: 10, TotalReceived: 10, TotalOperations: 10}
	s := *c
	if c.compare(&s); len(c.Warnings) != 0 {
		t.Errorf("equal ends are blamed: %v", c.Warnings)
	}
	s.TotalOperations--
	if c.compare(&s); len(c.Warnings) != 1 || c.Warnings[0].Code != "net-ends-differ" {
		t.Errorf("a missing operation is not seen: %v", c.Warnings)
	}
}

// TestBacklogIsCounted overruns the open loop with a round trip of 10 ms at
// 1000 a second: leaving out what was never sent would show 10 ms.
func TestBacklogIsCounted(t *testing.T) {
	w := &worker{cfg: &config{Size: 1}, clock: clock{time.Now()}, stop: newBench(&config{}, nil).stopFlag(), hist: newHistogram(), period: 1e6, end: 300e6}
	if err := ask(w, func(uint64) error { time.Sleep(10 * time.Millisecond); return nil }); err != nil {
		t.Fatal(err)
	}
	if n := w.hist.TotalCount(); n < 290 || n > 310 {
		t.Errorf("%d operations are accounted for, want the 300 scheduled", n)
	}
	if p := time.Duration(w.hist.ValueAtPercentile(90)); p < 150*time.Millisecond {
		t.Errorf("90th percentile %v: the backlog is left out", p)
	}
}

// TestOwnTime tells a connection that waits for replies from one whose own thread is slow.
func TestOwnTime(t *testing.T) {
	trip := 5 * time.Millisecond
	for name, c := range map[string]struct {
		trip func()
		late bool
	}{
		"the server is slow": {func() { time.Sleep(trip) }, false},
		"the generator is slow": {func() {
			for begin := time.Now(); time.Since(begin) < trip; {
				continue
			}
		}, true},
	} {
		b := newBench(&config{Mode: "rr", Size: 1, Connections: 1, Rate: 1000, Duration: 0.3}, nil)
		b.workers = []*worker{{cfg: b.cfg, clock: b.clock, stop: b.stopFlag()}}
		b.plan(b.clock.now(), b.clock.now())
		w := b.workers[0]
		var ended sync.WaitGroup
		ended.Go(func() { w.run(func(w *worker) error { return ask(w, func(uint64) error { c.trip(); return nil }) }) })
		ended.Wait()
		r := &report{Config: *b.cfg}
		if err := b.latency(r, w.begin); err != nil {
			t.Fatal(err)
		}
		late := slices.ContainsFunc(r.Warnings, func(w record.Warning) bool { return w.Code == record.GeneratorLate })
		if r.Due < 290 || r.Due > 310 || r.Unsent < 100 || late != c.late {
			t.Errorf("%s: %d of %d operations were not sent; %v", name, r.Unsent, r.Due, r.Warnings)
		}
	}
}

// TestHotLoopAllocatesNothing compares two lengths of a loop: only what grows
// with the operations counts.
func TestHotLoopAllocatesNothing(t *testing.T) {
	allocs := func(n int64) uint64 {
		w := &worker{cfg: &config{Size: 1}, clock: clock{time.Now()}, stop: newBench(&config{}, nil).stopFlag(), hist: newHistogram(), count: n}
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		if err := ask(w, func(uint64) error { return nil }); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&b)
		return b.Mallocs - a.Mallocs
	}
	few, many := allocs(10), allocs(100000)
	if many > few+50 { // other goroutines of the test binary allocate a little
		t.Errorf("%d allocations for 100000 operations, %d for 10", many, few)
	}
}
