package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/host/cgroup"
	"tare/host/network"
	"tare/record"
	"tare/sandbox"
)

func (s *suite) exec(t *testing.T) {
	inst, _ := s.any(t)
	sh := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	for _, c := range []struct {
		name string
		args []string
		want result
	}{
		{"success", []string{"/tare-hello"}, result{stdout: "x\n"}},
		{"both streams", sh("echo out; echo err >&2"), result{stdout: "out\n", stderr: "err\n"}},
		{"exit code", sh("exit 7"), result{exit: sandbox.Exit{Code: 7}}},
		{"signal", sh("kill -KILL $$"), result{exit: sandbox.Exit{Code: 137, Signal: "SIGKILL"}}},
		{"environment", sh("echo $GIVEN $TARE_SANDBOX"), result{stdout: "here " + "NAME\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := command(t.Context(), inst, []string{"GIVEN=here"}, c.args...)
			if r.err != nil {
				t.Fatal(r.err)
			}
			if c.name == "environment" {
				if !strings.HasPrefix(r.stdout, "here ct-") {
					t.Errorf("printed %q", r.stdout)
				}
				return
			}
			if r.exit.Code != c.want.exit.Code || r.exit.Signal != c.want.exit.Signal || r.exit.OOM {
				t.Errorf("exit %+v, want %+v", r.exit, c.want.exit)
			}
			if r.stdout != c.want.stdout || r.stderr != c.want.stderr {
				t.Errorf("printed %q and %q, want %q and %q", r.stdout, r.stderr, c.want.stdout, c.want.stderr)
			}
		})
	}
	t.Run("no such program", func(t *testing.T) {
		if r := command(t.Context(), inst, nil, "/no-such-program"); r.err != nil || r.exit.Code != 127 {
			t.Errorf("exit %+v, error %v; want code 127 and a sandbox that lives", r.exit, r.err)
		}
	})
	t.Run("at the same time", func(t *testing.T) {
		done := make(chan result)
		for range 8 {
			go func() { done <- command(t.Context(), inst, nil, "/tare-hello") }()
		}
		for range 8 {
			if r := <-done; r.err != nil || r.stdout != "x\n" {
				t.Errorf("%+v", r)
			}
		}
	})
}

func (s *suite) streams(t *testing.T) {
	inst, _ := s.any(t)
	r := command(t.Context(), inst, nil, "/bin/sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo $i 0123456789012345678901234567890123456789012345678901234567890123456789; i=$((i+1)); done").good(t)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(lines) != 2000 {
		t.Fatalf("%d lines of 2000", len(lines))
	}
	for i, l := range lines {
		if !strings.HasPrefix(l, fmt.Sprint(i, " ")) {
			t.Fatalf("line %d is %q", i, l)
		}
	}
	// Output comes while the command runs: a role's readiness depends on it.
	// The first line ends it.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	exit, err := inst.Exec(ctx, sandbox.Command{
		Args: []string{"/tare", "internal", "try", "drip", "1m"}, Stdout: notify(cancel),
	})
	if err != nil || exit.Signal != "SIGTERM" || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("the first line did not arrive before the command's end: %+v, %v, %v", exit, err, ctx.Err())
	}
}

// notify is called at each write.
type notify func()

func (n notify) Write(p []byte) (int, error) {
	n()
	return len(p), nil
}

func (s *suite) files(t *testing.T) {
	inst, spec := s.any(t)
	run(t.Context(), inst, "write", "/data/file").good(t)
	run(t.Context(), inst, "write", "/tmp/file").good(t)
	b, err := os.ReadFile(filepath.Join(spec.Mounts[0].Source, "file"))
	if err != nil || string(b) != "written\n" {
		t.Errorf("/data/file is %q on the host: %v", b, err)
	}
	for _, path := range []string{"/file", "/etc/passwd", "/tare"} {
		if r := run(t.Context(), inst, "write", path); r.err != nil || r.exit.Code == 0 {
			t.Errorf("%s could be written in a read-only root: %+v", path, r)
		}
	}
	if _, err := os.Stat(filepath.Join(s.root, "tmp/file")); err == nil {
		t.Error("/tmp is in the shared tree")
	}
	command(t.Context(), inst, nil, "/bin/sh", "-c", "test -c /dev/null && test -d /proc/self && test -d /sys && echo > /dev/null").good(t)
}

