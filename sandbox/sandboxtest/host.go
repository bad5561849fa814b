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
	"tare/host/rootfs"
	"tare/host/state/statetest"
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
		if err := agent.Serve(context.Background(), os.Stdin, os.Stdout, nil, agent.OwnProcess); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "agent:", err)
			return 1
		}
		return 0
	case "gate":
		return agent.Gate(args, os.Stderr)
	case "try":
		if len(args) == 0 {
			return 2
		}
		return try(args[0], args[1:], os.Stdout, os.Stderr)
	}
	return 2
}

// Root returns the tree with this test binary as /tare and a shell if the host
// has one.
func Root(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := rootfs.Build(context.Background(), filepath.Join(os.TempDir(), "tare-test-rootfs"), self, []string{"sh"})
	if err != nil {
		t.Fatal(err)
	}
	return tree.Path
}

// leftOf lists what of the sandbox is on the host: everything that has its name.
func leftOf(t testing.TB, name string) []string {
	t.Helper()
	var out []string
	for thing := range statetest.Snapshot(t) {
		if strings.Contains(thing, name) {
			out = append(out, thing)
		}
	}
	slices.Sort(out)
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
		if err := writeFile(arg); err != nil {
			return fail(err)
		}
	case "kernel": // say which one it is
		text, err := kernel()
		if err != nil {
			return fail(err)
		}
		_, _ = fmt.Fprint(stdout, text)
	case "whoami": // in numbers, and where, on the standard output by its name
		return whoami(stderr)
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
	case "leave": // a process in its own session, and print its process id
		return leave(stdout, stderr)
	case "listen":
		return listen(arg, stdout, stderr)
	case "count":
		return count(arg, stdout, stderr)
	case "alone":
		return alone(stderr)
	case "dial":
		return dial(arg, stdout, stderr)
	}
	return 0
}

// writeFile writes a file to its disk: a machine that is stopped writes nothing more.
func writeFile(path string) error {
	f, err := os.Create(path) //nolint:gosec // the test names a file inside its sandbox
	if err != nil {
		return err
	}
	_, err = f.WriteString("written\n")
	return errors.Join(err, f.Sync(), f.Close())
}
