package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// serving is a kind whose sandboxes do as a script says: a command's first word is
// looked up in does.
type serving struct {
	kind
	does  map[string]func(context.Context, sandbox.Command) (sandbox.Exit, error)
	check error // of CheckCheckpoint

	mu    sync.Mutex
	specs []sandbox.Spec
}

func (s *serving) run(ctx context.Context, spec sandbox.Spec, c sandbox.Command) (sandbox.Exit, error) {
	s.mu.Lock()
	s.specs = append(s.specs, spec)
	s.mu.Unlock()
	s.j.note("run %s", strings.Join(c.Args, " "))
	return s.does[c.Args[0]](ctx, c)
}

func (s *serving) Start(_ context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	return &served{instance: instance{k: &s.kind, end: endOf(spec.Name)}, s: s, spec: spec}, nil
}

type served struct {
	instance
	s    *serving
	spec sandbox.Spec
}

func (i *served) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	return i.s.run(ctx, i.spec, c)
}

func (s *serving) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (sandbox.Launch, error) {
	l := sandbox.Launch{Begun: time.Now(), Created: 1}
	if spec.Located != nil {
		spec.Located(netip.MustParseAddr("127.0.0.1"))
	}
	exit, err := s.run(ctx, spec, c)
	s.j.note("gone %s", endOf(spec.Name))
	l.Exit = exit
	return l, errors.Join(err, ctx.Err())
}

func (s *serving) CheckCheckpoint(context.Context) error { return s.check }

func (s *serving) Checkpoint(ctx context.Context, spec sandbox.Spec, c sandbox.Command, ready func(context.Context) error) (sandbox.Saved, error) {
	saved := sandbox.Saved{Cold: 3, Save: 1, Restore: 2, Bytes: 7}
	for range 2 {
		live, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { _, err := s.run(live, spec, c); ended <- err }()
		err := ready(ctx)
		cancel()
		if err = errors.Join(err, <-ended); err != nil {
			return saved, fmt.Errorf("serving %s: %w", spec.Name, err)
		}
	}
	return saved, nil
}

var _ sandbox.Checkpointer = (*serving)(nil)

// server listens on a port after a while and answers each connection with the
// text, until it is told to end.
func server(port int, after time.Duration, answer string) func(context.Context, sandbox.Command) (sandbox.Exit, error) {
	return func(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
		if err := sleep(ctx, after); err != nil {
			return sandbox.Exit{Code: 143, Signal: "SIGTERM"}, nil //nolint:nilerr // it was told to end
		}
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			_, _ = io.WriteString(c.Stderr, "bind: Address already in use\n")
			return sandbox.Exit{Code: 1}, nil
		}
		stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
		defer stop()
		for {
			conn, err := ln.Accept()
			if err != nil {
				return sandbox.Exit{Code: 143, Signal: "SIGTERM"}, nil //nolint:nilerr // it was told to end
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}
}

// ends is a command that says something on its standard error and ends.
func ends(code int, says string) func(context.Context, sandbox.Command) (sandbox.Exit, error) {
	return func(_ context.Context, c sandbox.Command) (sandbox.Exit, error) {
		_, _ = io.WriteString(c.Stderr, says)
		return sandbox.Exit{Code: code}, nil
	}
}

const page = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port
}

type script map[string]func(context.Context, sandbox.Command) (sandbox.Exit, error)

// serve runs one trial of the roles on a kind that follows the script.
func serve(t *testing.T, does script, change func(*Maker, *serving), roles ...workload.Role) (*record.Trial, *journal, *serving, *launchLoad) {
	t.Helper()
	e, j := engine(t, "")
	s := &serving{kind: kind{j: j, name: "process"}, does: does}
	l := &launchLoad{load: load{j: j}, roles: roles}
	e.Kinds["process"], e.Workloads["load"] = s, l
	e.Study.Timeout = 3 * time.Second
	if change != nil {
		change(e, s)
	}
	trial, _ := e.Trial(t.Context(), first(e))
	if last := j.lines[len(j.lines)-1]; last != "release x-1" {
		t.Errorf("the last thing done is %q", last)
	}
	return trial, j, s, l
}

func failed(t *testing.T, trial *record.Trial, phase, kind string, texts ...string) {
	t.Helper()
	f := trial.Failure
	if f == nil || f.Phase != phase || f.Kind != kind {
		t.Fatalf("failure %+v, want kind %s in phase %s", f, kind, phase)
	}
	for _, text := range texts {
		if !strings.Contains(f.Reason, text) {
			t.Errorf("the reason %q does not say %q", f.Reason, text)
		}
	}
}

func two(port int, before ...string) []workload.Role {
	return []workload.Role{
		{Name: "server", Mode: workload.Exec, Args: []string{"serve"}, Background: true, Before: before,
			Probe: &workload.Probe{Port: port, Path: "/", Size: 2}},
		{Name: "client", Mode: workload.Exec, Args: []string{"call"}},
	}
}
