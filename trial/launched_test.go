package trial

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

func lines[T any](t *testing.T, out []byte) (all []T) {
	t.Helper()
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		var line T
		if err := json.Unmarshal(sc.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

func probed(port int, mode workload.Mode, count int) workload.Role {
	return workload.Role{Name: "main", Mode: mode, Args: []string{"serve"}, Count: count, Probe: &workload.Probe{Port: port, Path: "/", Size: 2}}
}

func TestLaunchUntilTheServerAnswers(t *testing.T) {
	port := freePort(t)
	trial, j, _, l := serve(t, script{"serve": server(port, 30*time.Millisecond, page)}, nil, probed(port, workload.Launch, 2))
	if trial.Status != record.OK {
		t.Fatalf("failed: %+v", trial.Failure)
	}
	got := lines[workload.LaunchLine](t, l.out)
	if len(got) != 4 {
		t.Fatalf("%d lines: %s", len(got), l.out)
	}
	for i, line := range got {
		if want := []string{"whole", "phased"}[i%2]; line.Mode != want || line.Answered < 0.03 || line.Deleted < line.Answered || line.Exited != 0 {
			t.Errorf("line %d: %+v", i, line)
		}
	}
	want := []string{}
	for _, name := range []string{"0whole", "0phased", "1whole", "1phased"} {
		want = append(want, "attach "+name, "run serve", "gone "+name)
	}
	for _, name := range []string{"0whole", "0phased", "1whole", "1phased"} {
		want = append(want, "detach "+name)
	}
	want = append(want, "release x-1")
	got2 := slices.DeleteFunc(slices.Clone(j.lines), func(s string) bool { return strings.Contains(s, "collectors") || strings.Contains(s, "parse") })
	if d := cmp.Diff(want, got2); d != "" {
		t.Error(d)
	}
}

// TestLaunchedServerWithAnAddressOfItsOwn: a pod has one only when it has started.
func TestLaunchedServerWithAnAddressOfItsOwn(t *testing.T) {
	for _, mode := range []workload.Mode{workload.Launch, workload.Idle} {
		port := freePort(t)
		trial, _, _, _ := serve(t, script{"serve": server(port, 0, page)}, func(e *Maker, _ *serving) { e.Place.(*place).nowhere = true }, probed(port, mode, 1))
		if trial.Status != record.OK {
			t.Errorf("mode %s failed: %+v", mode, trial.Failure)
		}
	}
}

// TestBurst: launches of a burst run at the same time, and bursts one after another.
func TestBurst(t *testing.T) {
	var mu sync.Mutex
	here, most, all := 0, 0, 0
	meet := func(ctx context.Context, _ sandbox.Command) (sandbox.Exit, error) {
		mu.Lock()
		here, all = here+1, all+1
		most = max(most, here)
		mu.Unlock()
		for together := false; !together && ctx.Err() == nil; time.Sleep(time.Millisecond) {
			mu.Lock()
			together = most == 3
			mu.Unlock()
		}
		mu.Lock()
		here--
		mu.Unlock()
		return sandbox.Exit{}, ctx.Err()
	}
	trial, _, _, l := serve(t, script{"meet": meet}, func(e *Maker, _ *serving) { e.Study.Timeout = 20 * time.Second },
		workload.Role{Name: "main", Mode: workload.Launch, Args: []string{"meet"}, Count: 5, Burst: 3})
	if trial.Status != record.OK {
		t.Fatalf("failed: %+v", trial.Failure)
	}
	if got := len(lines[workload.LaunchLine](t, l.out)); got != 10 || all != 10 || most != 3 {
		t.Errorf("%d launches have %d lines, at most %d at once; want 10, 10 and 3", all, got, most)
	}
}

func TestLaunchedServerThatDoesNotAnswer(t *testing.T) {
	port := freePort(t)
	trial, _, _, _ := serve(t, script{"serve": ends(1, "config: no such file\n")}, nil, probed(port, workload.Launch, 1))
	failed(t, trial, PhaseRun, "died", "main ended with exit code 1", "no such file")
	trial, j, _, _ := serve(t, script{"serve": server(port, time.Hour, page)},
		func(e *Maker, _ *serving) { e.Study.Timeout = time.Second }, probed(port, workload.Launch, 1))
	failed(t, trial, PhaseRun, "hung", "main did not answer on port", "refused")
	if !slices.Contains(j.lines, "gone 0whole") || !slices.Contains(j.lines, "detach 0whole") {
		t.Errorf("not cleaned up: %v", j.lines)
	}
}

func TestIdleServersCountWhenTheyAnswer(t *testing.T) {
	port := freePort(t)
	// One address for all of them here, so that only one can be up.
	trial, _, _, l := serve(t, script{"serve": server(port, 20*time.Millisecond, page)}, func(e *Maker, _ *serving) { e.Study.Timeout = 20 * time.Second }, probed(port, workload.Idle, 1))
	if trial.Status != record.OK {
		t.Fatalf("failed: %+v", trial.Failure)
	}
	var counts []int
	for _, line := range lines[workload.IdleLine](t, l.out) {
		counts = append(counts, line.Count)
	}
	if d := cmp.Diff([]int{0, 1, 0}, counts); d != "" {
		t.Error(d)
	}
	trial, j, _, _ := serve(t, script{"serve": server(port, 20*time.Millisecond, page)}, nil, probed(port, workload.Idle, 2))
	failed(t, trial, PhaseRun, "died", "sandbox 2 of 2", "the port is in use")
	if !slices.Contains(j.lines, "gone 0idle") {
		t.Errorf("the first one was left: %v", j.lines)
	}
}

func TestCheckpointWaitsForTheProbeTwice(t *testing.T) {
	port := freePort(t)
	trial, j, _, l := serve(t, script{"serve": server(port, 20*time.Millisecond, page)}, nil, probed(port, workload.Checkpoint, 2))
	if trial.Status != record.OK {
		t.Fatalf("failed: %+v", trial.Failure)
	}
	want := workload.CheckpointLine{Save: 1e-9, Restore: 2e-9, Cold: 3e-9, Bytes: 7}
	if d := cmp.Diff([]workload.CheckpointLine{want, want}, lines[workload.CheckpointLine](t, l.out)); d != "" {
		t.Error(d)
	}
	if n := len(slices.DeleteFunc(slices.Clone(j.lines), func(s string) bool { return s != "run serve" })); n != 4 {
		t.Errorf("the server ran %d times, want 4", n)
	}
	trial, _, _, _ = serve(t, script{"serve": server(port, 0, "HTTP/1.1 500 Oh\r\n\r\n")},
		func(e *Maker, _ *serving) { e.Study.Timeout = time.Second }, probed(port, workload.Checkpoint, 1))
	failed(t, trial, PhaseRun, "hung", "500")
}

func TestCheckpointIsSkippedWhereThereIsNone(t *testing.T) {
	reason := func(k sandbox.Kind) string {
		e, j := engine(t, "")
		e.Kinds["process"], e.Workloads["load"] = k, &launchLoad{load: load{j: j}, roles: []workload.Role{probed(80, workload.Checkpoint, 1)}}
		skips, err := e.Skips(t.Context())
		if err != nil || len(skips) > 1 {
			t.Fatalf("%v, %v", skips, err)
		}
		if len(skips) == 0 {
			return ""
		}
		return skips[0].Reason
	}
	if got, want := reason(&launching{kind: kind{name: "process"}}), "sandbox process cannot be saved and restored"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := reason(&serving{kind: kind{name: "process"}}); got != "" {
		t.Errorf("where it works: %q", got)
	}
	if got, want := reason(&serving{kind: kind{name: "process"}, check: errors.New("needs criu; apt-get install criu")}), "process: needs criu; apt-get install criu"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLaunchedRolesHaveAnUpperLayerEach: each stop empties it.
func TestLaunchedRolesHaveAnUpperLayerEach(t *testing.T) {
	for _, mode := range []workload.Mode{workload.Launch, workload.Checkpoint} {
		port := freePort(t)
		role := probed(port, mode, 2)
		role.Writable = true
		var at *place
		trial, _, _, _ := serve(t, script{"serve": server(port, 0, page)}, func(e *Maker, _ *serving) { at = e.Place.(*place) }, role)
		if trial.Status != record.OK {
			t.Fatalf("%s failed: %+v", mode, trial.Failure)
		}
		writable := map[string]bool{}
		for _, want := range at.wants {
			if want.Writable {
				writable[want.Name] = true
			}
		}
		if want := map[workload.Mode]int{workload.Launch: 4, workload.Checkpoint: 2}[mode]; len(writable) != want {
			t.Errorf("%s: %d sandboxes with an upper layer of their own, want %d", mode, len(writable), want)
		}
	}
}

// TestKilledIsNotOutOfMemory: only the sandbox knows what the kernel killed for.
func TestKilledIsNotOutOfMemory(t *testing.T) {
	ep := &endpoint{role: workload.Role{Name: "main"}, kind: &serving{kind: kind{name: "process"}}, spec: sandbox.Spec{Want: sandbox.Want{MemoryLimit: 64 << 20}}}
	for want, exit := range map[string]sandbox.Exit{
		"died":   {Code: 137, Signal: "SIGKILL"},
		"memory": {Code: 137, Signal: "SIGKILL", OOM: true},
	} {
		err := ep.judge(t.Context(), "main", exit, nil, newOutput("main", "stdout", ""), newOutput("main", "stderr", ""))
		var f *failure
		if !errors.As(err, &f) || f.kind != want {
			t.Errorf("%+v is judged %v", exit, err)
		}
	}
}

// full is a sandbox whose memory was at its limit, or was not.
type full struct {
	instance
	reached bool
}

func (f *full) LimitReached() bool { return f.reached }

// TestHungAtItsMemoryLimit: a program whose pages are taken as fast as it reads them
// is not killed, and the reason says where to look, whether it ran or never answered.
func TestHungAtItsMemoryLimit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, reached := range []bool{false, true} {
		ep := &endpoint{role: workload.Role{Name: "main"}, kind: &serving{kind: kind{name: "process"}}, inst: &full{reached: reached}, spec: sandbox.Spec{Want: sandbox.Want{MemoryLimit: 64 << 20}}}
		stdout, stderr := newOutput("main", "stdout", ""), newOutput("main", "stderr", "")
		for _, err := range []error{ep.judge(ctx, "main", sandbox.Exit{}, nil, stdout, stderr), ep.noAnswer(ctx, errors.New("port 80: refused"), stdout, stderr)} {
			if strings.Contains(err.Error(), "at the limit of 64MiB") != reached {
				t.Errorf("%t: %v", reached, err)
			}
		}
	}
}
