package trial

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/record"
	"tare/sandbox"
	"tare/volume"
	"tare/workload"
)

func TestServerIsReadyWhenItAnswers(t *testing.T) {
	port := freePort(t)
	asked := time.Time{}
	begun := time.Now()
	trial, j, _, _ := serve(t, script{
		"serve": server(port, 50*time.Millisecond, page),
		"call": func(context.Context, sandbox.Command) (sandbox.Exit, error) {
			asked = time.Now()
			return sandbox.Exit{}, nil
		},
	}, nil, two(port)...)
	if trial.Status != record.OK {
		t.Fatalf("failed: %+v", trial.Failure)
	}
	if asked.Sub(begun) < 50*time.Millisecond {
		t.Errorf("the client began after %v, before the server listened", asked.Sub(begun))
	}
	want := []string{
		"attach server", "attach client", "open collectors on server+client", "run serve", "run call",
		"close collectors", "stop server", "stop client", "detach server", "detach client", "release x-1",
	}
	if d := cmp.Diff(want, j.lines); d != "" {
		t.Error(d)
	}
	if trial.Facts["server.where"] != "native" || trial.Facts["client.where"] != "native" {
		t.Errorf("facts %v", trial.Facts)
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	port := freePort(t)
	call := ends(0, "")
	short := func(e *Maker, _ *serving) { e.Study.Timeout = 300 * time.Millisecond }
	for name, c := range map[string]struct {
		serve func(context.Context, sandbox.Command) (sandbox.Exit, error)
		kind  string
		texts []string
	}{
		"port in use": {ends(1, "Error: listen EADDRINUSE: address already in use :::8080\n  at node\n"), "died",
			[]string{"server ended with exit code 1", "the port is in use", "listen EADDRINUSE", "choose another port"}},
		"ends well": {ends(0, ""), "died", []string{"server ended before it was told to"}},
		"no call": {ends(1, "io_uring_setup: Function not implemented\n"), "unsupported",
			[]string{"io_uring_setup", "a system call", "see whether process has the call"}},
		// fio's words in gVisor, whose kernel is not the one that it means.
		"no io_uring": {ends(1, "fio: your kernel doesn't support io_uring\n"), "unsupported",
			[]string{"kernel doesn't support io_uring", "a system call", "see whether process has the call"}},
		"bad call": {func(context.Context, sandbox.Command) (sandbox.Exit, error) {
			return sandbox.Exit{Code: 159, Signal: "SIGSYS"}, nil
		}, "unsupported", []string{"was killed by SIGSYS", "a system call"}},
		"not found": {server(port, 0, "HTTP/1.1 404 Not Found\r\n\r\n"), "hung", []string{"did not answer on port", "404 Not Found, not 200", "timeout"}},
		"mute": {func(ctx context.Context, _ sandbox.Command) (sandbox.Exit, error) {
			<-ctx.Done()
			return sandbox.Exit{Code: 143, Signal: "SIGTERM"}, nil
		}, "hung", []string{"did not answer on port", "refused"}},
		"killed": {func(context.Context, sandbox.Command) (sandbox.Exit, error) {
			return sandbox.Exit{Code: 137, Signal: "SIGKILL", OOM: true}, nil
		}, "memory", []string{"out of memory"}},
		"sandbox dies": {func(context.Context, sandbox.Command) (sandbox.Exit, error) {
			return sandbox.Exit{}, errors.New("the sandbox ended")
		}, "died", []string{"the sandbox failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			trial, j, _, _ := serve(t, script{"serve": c.serve, "call": call}, short, two(port)...)
			failed(t, trial, PhaseReady, c.kind, c.texts...)
			if slices.Contains(j.lines, "run call") {
				t.Error("the client ran without its server")
			}
			if !slices.Contains(j.lines, "stop server") || !slices.Contains(j.lines, "detach client") {
				t.Errorf("not cleaned up: %v", j.lines)
			}
		})
	}
}

// TestServerThatNeverListens is given up long before the trial's own time is over.
func TestServerThatNeverListens(t *testing.T) {
	port := freePort(t)
	trial, _, _, _ := serve(t, script{"serve": server(port, time.Hour, page), "call": ends(0, "")}, func(e *Maker, _ *serving) {
		e.Study.Timeout, e.serverTime = time.Hour, 100*time.Millisecond
	}, two(port)...)
	failed(t, trial, PhaseReady, "hung", "server did not answer on port", "refused", "a server must be ready within 100ms")
	if strings.Contains(trial.Failure.Reason, "timeout") {
		t.Errorf("the reason speaks of the trial's timeout: %s", trial.Failure.Reason)
	}
}

// TestServerDiesUnderItsClient: the reason is the server's, also when the client
// was the first to fail.
func TestServerDiesUnderItsClient(t *testing.T) {
	port := freePort(t)
	trial, _, _, _ := serve(t, script{
		"serve": func(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
			ctx, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
			defer cancel()
			_, _ = server(port, 0, page)(ctx, c)
			return ends(134, "panic: assertion failed\n")(ctx, c)
		},
		"call": func(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
			_ = sleep(ctx, 100*time.Millisecond)
			return ends(1, "read: connection reset by peer\n")(ctx, c)
		},
	}, nil, two(port)...)
	failed(t, trial, PhaseRun, "died", "server ended with exit code 134", "assertion failed")
	if trial.Failure.Role != "server" {
		t.Errorf("role %s", trial.Failure.Role)
	}
}

// TestServerThatEndsBadly: once its client is done, how a server ends is a warning.
func TestServerThatEndsBadly(t *testing.T) {
	for name, c := range map[string]struct {
		exit sandbox.Exit
		says string
	}{
		"well":     {sandbox.Exit{}, ""},
		"by shell": {sandbox.Exit{Code: 143}, ""},
		"deaf":     {sandbox.Exit{Code: 137, Signal: "SIGKILL"}, "server did not end within 2 s of SIGTERM"},
		"crashes":  {sandbox.Exit{Code: 139, Signal: "SIGSEGV"}, "server was killed by SIGSEGV when it was told to end"},
		"fails":    {sandbox.Exit{Code: 1}, "server ended with exit code 1 when it was told to end"},
	} {
		t.Run(name, func(t *testing.T) {
			port := freePort(t)
			trial, _, _, _ := serve(t, script{
				"serve": func(ctx context.Context, cmd sandbox.Command) (sandbox.Exit, error) {
					_, _ = server(port, 0, page)(ctx, cmd)
					return c.exit, nil
				},
				"call": ends(0, ""),
			}, nil, two(port)...)
			if trial.Status != record.OK {
				t.Fatalf("failed: %+v", trial.Failure)
			}
			said := ""
			for _, w := range trial.Warnings {
				said += w.Code + " " + w.Text
			}
			if (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
				t.Errorf("warnings %q, want %q", said, c.says)
			}
		})
	}
}

func TestClientThatTimesOut(t *testing.T) {
	port := freePort(t)
	trial, _, _, _ := serve(t, script{
		"serve": server(port, 0, page),
		"call": func(ctx context.Context, _ sandbox.Command) (sandbox.Exit, error) {
			<-ctx.Done()
			return sandbox.Exit{Code: 143}, nil
		},
	}, func(e *Maker, _ *serving) { e.Study.Timeout = 300 * time.Millisecond }, two(port)...)
	failed(t, trial, PhaseRun, "hung", "client was still running", "no end after")
}

func TestLayOutComesFirst(t *testing.T) {
	port := freePort(t)
	roles := two(port, "lay", "files")
	roles[1].DropCaches = true
	does := script{"serve": server(port, 0, page), "call": ends(0, ""), "lay": ends(0, "laid\n")}
	trial, j, _, _ := serve(t, does, nil, roles...)
	if trial.Status != record.OK || len(trial.Warnings) > 0 {
		t.Fatalf("%+v, %v", trial.Failure, trial.Warnings)
	}
	want := []string{"attach server", "attach client", "run lay files", "drop caches", "open collectors on server+client", "run serve", "run call"}
	if d := cmp.Diff(want, j.lines[:len(want)]); d != "" {
		t.Error(d)
	}
	var phases []string
	for _, p := range trial.Phases {
		phases = append(phases, p.Name)
	}
	if d := cmp.Diff([]string{PhasePrepare, PhaseStart, PhaseLayOut, PhaseReady, PhaseWarmup, PhaseRun, PhaseFinish, PhaseStop, PhaseCleanup}, phases); d != "" {
		t.Error(d)
	}

	does["lay"] = ends(1, "write: no space left on device\n")
	trial, j, _, _ = serve(t, does, nil, roles...)
	failed(t, trial, PhaseLayOut, "disk", "what server does before", "--data")
	if slices.Contains(j.lines, "run serve") || !slices.Contains(j.lines, "stop server") {
		t.Errorf("after a lay-out that failed: %v", j.lines)
	}

	for says, want := range map[string]string{
		"fio: pid=0, err=30/file:filesetup.c:174, func=open, error=Read-only file system\n":               "the file system is read-only",
		"fio: io_u error on file /dev/data: Input/output error: read offset=4096, buflen=4096\n":          "the disk failed, or is gone",
		"fio: pid=0, err=6/file:filesetup.c:757, func=open(/dev/data), error=No such device or address\n": "the disk failed, or is gone",
	} {
		does["lay"] = ends(1, says)
		trial, _, _, _ = serve(t, does, nil, roles...)
		failed(t, trial, PhaseLayOut, "disk", want)
	}

	does["lay"] = ends(0, "")
	trial, _, _, _ = serve(t, does, func(e *Maker, _ *serving) {
		e.Place.(*place).caches = errors.New("read-only file system")
	}, roles...)
	if trial.Status != record.OK || len(trial.Warnings) != 1 || trial.Warnings[0].Code != "caches-kept" || !strings.Contains(trial.Warnings[0].Text, "read-only") {
		t.Errorf("%+v, %v", trial.Failure, trial.Warnings)
	}
}

// TestReadOnly: a program that sees the host's own files, or those of an image, is told what it may write
// to, and not that a disk has failed, unless it has one.
func TestReadOnly(t *testing.T) {
	for want, role := range map[string]workload.Role{
		"; the program sees the host's files read-only, so give it a directory to write to with mounts": {Image: volume.HostRoot},
		"; the files of an image are read-only, so have it write to /tmp, or set writable: true":        {Image: "./app", Volumes: []volume.Volume{{Medium: volume.Bind}}},
		"; mount it for writing, or choose another disk":                                                {Image: "nginx", Volumes: volume.AtData(volume.Disk)},
	} {
		ep := &endpoint{kind: &kind{name: "runc"}, role: role}
		if kind, err := ep.because("server ended", "", "mkdir: Read-only file system\n"); kind != "disk" || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %s: %v, want %q in it", role, kind, err, want)
		}
	}
}

