package spawn

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestMemberships(t *testing.T) {
	f, err := os.Open("testdata/hybrid.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := Memberships(f)
	if err != nil {
		t.Fatal(err)
	}
	want := []Membership{
		{"cpu", "/"}, {"cpuacct", "/"}, {"cpuset", "/"}, {"memory", "/jobs/1"}, {"devices", "/"}, {"freezer", "/"}, {"blkio", "/"},
		{"pids", "/"}, {"name=systemd", "/"}, {"", "/"},
	}
	for _, m := range want {
		if !contains(got, m) {
			t.Errorf("%v is not in %v", m, got)
		}
	}
	joined, err := Memberships(strings.NewReader("4:cpu,cpuacct:/user.slice/a:b\n"))
	if diff := cmp.Diff([]Membership{{"cpu", "/user.slice/a:b"}, {"cpuacct", "/user.slice/a:b"}}, joined); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func contains(ms []Membership, m Membership) bool {
	for _, x := range ms {
		if x == m {
			return true
		}
	}
	return false
}

func FuzzMemberships(f *testing.F) {
	b, err := os.ReadFile("testdata/hybrid.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("0::/user.slice/user-0.slice/session-1.scope\n")
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := Memberships(strings.NewReader(text))
		for _, m := range ms {
			if err == nil && !strings.HasPrefix(m.Path, "/") {
				t.Errorf("path %q", m.Path)
			}
		}
	})
}

func TestLive(t *testing.T) {
	var out, errs bytes.Buffer
	l, err := Run(t.Context(), Options{}, exec.Command("/bin/sh", "-c", "echo out; echo err >&2; exit 3"), &out, &errs)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != "out\n" || errs.String() != "err\n" || l.Exit.Code != 3 {
		t.Errorf("printed %q and %q, exit %+v", out.String(), errs.String(), l.Exit)
	}
	if l.First.Before(l.Begun) || l.Ended.Before(l.First) {
		t.Errorf("times go backwards: %+v", l)
	}
}

func TestLiveEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	l, err := Run(ctx, Options{}, exec.Command("/bin/sh", "-c", "exec sleep 60"), nil, nil)
	if !errors.Is(err, context.DeadlineExceeded) || l.Exit.Signal != "SIGKILL" {
		t.Errorf("exit %+v, error %v", l.Exit, err)
	}
	if time.Since(begun) > 30*time.Second { // of a minute
		t.Errorf("took %v", time.Since(begun))
	}
}

// TestKilled: an exit status alone does not tell a user that something killed the
// sandbox, nor what to do about it.
func TestKilled(t *testing.T) {
	for script, want := range map[string]bool{"kill -KILL $$": true, "exit 137": true, "exit 1": false, "kill -TERM $$": false} {
		_, err := StartAgent(t.Context(), Options{}, exec.Command("/bin/sh", "-c", script))
		if err == nil || strings.Contains(err.Error(), "SIGKILL") != want || strings.Contains(err.Error(), "memory of the host") != want {
			t.Errorf("%q: %v, want words about SIGKILL: %v", script, err, want)
		}
	}
}

// TestPipeHeldOpen: what a process leaves behind must not keep Run.
func TestPipeHeldOpen(t *testing.T) {
	begun := time.Now()
	if _, err := Run(t.Context(), Options{}, exec.Command("/bin/sh", "-c", "sleep 20 & exit 0"), nil, nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestStartFails(t *testing.T) {
	wrong := errors.New("not prepared")
	if _, err := Start(Options{Prepare: func() error { return wrong }}, exec.Command("/bin/true")); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	if _, err := Start(Options{}, exec.Command("/no/such/program")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestThreadIsThrownAway: a thread in another namespace must not be found by
// any other goroutine, nor be the one that /proc/self shows.
func TestThreadIsThrownAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a mount namespace")
	}
	mine, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := Run(t.Context(), Options{Private: true}, exec.Command("readlink", "/proc/self/ns/mnt"), &out, nil); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(out.String()) == mine {
		t.Error("the child is in our mount namespace")
	}
	time.Sleep(10 * time.Millisecond)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if ns, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/mnt"); err == nil && ns != mine {
			t.Errorf("thread %s is left in %s", task.Name(), ns)
		}
	}
}

// TestDiesWithParent: PDEATHSIG is set, so that nothing outlives a kill -9.
func TestDiesWithParent(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "exec sleep 60")
	p, err := Start(Options{}, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if sig := cmd.SysProcAttr.Pdeathsig; sig != unix.SIGKILL {
		t.Errorf("Pdeathsig is %v", sig)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if _, err := p.Wait(); err == nil {
		t.Error("a killed process ended well")
	}
}

func TestTail(t *testing.T) {
	var tail Tail
	for range 3 {
		_, _ = tail.Write(bytes.Repeat([]byte("a"), tailSize-10))
	}
	_, _ = tail.Write([]byte("the end"))
	if got := tail.String(); len(got) != tailSize || !strings.HasSuffix(got, "the end") {
		t.Errorf("%d bytes, ends with %q", len(got), got[max(0, len(got)-10):])
	}
}
