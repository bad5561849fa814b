package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// flees starts a process and its child, each in a session of its own, and writes their
// process ids to a file. Once they are there, it does then.
func flees(file, then string) []string {
	away := fmt.Sprintf("sleep 600 & echo $$ $! > %s.new; mv %s.new %s; wait", file, file, file)
	return []string{"sh", "-c", fmt.Sprintf("(setsid setsid sh -c '%s' > /dev/null 2>&1 < /dev/null &); until test -e %s; do sleep 0.01; done; %s", away, file, then)}
}

func fled(t *testing.T, file string) (pids []int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	}
	if len(pids) != 2 {
		t.Fatalf("%q", b)
	}
	return pids
}

func alive(pids []int) bool {
	for _, pid := range pids {
		if !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return true
		}
	}
	return false
}

// TestWhatACommandLeavesEnds: a process that a command leaves ends with the command, in every
// session, unless a command that still runs may have left it.
func TestWhatACommandLeavesEnds(t *testing.T) {
	c, _ := remote(t)
	file := t.TempDir() + "/pids"
	if e, err := c.Run(t.Context(), sandbox.Command{Args: flees(file, "exit 3")}); err != nil || e.Code != 3 {
		t.Fatalf("%+v, %v", e, err)
	}
	if pids := fled(t, file); alive(pids) {
		t.Errorf("%v outlive their command", pids)
	}

	file += "2"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	up := make(chan struct{})
	var once sync.Once
	go func() {
		_, err := c.Run(ctx, sandbox.Command{
			Args:   flees(file, "echo up; sleep 600"),
			Stdout: writerFunc(func(p []byte) (int, error) { once.Do(func() { close(up) }); return len(p), nil }),
		})
		ended <- err
	}()
	<-up
	if _, err := c.Run(t.Context(), sandbox.Command{Args: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	pids := fled(t, file)
	if !alive(pids[:1]) || !alive(pids[1:]) {
		t.Error("another command's end took what a command that runs has started")
	}
	// The orphans of this command may be those of the one that still runs: they end
	// with it.
	file += "3"
	if _, err := c.Run(t.Context(), sandbox.Command{Args: flees(file, "")}); err != nil {
		t.Fatal(err)
	}
	later := fled(t, file)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if alive(append(pids, later...)) {
		t.Errorf("%v, %v outlive the last command", pids, later)
	}
}

// TestSessionEndsAllDescendants, whether the agent's input ends or the client's end breaks
// while there is output.
func TestSessionEndsAllDescendants(t *testing.T) {
	for _, then := range []string{"echo up; sleep 600", "while :; do echo up; done"} {
		t.Run(then, func(t *testing.T) {
			in, out, cmd := remoteProcess(t)
			c, err := Connect(t.Context(), out, in)
			if err != nil {
				t.Fatal(err)
			}
			file := t.TempDir() + "/pids"
			up := make(chan struct{})
			var once sync.Once
			go func() {
				_, _ = c.Run(context.Background(), sandbox.Command{
					Args:   flees(file, then),
					Stdout: writerFunc(func(p []byte) (int, error) { once.Do(func() { close(up) }); return len(p), nil }),
				})
			}()
			<-up
			pids := fled(t, file)
			_, _ = out.Close(), in.Close()
			_ = cmd.Wait()
			if alive(pids) {
				t.Errorf("%v outlive the agent", pids)
			}
		})
	}
}

// TestSignalEndsAllDescendants: a signal to the agent ends its commands before the agent.
func TestSignalEndsAllDescendants(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skipf("%s is ignored here, as under nohup(1), and children inherit that", sig)
			}
			c, cmd := remote(t)
			file := t.TempDir() + "/pids"
			up := make(chan struct{})
			var once sync.Once
			go func() {
				_, _ = c.Run(context.Background(), sandbox.Command{
					Args:   flees(file, "echo up; sleep 600"),
					Stdout: writerFunc(func(p []byte) (int, error) { once.Do(func() { close(up) }); return len(p), nil }),
				})
			}()
			<-up
			pids := fled(t, file)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("the agent ended with %v", err)
			}
			if alive(pids) {
				t.Errorf("%v outlive the agent", pids)
			}
		})
	}
}

// TestOrphansAreReaped: an orphan that ends by itself leaves no zombie while a command runs.
func TestOrphansAreReaped(t *testing.T) {
	c, _ := remote(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 1)
	go func() {
		_, _ = c.Run(ctx, sandbox.Command{
			Args:   []string{"sh", "-c", "(sh -c 'echo $$; exec sleep 0.1' &); exec sleep 600"},
			Stdout: writerFunc(func(p []byte) (int, error) { said <- string(bytes.TrimSpace(p)); return len(p), nil }),
		})
	}()
	pid, err := strconv.Atoi(<-said)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "gone: an orphan that has ended", func() bool { return !alive([]int{pid}) })
}
