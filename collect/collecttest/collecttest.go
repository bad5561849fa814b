// Package collecttest is the contract of collectors. A collector's test calls Run; a failure
// names the broken sentence of the contract.
//
// The data path: 1. a scope gets a child process with threads that come and go; 2. the
// collector is opened on it and read many times; 3. names, units, kinds, counters,
// descriptors, time and documentation are compared with the contract.
package collecttest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/collect"
	"tare/record"
	"tare/sandbox"
)

// Subject is a collector and how to try it.
type Subject struct {
	Collector collect.Collector
	// Scopes returns the scopes to open it on; nil: a scope of the end "server" with the
	// process id of the restless child.
	Scopes func(t *testing.T, pid int) []sandbox.LocalScope
	// Partial says why some described series are missing here; "": all are required.
	Partial string
}

// Bounds of the contract. A longer read would miss its tick at the default 10 Hz. The
// fastest of the reads counts, so that the test does not fail on a busy machine.
const (
	reads    = 20
	longest  = 50 * time.Millisecond
	children = "COLLECTTEST_RESTLESS"
)

// Main runs the tests, or the restless child, or the process that reads one of the collectors
// for Elsewhere. Call it from TestMain and exit with its result.
func Main(m *testing.M, collectors ...collect.Collector) int {
	switch os.Getenv(children) {
	case "":
		return m.Run()
	case elsewhere:
		return serve(collectors)
	}
	restless(os.Stdin, os.Stdout)
	return 0
}

// restless burns CPU in threads that come and go until its input ends.
func restless(in io.Reader, out io.Writer) {
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
		close(stop)
	}()
	fmt.Fprintln(out, "ready")
	var wg sync.WaitGroup
	wg.Go(func() { // one thread stays
		runtime.LockOSThread()
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				burn(2 * time.Millisecond)
			}
		}
	})
	for {
		select {
		case <-stop:
			wg.Wait()
			return
		default:
		}
		wg.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			burn(3 * time.Millisecond)
			time.Sleep(15 * time.Millisecond)
		})
		time.Sleep(10 * time.Millisecond)
	}
}

func burn(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// Restless starts the restless child and returns its process id. It ends with
// the test.
func Restless(t testing.TB) int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe) //nolint:gosec // this test binary
	cmd.Env = append(os.Environ(), children+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the child
		if err := cmd.Wait(); err != nil {
			t.Errorf("restless child: %v", err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("restless child said %q, %v; does TestMain call collecttest.Main?", line, err)
	}
	return cmd.Process.Pid
}

// Run tries the contract.
func Run(t *testing.T, s Subject) {
	c := s.Collector
	t.Run("description", func(t *testing.T) { describe(t, c) })
	t.Run("documentation", func(t *testing.T) { documented(t, c) })
	if err := c.Check(); err != nil {
		t.Skipf("this host lacks the source: %v", err)
	}
	if s.Scopes == nil {
		s.Scopes = func(_ *testing.T, pid int) []sandbox.LocalScope {
			return []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Pids: []int{pid}}}
		}
	}
	t.Run("series", func(t *testing.T) { series(t, s) })
	t.Run("dst", func(t *testing.T) { reuse(t, s) })
	t.Run("close", func(t *testing.T) { closing(t, s) })
	t.Run("nothing", func(t *testing.T) { nothing(t, c) })
}

func describe(t *testing.T, c collect.Collector) {
	if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(c.Name()) {
		t.Errorf("name %q: use lower-case letters, digits and dashes", c.Name())
	}
	if about := c.About(); !strings.Contains(about, "Documentation/") && !strings.Contains(about, "(") {
		t.Errorf("About %q does not name its source, such as a kernel document", about)
	}
	seen := map[string]bool{}
	units := []record.Unit{record.Second, record.Byte, record.BytesPerSecond, record.PerSecond, record.Cores, record.Count, record.Fraction}
	for _, r := range c.Series() {
		if seen[r.Name] {
			t.Errorf("series %s is described twice", r.Name)
		}
		seen[r.Name] = true
		if !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(r.Name) {
			t.Errorf("series %q: use lower-case letters, digits and underscores", r.Name)
		}
		if !slices.Contains(units, r.Unit) {
			t.Errorf("series %s has the unit %q; use a base unit of package record", r.Name, r.Unit)
		}
		if r.Help == "" {
			t.Errorf("series %s has no help", r.Name)
		}
		if r.Better != record.Higher && r.Better != record.Lower && r.Better != record.Neither {
			t.Errorf("series %s: Better is %q", r.Name, r.Better)
		}
	}
}

// documented checks that docs/collectors/NAME.md exists and mentions every series.
func documented(t *testing.T, c collect.Collector) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's directory")
		}
		dir = up
	}
	page := filepath.Join(dir, "docs", "collectors", c.Name()+".md")
	b, err := os.ReadFile(page) //nolint:gosec // inside the module
	if err != nil {
		t.Fatalf("every collector has a page: %v", err)
	}
	for _, r := range c.Series() {
		if !strings.Contains(string(b), "`"+r.Name+"`") {
			t.Errorf("%s does not mention the series `%s`", page, r.Name)
		}
	}
}

type point struct {
	name   string
	labels record.Labels
}

// stamps checks the times of a collect.Stamped for the samples of its last Read, and returns
// them. Another probe's are all the same.
func stamps(t *testing.T, p collect.Probe, samples []record.Sample) []time.Time {
	t.Helper()
	s, ok := p.(collect.Stamped)
	if !ok {
		return make([]time.Time, len(samples))
	}
	times := s.Times()
	if len(times) != len(samples) {
		t.Fatalf("%d times for %d samples", len(times), len(samples))
	}
	for i, at := range times {
		if at.IsZero() || at.After(time.Now()) {
			t.Errorf("%s has the time %v, which is in the future or before the probe", samples[i].Name, at)
		}
	}
	return times
}

