package proc_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	collectcgroup "tare/collect/cgroup"
	"tare/collect/collecttest"
	"tare/collect/proc"
	"tare/host/cgroup"
	"tare/host/state/statetest"
	"tare/record"
	"tare/sandbox"
)

// TestRolesAddUpOnHost burns CPU in a real cgroup, in threads and processes of
// many lengths of life, and compares the sum over roles with what
// the kernel charged.
func TestRolesAddUpOnHost(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		seen   float64 // at least this part has a thread's role
	}{
		"processes of a few ms": {`while :; do sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; done`, 0},
		"processes of 0.3 s":    {`while :; do timeout 0.3 sh -c 'while :; do :; done'; done`, 0.6}, // up to 0.1 s of each is after its last reading
		"threads of 20 ms":      {"", 0.1},
		"one that stays":        {`while :; do :; done`, 0.95},
	} {
		for _, way := range []proc.Way{proc.BPF, proc.Files} {
			t.Run(name+"/"+string(way), func(t *testing.T) { addUp(t, way, c.script, c.seen) })
		}
	}
}

func addUp(t *testing.T, way proc.Way, script string, seen float64) {
	statetest.HostLock(t)
	h, err := cgroup.Detect()
	if err != nil {
		t.Skip("no control groups on this host: ", err)
	}
	collector := proc.NewWith(proc.Options{Way: way})
	if err := collector.Check(); err != nil {
		t.Skip(err)
	}
	statetest.Unchanged(t)
	g, err := h.Create("tare/proc-add-up", cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	start := func() {}
	if script == "" {
		if err := g.Add(collecttest.Restless(t)); err != nil {
			t.Fatal(err)
		}
	} else {
		start = shell(t, g, script)
	}
	p, err := collector.Open(context.Background(), []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Cgroups: []string{g.Rel()}}})
	if err != nil && way == proc.BPF {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before := charged(t, g.Rel())
	start()
	// The test itself may have to wait for a processor, so the last reading lies
	// between two of the kernel's figure.
	var dst []record.Sample
	least := 0.0
	// A busy host gives little of a processor: wait until enough has been used.
	for n := 0; n < 10 || least < 0.5 && n < 600; n++ {
		time.Sleep(100 * time.Millisecond)
		least = charged(t, g.Rel()) - before
		if dst, err = p.Read(dst[:0]); err != nil {
			t.Fatal(err)
		}
	}
	total := charged(t, g.Rel()) - before
	sum, rest := 0.0, -1.0
	for _, s := range dst {
		if s.Name != proc.CPUTime || s.Labels.Get("end") != "server" {
			continue
		}
		sum += s.Value
		if s.Labels.Get("role") == string(record.RoleUnattributed) {
			rest = s.Value
		}
	}
	t.Logf("charged %.3f s, roles %.3f s, of it unattributed %.3f s", total, sum, rest)
	if rest < 0 {
		t.Fatal("no role unattributed")
	}
	if total < 0.2 {
		t.Fatalf("only %.3f s were used", total)
	}
	if slack := max(0.05*total, 0.02); sum < least-slack || sum > total+slack {
		t.Errorf("roles add up to %.3f s, the cgroup was charged %.3f to %.3f s", sum, least, total)
	}
	if got := (sum - rest) / total; got < seen {
		t.Errorf("only %.0f %% of the CPU has a thread's role, want %.0f %%", got*100, seen*100)
	}
}

// shell puts a shell into the group and returns what starts its script.
func shell(t *testing.T, g *cgroup.Group, script string) (start func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read go; "+script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := g.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
	}
}

// charged is the CPU time of a cgroup in seconds, by the kernel.
func charged(t *testing.T, rel string) float64 {
	t.Helper()
	p, err := collectcgroup.New().Open(context.Background(), []sandbox.LocalScope{{Cgroups: []string{rel}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got, err := p.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got {
		if s.Name == "cgroup_cpu" {
			return s.Value
		}
	}
	t.Skip("the kernel charges no CPU to cgroups here: no cpuacct.usage and no cpu.stat")
	return 0
}
