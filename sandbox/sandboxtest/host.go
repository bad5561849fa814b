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
	"tare/sandbox"
	"tare/volume"
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
	enter(os.Stderr)
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
		if err := try(args[0], strings.Join(args[1:], " "), os.Stdout); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
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

// MountsAtData is one volume, at /data; none if dir is "".
func MountsAtData(dir string) []sandbox.Mount {
	if dir == "" {
		return nil
	}
	return []sandbox.Mount{{Volume: volume.Volume{Name: volume.Data}, Source: dir}}
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
func try(what, arg string, stdout io.Writer) error {
	switch what {
	case "write": // a file
		return writeFile(arg)
	case "kernel": // say which one it is
		text, err := kernel()
		_, _ = fmt.Fprint(stdout, text)
		return err
	case "whoami": // in numbers, and where, on the standard output by its name
		return whoami()
	case "spin": // for a time, then say how much CPU time it got
		return spin(arg, stdout)
	case "eat": // memory, as many MiB
		return eat(arg, stdout)
	case "stubborn": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		_, _ = fmt.Fprintln(stdout, "deaf")
		time.Sleep(time.Minute)
	case "drip": // a line, and after a time the end
		d, err := time.ParseDuration(arg)
		_, _ = fmt.Fprintln(stdout, "ready")
		time.Sleep(d)
		return err
	case "leave": // a process in its own session, and print its process id
		return leave(stdout)
	case "listen":
		return listen(arg, stdout)
	case "count":
		return count(arg, stdout)
	case "alone":
		return alone()
	case "dial":
		return dial(arg, stdout)
	}
	return nil
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
