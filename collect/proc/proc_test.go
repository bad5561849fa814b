package proc

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/collect"
	"tare/collect/collecttest"
	"tare/internal/held"
	"tare/record"
	"tare/sandbox"
)

func TestMain(m *testing.M) { os.Exit(collecttest.Main(m)) }

// TestContract: both ways of reading threads keep the same contract.
func TestContract(t *testing.T) {
	for _, way := range []Way{BPF, Files} {
		t.Run(string(way), func(t *testing.T) {
			if way == BPF {
				needBPF(t)
			}
			collecttest.Run(t, withProxy(Options{Way: way}))
		})
	}
}

// needBPF skips where the host lets nobody load the program.
func needBPF(t testing.TB) {
	t.Helper()
	p, err := NewWith(Options{Way: BPF}).Open(context.Background(), nil)
	if err != nil {
		t.Skip(err)
	}
	_ = p.Close()
}

// TestContractWithoutHolding takes the way for hosts with a low limit of open
// files.
func TestContractWithoutHolding(t *testing.T) {
	collecttest.Run(t, withProxy(Options{Held: 1, Way: Files}))
}

// withProxy is a subject that also reads a pod that is not the study's: this process, which listens on a port.
func withProxy(o Options) collecttest.Subject {
	o.Members = func(string) ([]int, error) { return []int{os.Getpid()}, nil }
	o.Paths = func(string, string) (string, bool) { return "", false }
	return collecttest.Subject{Collector: NewWith(o), Scopes: func(t *testing.T, pid int) []sandbox.LocalScope {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return []sandbox.LocalScope{
			{Scope: sandbox.Scope{Endpoint: "server"}, Pids: []int{pid}},
			{Scope: sandbox.Scope{Endpoint: "proxy"}, Cgroups: []string{"proxy"}, Outside: true},
		}
	}}
}

// world is a proc file system on disk with a clock.
type world struct {
	t    *testing.T
	root string
	now  time.Duration
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, root: t.TempDir()}
	w.file("self/schedstat", "1 2 3\n")
	return w
}

func (w *world) file(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.write(path, []byte(text))
}

func (w *world) write(path string, b []byte) {
	w.t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// thread writes a thread, in milliseconds run and waited.
func (w *world) thread(pid, tid int, comm string, run, wait int) {
	w.t.Helper()
	dir := fmt.Sprintf("%d/task/%d/", pid, tid)
	w.file(dir+"comm", comm+"\n")
	w.file(dir+"schedstat", fmt.Sprintf("%d000000 %d000000 61\n", run, wait))
	if pid == tid {
		w.file(fmt.Sprintf("%d/comm", pid), comm+"\n")
	}
}

func (w *world) kill(name string) {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.root, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open(o Options, scopes ...sandbox.LocalScope) collect.Probe {
	w.t.Helper()
	o.Root, o.Now = w.root, func() time.Duration { return w.now }
	if o.Self == 0 {
		o.Self = -1
	}
	if o.Members == nil {
		o.Members = func(string) ([]int, error) { return nil, nil }
	}
	if o.Spent == nil {
		o.Spent = func() time.Duration { return 0 }
	}
	// All that is there begins its life when the probe is opened.
	files, err := filepath.Glob(filepath.Join(w.root, "*/task/*/schedstat"))
	if err != nil {
		w.t.Fatal(err)
	}
	texts := map[string][]byte{}
	for _, f := range files {
		if texts[f], err = os.ReadFile(f); err != nil {
			w.t.Fatal(err)
		}
		w.write(f, []byte("0 0 0\n"))
	}
	p, err := NewWith(o).Open(context.Background(), scopes)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = p.Close() })
	for f, b := range texts {
		w.write(f, b)
	}
	return p
}

// read returns the samples as "name{labels}" to the value, in milliseconds for
// times; zero when there is none.
func read(t *testing.T, p collect.Probe) map[string]int {
	t.Helper()
	got, err := p.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, s := range got {
		v := s.Value
		if s.Unit == record.Second {
			v = v*1000 + 0.5
		}
		out[fmt.Sprintf("%s{%s}", s.Name, s.Labels)] = int(v)
	}
	delete(out, "collector_cpu{collector=proc}")
	return out
}

func want(t *testing.T, got map[string]int, key string, value int) {
	t.Helper()
	if v, ok := got[key]; !ok || v != value {
		t.Errorf("%s = %d (there: %v), want %d; all: %v", key, v, ok, value, got)
	}
}

