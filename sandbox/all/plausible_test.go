package all

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/host/cgroup"
	"tare/host/rootfs"
	"tare/host/state/statetest"
	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/sandboxtest"
	syscalls "tare/workload/syscall"
)

// These tests hold the real sandboxes to what must be true of them on any
// machine: where they fail, figures that tare prints are not to be believed.
//
// The machine may be busy, so what is compared alternates in short turns, and a
// doubtful one has more turns, up to a bound.

// TestMain lets the test binary be /tare in the sandboxes.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "syscall" {
		os.Exit(syscalls.Main(os.Args[3:], os.Stdout, os.Stderr))
	}
	os.Exit(sandboxtest.Main(m.Run))
}

// host is the kinds that work on this host.
type host struct {
	kinds map[string]sandbox.Kind
	root  string
}

// take takes the host. A kind that does not work here skips the test, with what it says.
func take(t *testing.T, names []string, tools ...string) host {
	t.Helper()
	if testing.Short() {
		t.Skip("seconds of load are too long for -short")
	}
	statetest.HostLock(t)
	t.Cleanup(func() {
		for thing := range statetest.Snapshot(t) {
			if strings.Contains(thing, fmt.Sprint("-", os.Getpid())) && strings.Contains(thing, "plausible-") {
				t.Errorf("left behind: %s", thing)
			}
		}
	})
	h := host{kinds: map[string]sandbox.Kind{}}
	for _, k := range Kinds(Env{StateDir: "/var/lib/tare/test-plausible"}) {
		if !slices.Contains(names, k.Name()) {
			continue
		}
		if err := k.Check(t.Context()); err != nil {
			t.Skip(err)
		}
		h.kinds[k.Name()] = k
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := rootfs.Build(t.Context(), filepath.Join(os.TempDir(), "tare-test-rootfs"), self, tools)
	if err != nil {
		t.Fatal(err)
	}
	h.root = tree.Path
	return h
}

func (h host) spec(t *testing.T, name string) sandbox.Spec {
	t.Helper()
	return sandbox.Spec{Want: sandbox.Want{Name: fmt.Sprintf("plausible-%s-%d", name, os.Getpid())}, Dir: t.TempDir(), Root: h.root}
}

func (h host) start(t *testing.T, kind string) sandbox.Instance {
	t.Helper()
	inst, err := h.kinds[kind].Start(t.Context(), h.spec(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := inst.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return inst
}

func output(t *testing.T, inst sandbox.Instance, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	exit, err := inst.Exec(t.Context(), sandbox.Command{Args: args, Env: []string{"GODEBUG=asyncpreemptoff=1"}, Stdout: &out, Stderr: &said})
	if err != nil || exit.Code != 0 {
		t.Fatalf("%q: %+v, %v\n%s%s", args, exit, err, &out, &said)
	}
	return out.String()
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// TestComputingCostsNothing: what runs in user space alone takes as much CPU time in a
// container as natively, within 5 %, and in gVisor within 20 %: by the median of the turns'
// ratios, or by the cheapest turn of each, which is the one that neighbours disturbed least.
// The CPU time is what the kernel charges to the sandbox, so that waiting for a processor does
// not count, less what a run takes that computes nothing. On a busy host gVisor is charged
// a tenth more: it works at each switch to another program. Where the native turns among
// themselves are not within that, more is allowed.
func TestComputingCostsNothing(t *testing.T) {
	const atLeast, atMost = 3, 8
	sandboxes, within := []string{"runc", "runsc-systrap"}, map[string]float64{"runc": 0.05, "runsc-systrap": 0.2}
	h := take(t, append([]string{"process"}, sandboxes...), "sysbench")
	insts := map[string]sandbox.Instance{}
	for name := range h.kinds {
		insts[name] = h.start(t, name)
	}
	run := func(name string, events int) float64 {
		group := insts[name].Scope().Cgroups[0]
		before := used(t, group)
		output(t, insts[name], "sysbench", "cpu", "--threads=1", "--cpu-max-prime=10000", "--events="+strconv.Itoa(events), "--time=0", "run")
		return used(t, group) - before
	}
	cost := func(name string) float64 {
		nothing := run(name, 1)
		return run(name, 1500) - nothing
	}
	ratios, costs := map[string][]float64{}, map[string][]float64{}
	near := func(ratio, by float64) bool { return ratio >= 1-by && ratio <= 1+by }
	good := func(least float64) bool {
		for _, name := range sandboxes {
			by := max(least, within[name])
			if !near(median(ratios[name]), by) && !near(slices.Min(costs[name])/slices.Min(costs["process"]), by) {
				return false
			}
		}
		return true
	}
	turns := 0
	for turns < atLeast || turns < atMost && !good(0) {
		// The order turns round.
		order := append([]string{"process"}, sandboxes...)
		if turns%2 == 1 {
			slices.Reverse(order)
		}
		got := map[string]float64{}
		for _, name := range order {
			got[name] = cost(name)
			costs[name] = append(costs[name], got[name])
		}
		for _, name := range sandboxes {
			ratios[name] = append(ratios[name], got[name]/got["process"])
		}
		turns++
	}
	for _, name := range sandboxes {
		t.Logf("%s computes in %.3f of the native CPU time (median of %d turns: %.3f)", name, median(ratios[name]), turns, ratios[name])
	}
	native := slices.Sorted(slices.Values(costs["process"]))
	spread := (native[len(native)*3/4] - native[len(native)/4]) / median(native)
	if !good(min(spread, 0.5)) {
		t.Errorf("after %d turns not within %v; native turns spread by %.0f %%: %.3f s", turns, within, spread*100, native)
	}
}

// used reads the CPU time that is charged to a control group, in seconds: cpuacct.usage (cgroup
// version 1) or usage_usec of cpu.stat (2).
func used(t *testing.T, rel string) float64 {
	t.Helper()
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	if dir, ok := h.Path("cpuacct", rel); ok {
		if b, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage")); err == nil {
			ns, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
			if err != nil {
				t.Fatal(err)
			}
			return ns / 1e9
		}
	}
	if dir, ok := h.Path("", rel); ok {
		if b, err := os.ReadFile(filepath.Join(dir, "cpu.stat")); err == nil {
			var us float64
			if _, err := fmt.Sscanf(string(b), "usage_usec %g", &us); err == nil {
				return us / 1e6
			}
		}
	}
	t.Skip("this host does not say how much CPU time a control group has used")
	return 0
}

// TestCallsCost: a system call is far dearer under gVisor than natively, on each
// platform. The least of the turns counts: neighbours can only add. Which platform is the
// dearer is not asked: where others use the processors, systrap's threads have to be woken,
// and a call may cost as much as under ptrace.
func TestCallsCost(t *testing.T) {
	const turns, dearer = 3, 3
	order := []string{"process", "runsc-systrap", "runsc-ptrace"}
	h := take(t, order)
	w := syscalls.Workload{}
	v, err := param.Fill(w.Params(), param.Values{"call": "getpid", "warmup": "50ms", "duration": "200ms"})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := w.Roles(v)
	if err != nil {
		t.Fatal(err)
	}
	insts := map[string]sandbox.Instance{}
	for _, name := range order {
		insts[name] = h.start(t, name)
	}
	least := map[string]float64{}
	for range turns {
		for _, name := range order {
			r, err := w.Parse(roles[0].Name, v, strings.NewReader(output(t, insts[name], roles[0].Args...)))
			if err != nil {
				t.Fatal(err)
			}
			trial := record.Trial{Samples: r.Samples}
			cost, ok := trial.Sample("time_per_call")
			if !ok {
				t.Fatalf("no time_per_call in %+v", r.Samples)
			}
			if before, ok := least[name]; !ok || cost < before {
				least[name] = cost
			}
		}
	}
	for _, name := range order {
		t.Logf("getpid in %s: %.3g us", name, least[name]*1e6)
		if name != "process" && least[name] < dearer*least["process"] {
			t.Errorf("a call in %s takes %g s, natively %g s: less than %d times as much", name, least[name], least["process"], dearer)
		}
	}
}

// TestGVisorTakesMoreMemory: an idle gVisor sandbox takes more of the host than
// an idle container. What the kernel charges to it is compared, since what the
// whole host has left is also other programs' doing.
func TestGVisorTakesMoreMemory(t *testing.T) {
	const sandboxes = 3
	order := []string{"runc", "runsc-systrap"}
	h := take(t, order)
	each := map[string]float64{}
	for _, kind := range order {
		for i := range sandboxes {
			each[kind] += idle(t, h, kind, i) / sandboxes
		}
		t.Logf("an idle sandbox of %s is charged %.1f MiB", kind, each[kind]/(1<<20))
	}
	if each["runsc-systrap"] <= each["runc"] {
		t.Errorf("runsc takes no more than runc: %v bytes", each)
	}
}

// idle launches a sandbox that does nothing, and returns the bytes that it is charged.
func idle(t *testing.T, h host, kind string, i int) float64 {
	t.Helper()
	l, ok := h.kinds[kind].(sandbox.Launcher)
	if !ok {
		t.Fatalf("%s is no Launcher", kind)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	spec := h.spec(t, fmt.Sprint(kind, i))
	up, ended := make(notice, 1), make(chan error, 1)
	go func() {
		_, err := l.Launch(ctx, spec, sandbox.Command{Args: []string{"/tare-pause"}, Stdout: up}, sandbox.Phased)
		ended <- err
	}()
	select {
	case <-up:
	case err := <-ended:
		t.Fatalf("%s ended by itself: %v", spec.Name, err)
	}
	time.Sleep(100 * time.Millisecond)
	bytes := charged(t, "tare/"+spec.Name)
	cancel()
	<-ended
	return bytes
}

// notice tells of a write.
type notice chan struct{}

func (n notice) Write(p []byte) (int, error) {
	select {
	case n <- struct{}{}:
	default:
	}
	return len(p), nil
}

// charged reads memory.usage_in_bytes (cgroup version 1) or memory.current (2).
func charged(t *testing.T, rel string) float64 {
	t.Helper()
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	for _, f := range []struct{ controller, file string }{{"memory", "memory.usage_in_bytes"}, {"memory", "memory.current"}, {"", "memory.current"}} {
		dir, ok := h.Path(f.controller, rel)
		if !ok {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f.file))
		if err != nil {
			failed = err
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	t.Skipf("this host does not say how much memory a control group has: %v", failed)
	return 0
}