func (s *suite) cancel(t *testing.T) {
	inst, _ := s.any(t)
	for _, c := range []struct {
		args   []string
		signal string
	}{
		{[]string{"/tare", "internal", "try", "drip", "1m"}, "SIGTERM"},
		{[]string{"/tare", "internal", "try", "stubborn"}, "SIGKILL"}, // of a minute too
	} {
		args := c.args
		// It is ended when it has said that it runs.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		var begun time.Time
		exit, err := inst.Exec(ctx, sandbox.Command{Args: args, Stdout: notify(func() { begun = time.Now(); cancel() })})
		cancel()
		if err != nil || exit.Signal != c.signal {
			t.Errorf("%q ended with %+v, %v; want %s", args, exit, err, c.signal)
		}
		if took := time.Since(begun); begun.IsZero() || took > time.Minute {
			t.Errorf("%q, which runs since %v, took %v to end", args, begun, took)
		}
	}
	command(t.Context(), inst, nil, "/tare-hello").good(t)
}

// descendants end with their command, in every session, so that they do not load the next
// phase.
func (s *suite) descendants(t *testing.T) {
	inst, _ := s.any(t)
	pid := strings.TrimSpace(run(t.Context(), inst, "leave").good(t).stdout)
	if pid == "" {
		t.Fatal("no process was left")
	}
	r := command(t.Context(), inst, nil, "/bin/sh", "-c", "if test -e /proc/"+pid+"; then echo alive; fi")
	if r.err != nil || r.stdout != "" {
		t.Errorf("a process outlives the command that left it: %+v", r)
	}
}

func (s *suite) dies(t *testing.T) {
	inst := s.start(t, s.spec(t))
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), inst, "stubborn").err }()
	time.Sleep(200 * time.Millisecond)
	pids, err := h.Open(inst.Scope().Cgroups[0]).Procs()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		p, err := os.FindProcess(pid)
		if err == nil {
			_ = p.Kill()
		}
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("no error from a command in a sandbox that was killed")
		} else {
			t.Log(err)
		}
	case <-time.After(time.Minute):
		t.Error("a command in a sandbox that was killed does not end")
	}
}

func (s *suite) cpuLimit(t *testing.T) {
	spec := s.spec(t)
	spec.CPULimit = 0.25
	if s.shared != nil { // a start is slow: one sandbox for both
		spec.CPUs = "0"
	}
	inst := s.start(t, spec)
	h, err := cgroup.Detect()
	if err != nil {
		t.Fatal(err)
	}
	// The program's own count may be the sandbox's invention; the host's is not.
	before, began := hostCPU(t, h, inst.Scope()), time.Now()
	run(t.Context(), inst, "spin", "1s").good(t)
	took := time.Since(began).Seconds()
	if used := hostCPU(t, h, inst.Scope()) - before; used > (0.40+s.opts.CPUOverhead)*took || used < 0.005 { // little, where others use the processors too
		t.Errorf("a spinning second under a limit of 0.25 cores used %.2f s of CPU time in %.2f s", used, took)
	}
	pinned := inst
	if s.shared == nil {
		other := s.spec(t)
		other.CPUs = "0"
		pinned = s.start(t, other)
	}
	dir, ok := h.Path("cpuset", pinned.Scope().Limited)
	if !ok {
		t.Skip("this host has no cpuset controller")
	}
	b, err := os.ReadFile(filepath.Join(dir, "cpuset.cpus")) //nolint:gosec // a cgroup file
	if err != nil || strings.TrimSpace(string(b)) != "0" {
		t.Errorf("cpuset.cpus is %q: %v", b, err)
	}
}