func byComm() sandbox.ThreadRoles {
	return sandbox.ThreadRoles{
		{Role: record.RoleSentry, Comm: "runsc-sandbox"},
		{Role: record.RoleVCPU, Comm: "CPU 0/KVM"},
		{Role: record.RoleGofer, Args: []string{"gofer"}},
	}
}

func TestRolesAndEnds(t *testing.T) {
	w := newWorld(t)
	w.thread(10, 10, "runsc-sandbox", 100, 5)
	w.thread(10, 11, "runsc-sandbox", 30, 5)
	w.thread(20, 20, "exe", 7, 1)
	w.file("20/cmdline", "runsc\x00gofer\x00--x\x00")
	w.thread(30, 30, "fio", 50, 2)
	w.thread(99, 99, "tare", 40, 4)
	members := func(cg string) ([]int, error) {
		return map[string][]int{"tare/a": {10, 20}, "tare/b": {30}}[cg], nil
	}
	p := w.open(Options{Self: 99, Members: members},
		sandbox.LocalScope{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{"tare/a"}, Pids: []int{10}, Roles: byComm()},
		sandbox.LocalScope{Scope: sandbox.Scope{Endpoint: "client"}, Cgroups: []string{"tare/b"}})
	got := read(t, p)
	want(t, got, "cpu_time{end=server,role=sentry}", 130)
	want(t, got, "run_wait{end=server,role=sentry}", 10)
	want(t, got, "threads{end=server,role=sentry}", 2)
	want(t, got, "cpu_time{end=server,role=gofer}", 7)
	want(t, got, "cpu_time{end=client,role=workload}", 50)
	want(t, got, "cpu_time{role=harness}", 40)
	want(t, got, "thread_cpu_time{end=server,role=sentry,thread=runsc-sandbox,tid=11}", 30)
	for k := range got {
		if strings.Contains(k, "thread=tare") || strings.Contains(k, "thread=exe") {
			t.Errorf("%s is listed: harness threads, and those under 10 ms, are not", k)
		}
	}
}

func TestThreadsComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.thread(10, 10, "a", 20, 0)
	w.thread(10, 11, "b", 30, 3)
	p := w.open(Options{}, sandbox.LocalScope{Pids: []int{10}})
	const sum = "cpu_time{role=workload}"
	want(t, read(t, p), sum, 50)

	w.thread(10, 12, "c", 5, 0)
	w.now += time.Millisecond
	want(t, read(t, p), sum, 55) // found at once, with what it used before

	w.kill("10/task/11")
	w.now += time.Second
	got := read(t, p)
	want(t, got, sum, 55) // its 30 ms stay
	want(t, got, "run_wait{role=workload}", 3)
	want(t, got, "threads{role=workload}", 2)

	w.kill("10")
	w.now += time.Second
	got = read(t, p)
	want(t, got, sum, 55)
	want(t, got, "threads{role=workload}", 0)
}

// TestAlone: a process that belongs to a sandbox without its descendants is read without them.
func TestAlone(t *testing.T) {
	w := newWorld(t)
	w.thread(10, 10, "shim", 20, 0)
	w.thread(11, 11, "other", 20, 0)
	w.file("10/task/10/children", "11 ")
	p := w.open(Options{}, sandbox.LocalScope{Alone: []int{10}, Roles: sandbox.ThreadRoles{{Role: record.RoleShim, Comm: "shim"}}})
	w.thread(10, 10, "shim", 25, 0)
	w.thread(11, 11, "other", 90, 0)
	w.now += time.Second
	got := read(t, p)
	want(t, got, "cpu_time{role=shim}", 25)
	want(t, got, "threads{role=shim}", 1)
	if _, there := got["cpu_time{role=workload}"]; there {
		t.Error("a child of the process is read too")
	}
}

// TestSearchesBackOff: a search that takes long is made seldom, at least once a
// second.
func TestSearchesBackOff(t *testing.T) {
	for _, c := range []struct {
		cost, pause time.Duration // of each search; until the next
	}{{400 * time.Microsecond, 0}, {time.Millisecond, 200 * time.Millisecond}, {time.Second, time.Second}} {
		w := newWorld(t)
		w.thread(10, 10, "a", 20, 0)
		var spent time.Duration
		p := w.open(Options{Spent: func() time.Duration { spent += c.cost; return spent }}, sandbox.LocalScope{Pids: []int{10}})
		for range 50 { // until the smoothed cost is the true one
			w.now += time.Second
			read(t, p)
		}
		const sum = "cpu_time{role=workload}"
		w.thread(10, 11, "b", 5, 0)
		if c.pause > 0 {
			w.now += c.pause * 9 / 10
			want(t, read(t, p), sum, 20)
		}
		w.now += c.pause / 5
		want(t, read(t, p), sum, 25)
	}
}

