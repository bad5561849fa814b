package child

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets this test's own binary be a driver with a child, when asked.
func TestMain(m *testing.M) {
	if os.Getenv("CHILD_DRIVER") == "" {
		os.Exit(m.Run())
	}
	cmd := Command(context.Background(), "sh", "-c", "echo $$; exec sleep 1000")
	cmd.Stdout = os.Stdout
	_ = Run(cmd, nil)
}

// TestKilledDriver: the child of a driver that is killed ends too.
func TestKilledDriver(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	driver := exec.Command(self) //nolint:noctx // killed below
	driver.Env = append(os.Environ(), "CHILD_DRIVER=1")
	out, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	if err := driver.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The child holds the other end of this pipe, which is closed when it is gone.
	gone := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, r); gone <- err }()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Errorf("the child %d lives on", pid)
	}
	_ = driver.Wait()
}

// TestAsked: the program can say something when it is asked to end.
func TestAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := Command(ctx, "sh", "-c", "trap 'echo asked; exit 5' TERM; echo up; while :; do sleep 0.01; done")
	r, w := io.Pipe()
	cmd.Stdout = w
	done := make(chan error, 1)
	go func() { done <- Run(cmd, nil); _ = w.Close() }()
	b := bufio.NewReader(r)
	if line, err := b.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	if rest, err := io.ReadAll(b); err != nil || string(rest) != "asked\n" {
		t.Errorf("%q, %v", rest, err)
	}
	var exit *exec.ExitError
	if err := <-done; !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("got %v, want the exit code 5", err)
	}
}

// TestDeaf: one that does not listen is killed.
func TestDeaf(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := Command(ctx, "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.01; done")
	cmd.WaitDelay = 50 * time.Millisecond
	r, w := io.Pipe()
	cmd.Stdout = w
	done := make(chan error, 1)
	go func() { done <- Run(cmd, nil); _ = w.Close() }()
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	var exit *exec.ExitError
	if err := <-done; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("got %v, want that it was killed", err)
	}
}

func TestStarted(t *testing.T) {
	var pid int
	cmd := Command(t.Context(), "true")
	if err := Run(cmd, func(p *os.Process) { pid = p.Pid }); err != nil || pid == 0 || cmd.ProcessState == nil {
		t.Errorf("pid %d, %v", pid, err)
	}
	cmd = Command(t.Context(), "/no/such")
	if err := Run(cmd, func(*os.Process) { t.Error("it is said to have started") }); err == nil || cmd.ProcessState != nil {
		t.Errorf("got %v", err)
	}
}