// TestWants: what each role asks of the place for its sandbox.
func TestWants(t *testing.T) {
	var at *place
	empty := func(context.Context, sandbox.Command) (sandbox.Exit, error) { return sandbox.Exit{}, nil }
	serve(t, script{"a": empty, "b": empty}, func(e *Maker, _ *serving) { at = e.Place.(*place) },
		workload.Role{Name: "client", Mode: workload.Exec, Args: []string{"a"}, Writable: true, Volumes: volume.AtData(volume.Disk)},
		workload.Role{Name: "server", Mode: workload.Exec, Args: []string{"b"}, Volumes: volume.AtData(volume.Memory), Image: "nginx"})
	want := []sandbox.Want{
		{Trial: "x-1", Role: "client", Name: "x-1-client", Writable: true, Networked: true, Volumes: []volume.Volume{{Name: "data"}}},
		{Trial: "x-1", Role: "server", Name: "x-1-server", Networked: true, Volumes: []volume.Volume{{Name: "data", Medium: volume.Memory}}, Image: "nginx"},
	}
	if d := cmp.Diff(want, at.wants, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestMissingImage: a trial without its image says why, and starts nothing.
func TestMissingImage(t *testing.T) {
	trial, j, _, _ := serve(t, nil, func(e *Maker, _ *serving) { e.Place.(*place).images = errors.New("no disk") },
		workload.Role{Name: "main", Mode: workload.Exec, Image: "nginx"})
	failed(t, trial, PhasePrepare, "start", "no disk")
	if d := cmp.Diff([]string{"release x-1"}, j.lines); d != "" {
		t.Error(d)
	}
}

// TestWrongAnswer: a server that answers, but not as it should, is not said to give no answer.
func TestWrongAnswer(t *testing.T) {
	ep := &endpoint{role: workload.Role{Name: "server"}}
	none := newOutput("server", "stdout", "")
	var f *failure
	err := ep.noAnswer(t.Context(), errors.New("port 80: GET /x returned 404 Not Found, not 200"), none, none)
	if !errors.As(err, &f) || f.kind != "garbage" || f.Error() != "server answered wrongly on port 80: GET /x returned 404 Not Found, not 200" {
		t.Errorf("%+v", err)
	}
}