func (s *suite) memoryLimit(t *testing.T) {
	spec := s.spec(t)
	spec.MemoryLimit = 128 << 20
	inst := s.start(t, spec)
	run(t.Context(), inst, "eat", "16").good(t)
	r := run(t.Context(), inst, "eat", "512")
	if r.err == nil && r.exit.Code == 0 {
		t.Fatal("512 MiB were taken under a limit of 128 MiB")
	}
	if !r.exit.OOM {
		t.Errorf("the kill for memory is not reported: %+v, error %v, stderr %.300q", r.exit, r.err, r.stderr)
	}
	t.Logf("%+v %v", r.exit, r.err)
	l, ok := s.kind.(sandbox.Launcher)
	if !ok || s.traits.Family == record.FamilyVM { // a machine's Launch is its Exec
		return
	}
	for _, mode := range s.modes() {
		for mib, want := range map[string]bool{"16": false, "512": true} {
			spec := s.spec(t)
			spec.MemoryLimit = 128 << 20
			got, err := l.Launch(t.Context(), spec, sandbox.Command{Args: []string{"/tare", "internal", "try", "eat", mib}}, mode)
			if got.Exit.OOM != want {
				t.Errorf("%s, %s MiB: a kill for memory is reported: %v, want %v; %+v, error %v", mode, mib, got.Exit.OOM, want, got.Exit, err)
			}
			if !want && err != nil {
				t.Errorf("%s, %s MiB: %v", mode, mib, err)
			}
			t.Logf("%s, %s MiB: %+v %v", mode, mib, got, err)
		}
	}
}

func (s *suite) scope(t *testing.T) {
	inst, _ := s.any(t)
	ended := make(chan result, 1)
	go func() { ended <- run(t.Context(), inst, "spin", "1s") }()
	time.Sleep(300 * time.Millisecond)
	scope := inst.Scope()
	threads := threadsOf(t, scope)
	roles := map[record.ThreadRole]int{}
	for _, th := range threads {
		role := scope.Roles.Of(th)
		roles[role]++
		t.Logf("%-8s %d/%d %s %.60q", role, th.Pid, th.Tid, th.Comm, th.Args)
	}
	works := record.RoleWorkload
	if s.traits.Family == record.FamilyVM { // its commands are not threads of the host
		works = record.RoleVCPU
	}
	if roles[works] == 0 {
		t.Errorf("no thread of the role %s is in the sandbox's control groups", works)
	}
	for _, th := range threads {
		if th.Pid == os.Getpid() {
			t.Error("this program's own thread is in the sandbox's control group")
		}
	}
	(<-ended).good(t)
	if len(inst.Facts()) == 0 {
		t.Error("no facts")
	}
}

// loopback: a sandbox without a network has 127.0.0.1.
func (s *suite) loopback(t *testing.T) {
	inst, _ := s.any(t)
	run(t.Context(), inst, "alone").good(t)
}

func (s *suite) network(t *testing.T) {
	bridge, err := network.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
	}()
	var inst [2]sandbox.Instance
	for i := range inst {
		spec := s.spec(t)
		if spec.Network, err = bridge.Attach(spec.Name); err != nil {
			t.Fatal(err)
		}
		inst[i] = s.start(t, spec)
		if inst[i].Addr() != spec.Network.Addr.Addr() {
			t.Errorf("address %v, want %v", inst[i].Addr(), spec.Network.Addr)
		}
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	addr := inst[0].Addr().String() + ":5201"
	go func() {
		_, err := inst[0].Exec(t.Context(), sandbox.Command{
			Args: []string{"/tare", "internal", "try", "listen", addr}, Stdout: notify(func() { once.Do(func() { close(ready) }) }),
		})
		ended <- err
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("the listener ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the listener does not get ready")
	}
	r := run(t.Context(), inst[1], "dial", addr).good(t)
	if r.stdout != "hello from the other sandbox\n" {
		t.Errorf("heard %q", r.stdout)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, i := range slices.Backward(inst[:]) {
		if err := i.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