func open(t *testing.T, c collect.Collector, scopes []sandbox.LocalScope) collect.Probe {
	t.Helper()
	p, err := c.Open(context.Background(), scopes)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// series reads for a second, in which threads come, go and are found.
func series(t *testing.T, s Subject) {
	p := open(t, s.Collector, s.Scopes(t, Restless(t)))
	described := map[string]record.Response{}
	for _, r := range s.Collector.Series() {
		described[r.Name] = r
	}
	last, kinds, seen := map[point]float64{}, map[string]record.SampleType{}, map[string]bool{}
	var dst []record.Sample
	fastest := time.Duration(math.MaxInt64)
	for range reads {
		start := time.Now()
		var err error
		if dst, err = p.Read(dst[:0]); err != nil {
			t.Fatalf("Read: %v", err)
		}
		fastest = min(fastest, time.Since(start))
		once := map[point]time.Time{}
		times := stamps(t, p, dst)
		for i, x := range dst {
			at := point{x.Name, x.Labels}
			check(t, x, described, kinds)
			if before, ok := once[at]; ok && !times[i].After(before) {
				t.Errorf("%s{%s} is given twice in one reading, of the same time", x.Name, x.Labels)
			}
			once[at], seen[x.Name] = times[i], true
			if before, ok := last[at]; ok && x.Kind == record.Counter && x.Value < before {
				t.Errorf("counter %s{%s} fell from %v to %v", x.Name, x.Labels, before, x.Value)
			}
			last[at] = x.Value
		}
		time.Sleep(50 * time.Millisecond)
	}
	if fastest > longest {
		t.Errorf("the fastest of %d reads took %v, more than %v", reads, fastest, longest)
	}
	for name := range described {
		if !seen[name] && s.Partial == "" {
			t.Errorf("series %s is described, but Read never returned it", name)
		}
	}
}

func check(t *testing.T, x record.Sample, described map[string]record.Response, kinds map[string]record.SampleType) {
	t.Helper()
	r, ok := described[x.Name]
	if !ok {
		t.Errorf("series %s is not described", x.Name)
		return
	}
	if x.Unit != r.Unit {
		t.Errorf("series %s has the unit %s, described as %s", x.Name, x.Unit, r.Unit)
	}
	if x.Kind != record.Counter && x.Kind != record.Gauge {
		t.Errorf("series %s has the kind %q; use counter or gauge", x.Name, x.Kind)
	}
	if k, ok := kinds[x.Name]; ok && k != x.Kind {
		t.Errorf("series %s is a %s and a %s", x.Name, k, x.Kind)
	}
	kinds[x.Name] = x.Kind
	if math.IsNaN(x.Value) || math.IsInf(x.Value, 0) || x.Value < 0 {
		t.Errorf("series %s{%s} is %v", x.Name, x.Labels, x.Value)
	}
	pairs := make([]string, 0, 8)
	for _, kv := range x.Labels.Pairs() {
		pairs = append(pairs, kv[0], kv[1])
	}
	if record.MakeLabels(pairs...) != x.Labels {
		t.Errorf("labels %q of %s are not canonical; use record.MakeLabels", x.Labels, x.Name)
	}
}

// reuse checks that Read appends, and that later reads do not change earlier samples.
func reuse(t *testing.T, s Subject) {
	p := open(t, s.Collector, s.Scopes(t, Restless(t)))
	mark := record.Sample{Name: "mark", Value: 42}
	first, err := p.Read([]record.Sample{mark})
	if err != nil {
		t.Fatal(err)
	}
	if len(first) < 2 || first[0] != mark {
		t.Fatalf("Read did not append to dst: %v", first)
	}
	kept := make([]record.Sample, len(first))
	for i, x := range first { // deep: the texts too
		x.Name, x.Labels = strings.Clone(x.Name), record.Labels(strings.Clone(string(x.Labels)))
		kept[i] = x
	}
	for range 3 {
		if _, err := p.Read(nil); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(first, kept) {
		t.Error("later reads changed samples that an earlier one gave")
	}
}

func closing(t *testing.T, s Subject) {
	scopes := s.Scopes(t, Restless(t))
	before := descriptors(t)
	for range 3 {
		p, err := s.Collector.Open(context.Background(), scopes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Read(nil); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := p.Close(); err != nil {
				t.Errorf("Close is idempotent and cannot fail here: %v", err)
			}
		}
		if _, err := p.Read(nil); err == nil {
			t.Error("Read after Close gives no error")
		}
	}
	// The other end of a connection may close its descriptor a moment later.
	after := descriptors(t)
	for end := time.Now().Add(time.Minute); after > before && time.Now().Before(end); after = descriptors(t) {
		time.Sleep(10 * time.Millisecond)
	}
	if after > before {
		t.Errorf("%d descriptors before, %d after Close", before, after)
	}
}

// nothing checks that a probe can be opened and read in a trial without sandboxes, and with
// a sandbox that has just died.
func nothing(t *testing.T, c collect.Collector) {
	server := sandbox.Scope{Endpoint: "server"}
	for _, scopes := range [][]sandbox.LocalScope{nil, {{Scope: server}}, {{Scope: server, Pids: []int{1 << 22}}}} {
		p, err := c.Open(context.Background(), scopes)
		if err != nil {
			t.Errorf("Open(%v): %v", scopes, err)
			continue
		}
		if _, err := p.Read(nil); err != nil {
			t.Errorf("Read of %v: %v", scopes, err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("Close of %v: %v", scopes, err)
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}