// TestRemainder: roles and unattributed add up to what the cgroups were charged.
func TestRemainder(t *testing.T) {
	for _, v := range []struct{ controller, file, text string }{
		{"cpuacct", "cpuacct.usage", "%d000000\n"}, {"", "cpu.stat", "usage_usec %d000\nuser_usec 1\n"},
	} {
		w := newWorld(t)
		charged := func(ms int) { w.file("cg/"+v.file, fmt.Sprintf(v.text, ms)) }
		charged(1000)
		w.thread(10, 10, "a", 0, 0)
		pids := []int{10}
		p := w.open(Options{
			Members: func(string) ([]int, error) { return pids, nil },
			Paths: func(controller, rel string) (string, bool) {
				return filepath.Join(w.root, "cg"), controller == v.controller && rel == "tare/a"
			},
		}, sandbox.LocalScope{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{"tare/a"}, Pids: []int{30}})
		step := func(ms, seen, rest int) {
			t.Helper()
			charged(ms)
			got := read(t, p)
			want(t, got, "cpu_time{end=server,role=workload}", seen)
			want(t, got, "cpu_time{end=server,role=unattributed}", rest)
		}
		w.thread(10, 10, "a", 30, 0)
		step(1030, 30, 0)
		w.thread(30, 30, "outside", 7, 0) // not charged to the cgroup
		step(1050, 37, 20)                // 20 by somebody unseen
		w.thread(20, 20, "b", 25, 0)
		pids = []int{10, 20}
		step(1070, 62, 20) // 25 seen of 20 charged: the reading was later
		step(1075, 62, 20)
		w.kill("20")
		pids = []int{10}
		step(1085, 62, 30)
	}
}

func TestNumberUsedAgain(t *testing.T) {
	// Without a held descriptor a new thread of the same number is seen
	// through the old one's path.
	w := newWorld(t)
	w.thread(10, 10, "a", 100, 10)
	w.thread(10, 11, "b", 200, 20)
	p := w.open(Options{Held: 1}, sandbox.LocalScope{Pids: []int{10}})
	want(t, read(t, p), "cpu_time{role=workload}", 300)
	w.thread(10, 10, "a", 1, 1)
	w.thread(10, 11, "b", 2, 2)
	got := read(t, p)
	want(t, got, "cpu_time{role=workload}", 303)
	want(t, got, "run_wait{role=workload}", 33)

	// With a search between them it is a new thread, under the old labels.
	w.kill("10/task/11")
	w.now += time.Second
	read(t, p)
	w.thread(10, 11, "b", 50, 0)
	w.now += time.Second
	got = read(t, p)
	want(t, got, "cpu_time{role=workload}", 353)
	const one = "thread_cpu_time{role=workload,thread=b,tid=11}"
	if got[one] < 202 {
		t.Errorf("%s fell to %d", one, got[one])
	}
}

func TestExecChangesRole(t *testing.T) {
	w := newWorld(t)
	w.thread(10, 10, "runc:[2:INIT]", 15, 0)
	w.file("10/cmdline", "runc\x00gofer\x00")
	p := w.open(Options{}, sandbox.LocalScope{Pids: []int{10}, Roles: byComm()})
	want(t, read(t, p), "cpu_time{role=gofer}", 15)
	w.thread(10, 10, "runsc-sandbox", 40, 0)
	w.file("10/cmdline", "runsc-sandbox\x00boot\x00")
	w.now += time.Second
	got := read(t, p)
	want(t, got, "cpu_time{role=gofer}", 15)
	want(t, got, "cpu_time{role=sentry}", 25)
	want(t, got, "threads{role=gofer}", 0)
	want(t, got, "threads{role=sentry}", 1)
	// And the name of a thread that is set late.
	w.thread(10, 11, "qemu", 11, 0)
	w.now += time.Second
	want(t, read(t, p), "threads{role=workload}", 1)
	w.thread(10, 11, "CPU 0/KVM", 12, 0)
	w.now += time.Second
	want(t, read(t, p), "threads{role=vcpu}", 1)
}

