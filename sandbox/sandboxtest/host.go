package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/agent"
	"tare/internal/rootfs"
	"tare/internal/state"
)

// Main is for a package's TestMain. In a sandbox the test binary plays the part
// of the tare binary:
//
//	func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m.Run)) }
//
// The test binary is then /tare in the sandbox. If it is not static (built with
// cgo) the sandbox kinds still work, because rootfs adds the libraries.
func Main(run func() int) int {
	if len(os.Args) > 2 && os.Args[1] == "internal" {
		return inside(os.Args[2], os.Args[3:])
	}
	return run()
}

// inside is `/tare internal NAME`: the agent, and small programs that show what
// a sandbox does.
func inside(name string, args []string) int {
	switch name {
	case "agent":
		signal.Ignore(syscall.SIGINT)
		if err := agent.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "agent:", err)
			return 1
		}
		return 0
	case "try":
		if len(args) == 0 {
			return 2
		}
		return try(args[0], args[1:], os.Stdout, os.Stderr)
	}
	return 2
}

// HostLock takes the host for the duration of a test, waiting for other tests
// at most four minutes, and skips the test without root. Every test that makes
// control groups, namespaces or containers calls it first.
func HostLock(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for control groups and namespaces")
	}
	deadline := time.Now().Add(4 * time.Minute)
	for {
		lock, err := state.Hold(state.RunDir, "go test "+t.Name())
		if err == nil {
			t.Cleanup(func() {
				if err := lock.Release(); err != nil {
					t.Error(err)
				}
			})
			return
		}
		var held *state.HeldError
		if !errors.As(err, &held) || time.Now().After(deadline) {
			t.Fatalf("cannot take the host: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Root returns the tree with this test binary as /tare and a shell if the host
// has one. The libraries of the test binary are in it too, in case it is not
// static.
func Root(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := rootfs.Build(context.Background(), filepath.Join(os.TempDir(), "tare-test-rootfs"), self, []string{"sh", self})
	if err != nil {
		t.Fatal(err)
	}
	return tree.Path
}

// snapshot lists what of ours is on the host: control groups, mounts, network
// namespaces, run-time state, and processes by their marker.
func snapshot(t testing.TB, name string) []string {
	t.Helper()
	var out []string
	groups, err := filepath.Glob("/sys/fs/cgroup/*/tare/" + name)
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, groups...)
	if _, err := os.Stat("/sys/fs/cgroup/tare/" + name); err == nil {
		out = append(out, "/sys/fs/cgroup/tare/"+name)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(mounts), "\n") {
		if strings.Contains(line, name) {
			out = append(out, line)
		}
	}
	for _, pattern := range []string{"/run/tare/oci/*/" + name + "*", "/run/tare/oci/*/runtime.json." + name} {
		left, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, left...)
	}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environs {
		b, err := os.ReadFile(path) //nolint:gosec // a path of proc
		if err == nil && slices.Contains(strings.Split(string(b), "\x00"), "TARE_SANDBOX="+name) {
			out = append(out, path)
		}
	}
	return out
}

// try is a program inside the sandbox.
func try(what string, args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	arg := strings.Join(args, " ")
	switch what {
	case "write": // a file
		if err := os.WriteFile(arg, []byte("written\n"), 0o600); err != nil {
			return fail(err)
		}
	case "spin": // for a time, then say how much CPU time it got
		d, err := time.ParseDuration(arg)
		if err != nil {
			return fail(err)
		}
		return spin(d, stdout)
	case "eat": // memory, as many MiB
		var n int
		if _, err := fmt.Sscan(arg, &n); err != nil {
			return fail(err)
		}
		var kept [][]byte
		for range n {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			kept = append(kept, b)
		}
		_, _ = fmt.Fprintln(stdout, len(kept))
	case "stubborn": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		_, _ = fmt.Fprintln(stdout, "deaf")
		time.Sleep(time.Minute)
	case "drip": // a line, and after a time the end
		d, err := time.ParseDuration(arg)
		if err != nil {
			return fail(err)
		}
		_, _ = fmt.Fprintln(stdout, "ready")
		time.Sleep(d)
	case "listen":
		return listen(arg, stdout, stderr)
	case "dial":
		return dial(arg, stdout, stderr)
	}
	return 0
}
