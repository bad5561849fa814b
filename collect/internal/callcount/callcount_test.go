package callcount

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const childMode = "CALLCOUNT_CHILD"

// TestMain plays the children: "MODE N".
func TestMain(m *testing.M) {
	mode, n, _ := strings.Cut(os.Getenv(childMode), " ")
	times, _ := strconv.Atoi(n)
	switch mode {
	case "":
		os.Exit(m.Run())
	case "call": // calls getppid so often, and ends
		call(times)
	case "grandchildren": // makes so many that call 7 times each
		for range times {
			if err := child("call 7").Run(); err != nil {
				os.Exit(1)
			}
		}
	}
}

func call(n int) {
	for range n {
		_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
}

func child(mode string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childMode+"="+mode)
	return cmd
}

func load(t testing.TB) *Counter {
	t.Helper()
	c, err := new(Loader).Load()
	if err != nil {
		t.Skip("nothing can be counted here: ", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func getppids(t *testing.T, c *Counter, endpoint int) uint64 {
	t.Helper()
	got, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	if got[endpoint].Lost != 0 {
		t.Errorf("%d lost", got[endpoint].Lost)
	}
	return got[endpoint].Calls[unix.SYS_GETPPID]
}

// TestExact: every call of a followed process is counted, on whatever thread and
// processor, and none of others.
func TestExact(t *testing.T) {
	c := load(t)
	if n := getppids(t, c, MaxEndpoints-1); n != 0 {
		t.Errorf("%d calls before any: what Load tried is left", n)
	}
	if err := c.Add(os.Getpid(), 2, true); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	for range 8 {
		go func() {
			runtime.LockOSThread()
			call(10_000)
			done <- struct{}{}
		}()
	}
	for range 8 {
		<-done
	}
	if n := getppids(t, c, 2); n != 80_000 {
		t.Errorf("%d calls, want 80000", n)
	}
	for _, endpoint := range []int{0, 1, 3} {
		if n := getppids(t, c, endpoint); n != 0 {
			t.Errorf("end %d has %d calls", endpoint, n)
		}
	}
}

// TestDescendants: the calls of children and grandchildren count, whether or not
// those of the process that was added do, and all are gone from the map at the
// end.
func TestDescendants(t *testing.T) {
	c := load(t)
	if err := c.Add(os.Getpid(), 1, false); err != nil {
		t.Fatal(err)
	}
	call(1000) // not ours to count
	if err := child("call 123").Run(); err != nil {
		t.Fatal(err)
	}
	if err := child("grandchildren 20").Run(); err != nil {
		t.Fatal(err)
	}
	if n := getppids(t, c, 1); n != 123+20*7 {
		t.Errorf("%d calls, want %d", n, 123+20*7)
	}
	var pid, endpoint uint32
	for it := c.parts.Maps[endpointsName].Iterate(); it.Next(&pid, &endpoint); {
		if int(pid) != os.Getpid() {
			t.Errorf("process %d is followed after its end", pid)
		}
	}
	if !c.Follows(os.Getpid()) || c.Follows(1) {
		t.Error("Follows is wrong")
	}
}

// TestApart: two ends at once are told apart.
func TestApart(t *testing.T) {
	c := load(t)
	var cmds []*exec.Cmd
	for endpoint := range 2 {
		cmd := exec.Command("sh", "-c", `read go; exec "$0"`, "/proc/self/exe")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=call %d", childMode, 1000*(endpoint+1)))
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args[len(cmd.Args)-1] = exe
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Skipf("no shell: %v", err)
		}
		if err := c.Add(cmd.Process.Pid, endpoint, true); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for endpoint, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		n := getppids(t, c, endpoint)
		// The shell asks for its parent's number once, too, when it begins.
		if want := uint64(1000 * (endpoint + 1)); n < want || n > want+2 {
			t.Errorf("end %d has %d calls, want %d", endpoint, n, want)
		}
	}
	if err := c.Add(1, MaxEndpoints, true); err == nil {
		t.Error("an end too many passes")
	}
}

// TestClose: nothing is left, and reading afterwards is an error.
func TestClose(t *testing.T) {
	c := load(t)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Read(); err == nil {
		t.Error("Read after Close gives no error")
	}
}

// TestRefused: where BPF is not allowed, Load says so.
func TestRefused(t *testing.T) {
	load(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=TestExact", "-test.v")
	cmd.Env = os.Environ()
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skipf("this host makes no user namespace: %v", err)
	}
	if !strings.Contains(string(out), "CAP_BPF") {
		t.Errorf("the reason is:\n%s", out)
	}
}