func TestDescendants(t *testing.T) {
	for _, way := range []string{"children", "stat"} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t)
			for i, pid := range []int{10, 20, 30, 40} {
				w.thread(pid, pid, "p", 1<<i, 0)
			}
			if way == "children" {
				w.thread(10, 11, "q", 16, 0)
				w.file("10/task/10/children", "")
				w.file("10/task/11/children", "20 ")
				w.file("20/task/20/children", "30 ")
				w.file("30/task/30/children", "")
			} else {
				w.file("10/stat", "10 (p) S 1 1 1 0")
				w.file("20/stat", "20 (a b) c) S 10 1 1 0")
				w.file("30/stat", "30 (p) R 20 1 1 0")
				w.file("40/stat", "40 (p) S 1 1 1 0")
				w.thread(10, 11, "q", 16, 0)
			}
			p := w.open(Options{}, sandbox.LocalScope{Pids: []int{10}})
			got := read(t, p)
			want(t, got, "cpu_time{role=workload}", 1+2+4+16) // not 40's
			want(t, got, "threads{role=workload}", 4)
		})
	}
}

func TestListingIsBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 100 {
		w.thread(10, 10+i, "worker", 10, 0)
		w.thread(5000, 5000+i, "CPU 0/KVM", 9, 0)
	}
	p := w.open(Options{}, sandbox.LocalScope{Pids: []int{10, 5000}, Roles: byComm()})
	n := 0
	for k := range read(t, p) {
		if strings.HasPrefix(k, "thread_cpu_time{") {
			n++
		}
	}
	if n != listWorkload {
		t.Errorf("%d threads are listed, want %d", n, listWorkload)
	}
}

// TestSumIsWhatWasUsed compares the sum with the clock of the thread that used
// it, on this host.
func TestSumIsWhatWasUsed(t *testing.T) {
	if err := New().Check(); err != nil {
		t.Skip(err)
	}
	p, err := New().Open(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a := harness(t, p)
	var m held.Meter
	m.Start()
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
	}
	m.Stop()
	// The other threads of the test use a little, and the kernel's figure of a
	// running thread may be late by a tick.
	if d := harness(t, p) - a - m.Seconds(); d < -0.02 || d > 0.1 {
		t.Errorf("the sum is %.3f s more than the %.3f s that one thread used", d, m.Seconds())
	}
}

func harness(t *testing.T, p collect.Probe) float64 {
	got, err := p.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got {
		if s.Name == CPUTime && s.Labels == "role=harness" {
			return s.Value
		}
	}
	t.Fatal("no role harness")
	return 0
}

func TestCheckSaysWhatIsMissing(t *testing.T) {
	err := NewWith(Options{Root: t.TempDir()}).Check()
	if err == nil || !strings.Contains(err.Error(), "CONFIG_SCHED_INFO") {
		t.Errorf("Check = %v", err)
	}
	w := newWorld(t)
	w.file("self/schedstat", "gibberish")
	if err := NewWith(Options{Root: w.root}).Check(); err == nil {
		t.Error("gibberish passes Check")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"schedstat", "stat", "cmdline", "children"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("1 (a) b) S 2"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if run, _, ok := parseSchedstat(b); ok && !strings.Contains(strings.TrimLeft(string(b), " \t0"), strings.TrimLeft(strconv.FormatUint(run, 10), "0")) {
			t.Errorf("parseSchedstat(%q) = %d", b, run)
		}
		if pid, ok := parseParent(b); ok && (pid < 0 || pid > 1<<22) {
			t.Errorf("parseParent(%q) = %d", b, pid)
		}
		for _, pid := range appendPids(nil, b) {
			if pid <= 0 || pid > 1<<22 {
				t.Errorf("appendPids(%q) has %d", b, pid)
			}
		}
		splitArgs(b)
	})
}

func TestParseCaptured(t *testing.T) {
	get := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if run, wait, ok := parseSchedstat(get("schedstat")); !ok || run == 0 || wait == 0 {
		t.Errorf("schedstat: %d %d %v", run, wait, ok)
	}
	if pid, ok := parseParent(get("stat")); !ok || pid == 0 {
		t.Errorf("stat: %d %v", pid, ok)
	}
	if args := splitArgs(get("cmdline")); len(args) != 3 || args[0] != "bash" || args[1] != "-c" {
		t.Errorf("cmdline: %q", args)
	}
	if pids := appendPids(nil, get("children")); len(pids) != 2 {
		t.Errorf("children: %v", pids)
	}
}
