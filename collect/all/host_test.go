package all

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"tare/collect"
	"tare/collect/collecttest"
	"tare/host/cgroup"
	"tare/host/state/statetest"
	"tare/record"
	"tare/sandbox"
)

func TestMain(m *testing.M) { os.Exit(collecttest.Main(m, append(Collectors(), Counting())...)) }

// group makes a cgroup with a limit for the test.
func group(t *testing.T, l cgroup.Limits) *cgroup.Group {
	t.Helper()
	statetest.HostLock(t)
	h, err := cgroup.Detect()
	if err != nil {
		t.Skipf("no cgroups: %v", err)
	}
	g, err := h.Create(fmt.Sprintf("tare/collect-%d", os.Getpid()), l)
	if err != nil {
		t.Skipf("cgroups cannot be made here: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

// TestContractInARealCgroup tries every collector on threads that come and go
// in a limited cgroup of this host, in this process and in another one.
func TestContractInARealCgroup(t *testing.T) {
	g := group(t, cgroup.Limits{CPU: 0.3, Memory: 256 << 20})
	all := map[string]collect.Collector{}
	for _, c := range append(Collectors(), Counting()) {
		all[c.Name()] = c
		if c.Name() != "guest" { // it reads a stream of this process
			all[c.Name()+" elsewhere"] = collecttest.Elsewhere(c, 50*time.Millisecond)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			c := all[name]
			collecttest.Run(t, collecttest.Subject{
				Collector: c,
				Scopes: func(t *testing.T, pid int) []sandbox.LocalScope {
					if err := g.Add(pid); err != nil {
						t.Fatal(err)
					}
					return []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{g.Rel()}, Limited: g.Rel()}}
				},
				Partial: "which files are there depends on the kernel",
			})
		})
	}
}

// TestCollectorsAgree lets two shells burn CPU under a limit, and compares what
// the thread collector, the cgroup collector and the limit say.
func TestCollectorsAgree(t *testing.T) {
	const limit, length = 0.1, 2 * time.Second
	g := group(t, cgroup.Limits{CPU: limit})
	for range 2 {
		cmd := exec.Command("sh", "-c", `read go; x=$(head -c 1000000 /dev/zero | tr '\0' x); echo ready; while :; do :; done`)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Skipf("no shell: %v", err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // perhaps dead already
			_ = cmd.Wait()         // killed
		})
		if err := g.Add(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("the shell said %q, %v", line, err)
		}
	}
	scopes := []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{g.Rel()}, Limited: g.Rel()}}
	var probes []collect.Probe
	for _, c := range Collectors() {
		p, err := c.Open(context.Background(), scopes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		probes = append(probes, p)
	}
	before, start := read(t, probes), time.Now()
	time.Sleep(length)
	after, took := read(t, probes), time.Since(start).Seconds()
	diff := func(key string) float64 { return after[key] - before[key] }

	threads, groups := diff("cpu_time{end=server,role=workload}"), diff("cgroup_cpu{end=server}")
	if groups <= 0 || groups > 1.3*limit*took+0.1 {
		t.Errorf("cgroup: %.3f s of CPU in %.3f s under a limit of %v cores", groups, took, limit)
	}
	if d := threads - groups; d > 0.05 || d < -0.05 {
		t.Errorf("threads: %.3f s, cgroup: %.3f s of CPU", threads, groups)
	}
	switch {
	case diff("cgroup_throttled_time{end=server}") > 0 && diff("cgroup_throttled_periods{end=server}") > 0:
	case groups < 0.95*limit*took:
		t.Logf("this host was too busy for two loops to reach %v cores: throttling was not tried", limit)
	default:
		t.Errorf("two busy loops under %v cores were not throttled: %v", limit, after)
	}
	if n := after["threads{end=server,role=workload}"]; n != 2 {
		t.Errorf("%v threads, want 2", n)
	}
	if n := after["cgroup_memory{end=server}"]; n < 2_000_000 {
		t.Errorf("%v bytes of memory", n)
	}
	if diff("system_cpu{mode=user}")+diff("system_cpu{mode=system}") < 0.5*groups {
		t.Errorf("the machine used less than the cgroup: %v, %v", before, after)
	}
}

func read(t *testing.T, probes []collect.Probe) map[string]float64 {
	t.Helper()
	var all []record.Sample
	for _, p := range probes {
		var err error
		if all, err = p.Read(all); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]float64{}
	for _, s := range all {
		out[fmt.Sprintf("%s{%s}", s.Name, s.Labels)] = s.Value
	}
	return out
}
