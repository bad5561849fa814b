package spawn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/agent"
	"tare/sandbox"
)

// TestMain lets the test's own binary be an agent, and a harness that has one.
func TestMain(m *testing.M) {
	if len(os.Args) != 3 || os.Args[1] != "internal" {
		os.Exit(m.Run())
	}
	err := error(nil)
	switch os.Args[2] {
	case "agent":
		err = agent.Serve(context.Background(), os.Stdin, os.Stdout, nil, agent.OwnProcess)
	case "harness":
		err = harness()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// harness starts an agent as the kind process does, and in it a command with a child in its
// own session. It prints the process ids of all three.
func harness() error {
	a, err := StartAgent(context.Background(), Options{EndsWithInput: true}, exec.Command("/proc/self/exe", "internal", "agent"))
	if err != nil {
		return err
	}
	fmt.Println(a.Pid())
	_, err = a.Run(context.Background(), sandbox.Command{
		Args:   []string{"sh", "-c", "echo $$; setsid sh -c 'echo $$; exec sleep 600 > /dev/null 2>&1' & wait"},
		Stdout: os.Stdout,
	})
	return err
}

// over reports whether a process has ended; its parent reaps the rest.
func over(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return errors.Is(err, os.ErrNotExist) || strings.Contains(string(b), ") Z ")
}

// TestNothingOutlivesAKilledHarness.
func TestNothingOutlivesAKilledHarness(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "internal", "harness")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < 3 && lines.Scan(); {
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if len(pids) != 3 {
		t.Fatalf("it started %v", pids)
	}
	for _, pid := range pids {
		for end := time.Now().Add(20 * time.Second); !over(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("process %d of %v outlives the harness", pid, pids)
				_ = unix.Kill(pid, unix.SIGKILL)
				break
			}
		}
	}
}
