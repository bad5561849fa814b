package observer

import (
	"context"
	"crypto/rand"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tare/cluster/control"
	"tare/collect"
	cgroups "tare/collect/cgroup"
	"tare/host/cgroup"
	"tare/host/state/statetest"
	"tare/sandbox"
)

// observed starts a coordinator's hub and the observer of node n1 on this host.
func observed(t *testing.T) (nodes Nodes, leave func(), ended chan error) {
	t.Helper()
	coordinator, agents, _, err := control.NewStudy()
	if err != nil {
		t.Fatal(err)
	}
	hub, err := control.NewHub(coordinator, func(c net.Conn) { _ = c.Close() })
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { _ = hub.Serve(l) }()
	token := rand.Text()
	nodes = Nodes{"n1": hub.Await(Name("n1"), token, Waiting)}
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() {
		ended <- Serve(ctx, func(ctx context.Context) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			return control.Dial(ctx, agents, l.Addr().String(), Name("n1"), token, "127.0.0.1")
		}, []collect.Collector{cgroups.New()})
	}()
	return nodes, func() { cancel(); _ = l.Close() }, ended
}

// TestObserver: a node tells its description, a pod's limits in force and its figures, as often as
// it is asked.
func TestObserver(t *testing.T) {
	statetest.HostLock(t)
	h, err := cgroup.Detect()
	if err != nil {
		t.Skipf("no control groups on this host: %v", err)
	}
	const uid = "0f-1e-2d"
	g, err := h.Create("tare/kubepods-pod"+strings.ReplaceAll(uid, "-", "_")+".slice", cgroup.Limits{CPU: 0.25, Memory: 32 << 20})
	if err != nil {
		t.Skipf("control groups cannot be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Destroy(context.Background()); err != nil { //nolint:usetesting // the test's context has ended
			t.Error(err)
		}
	})
	nodes, leave, ended := observed(t)
	time.Sleep(50 * time.Millisecond) // connections that wait are as good as new ones
	ctx := t.Context()
	sleep := exec.CommandContext(ctx, "sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }) // killed by the context, perhaps
	if err := g.Add(sleep.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for range 2 * Waiting {
		f, err := nodes.Find(ctx, "n1", uid)
		if err != nil || f.CPU != 0.25 || f.Memory != 32<<20 || f.Cgroup != g.Rel() || f.Limited != g.Rel() {
			t.Fatalf("%+v, %v", f, err)
		}
	}
	if d, err := nodes.Host(ctx, "n1"); err != nil || d.Threads == 0 || d.Kernel == "" {
		t.Errorf("%+v, %v", d, err)
	}
	p, err := nodes.Collector(cgroups.New(), 10*time.Millisecond).Open(ctx, []sandbox.LocalScope{
		{Scope: sandbox.Scope{Node: "n1", Endpoint: "server"}, Cgroups: []string{g.Rel()}, Limited: g.Rel()},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for end := time.Now().Add(20 * time.Second); !seen["cgroup_tasks"] && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		samples, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			seen[s.Name] = true
		}
	}
	if !seen["cgroup_tasks"] || p.Close() != nil {
		t.Errorf("%v", seen)
	}
	if _, err := nodes.Find(ctx, "n1", "no-such-pod"); err == nil || !strings.Contains(err.Error(), "cannot find the control group of pod no-such-pod") {
		t.Error(err)
	}
	leave()
	if err := <-ended; err == nil {
		t.Error("the observer outlives its coordinator without a word")
	}
}
