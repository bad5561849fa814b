package calls

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"tare/collect"
	"tare/collect/collecttest"
	"tare/record"
	"tare/sandbox"
)

const childMode = "CALLS_CHILD"

// TestMain plays the agent as well: for each line with a number it runs a child
// that calls getppid so often, and says when that has ended.
func TestMain(m *testing.M) {
	switch n, err := strconv.Atoi(os.Getenv(childMode)); {
	case os.Getenv(childMode) == "":
		os.Exit(collecttest.Main(m))
	case err == nil:
		for range n {
			_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		}
	default:
		agent()
	}
}

func agent() {
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		for range 1000 { // its own, which must not count
			_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), childMode+"="+in.Text())
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("done")
	}
}

func TestContract(t *testing.T) {
	collecttest.Run(t, collecttest.Subject{Collector: New()})
}

// TestShortLived: what children of the agent call is counted to the last call,
// though they are gone at the next reading; the agent's own is not.
func TestShortLived(t *testing.T) {
	c := New()
	if err := c.Check(); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("/proc/self/exe", "agent")
	cmd.Env = append(os.Environ(), childMode+"=agent")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends by it
		_ = cmd.Wait()
	})
	out := bufio.NewReader(pipe)
	say := func(want string) {
		t.Helper()
		if line, err := out.ReadString('\n'); err != nil || line != want+"\n" {
			t.Fatalf("the agent said %q, %v", line, err)
		}
	}
	say("ready")
	p, err := c.Open(context.Background(), []sandbox.LocalScope{
		{Scope: sandbox.Scope{Endpoint: "client"}},
		{Scope: sandbox.Scope{Endpoint: "server"}, Pids: []int{cmd.Process.Pid}, Roles: sandbox.ThreadRoles{{Role: record.RoleHarness, Args: []string{"agent"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	want := 0
	for _, n := range []int{5, 500, 1} {
		fmt.Fprintln(in, n)
		say("done")
		want += n
		if got := value(t, p, Calls, "call=getppid,end=server"); got != float64(want) {
			t.Errorf("%v calls of getppid, want %d", got, want)
		}
	}
	if n := value(t, p, Calls, "call=execve,end=server"); n != 3 {
		t.Errorf("%v calls of execve, want 3", n)
	}
	if n := value(t, p, Calls, "call=getppid,end=client"); n != 0 {
		t.Errorf("%v calls of an end without processes", n)
	}
	if n := value(t, p, Lost, "end=server"); n != 0 {
		t.Errorf("%v calls were lost", n)
	}
}

func value(t *testing.T, p collect.Probe, name string, labels record.Labels) float64 {
	t.Helper()
	all, err := p.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name && s.Labels == labels {
			return s.Value
		}
	}
	return 0
}

// TestTooMany: more sandboxes than there is room for are refused.
func TestTooMany(t *testing.T) {
	if _, err := New().Open(context.Background(), make([]sandbox.LocalScope, 5)); err == nil {
		t.Error("5 scopes pass")
	}
}
