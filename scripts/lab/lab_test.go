package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be the program too: daemons start by way of it, and a test
// kills one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "enter", "forward", "up":
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
			defer stop()
			os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
		}
	}
	os.Exit(m.Run())
}

// lines is a writer to a test's log.
type lines struct{ t *testing.T }

func (l lines) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// inModule goes to the module's folder, where the program is run.
func inModule(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}

// TestLab starts the cluster, checks it, and removes it; then it kills starts half way, and
// nothing may be left after down.
func TestLab(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster, which takes a minute")
	}
	inModule(t)
	p, err := newPlaces(cacheDir)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{places: p, out: lines{t}, begun: time.Now()}
	switch {
	case !p.built():
		t.Skip("the cluster's programs are not built; run make lab, which takes long the first time")
	case os.Geteuid() != 0:
		t.Skip("a cluster needs root")
	case len(left(t, l)) > 0:
		t.Skip("a cluster is there already: " + strings.Join(left(t, l), ", ") + "; run make lab-down")
	}
	t.Cleanup(func() {
		if err := l.down(context.Background()); err != nil {
			t.Error(err)
		}
		if found := left(t, l); len(found) > 0 {
			t.Errorf("left after down: %v", found)
		}
	})
	there := func(program string) bool { // or else up would build it, for minutes
		_, err := os.Stat(p.program(program))
		return err == nil
	}
	if err := l.up(t.Context(), options{check: true, simulated: 3, ingress: there(controllerProgram), kubeVirt: there("virt-api")}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := l.up(t.Context(), options{}); err != nil || time.Since(begun) > 10*time.Second {
		t.Errorf("up on a running cluster took %s: %v", time.Since(begun), err)
	}
	if err := l.down(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{100 * time.Millisecond, 700 * time.Millisecond, 7 * time.Second, 22 * time.Second} {
		killed(t, after)
		if err := l.down(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found := left(t, l); len(found) > 0 {
			t.Fatalf("left by a start that was killed after %s: %v", after, found)
		}
	}
}

// killed kills a start of the cluster.
func killed(t *testing.T, after time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "up", "-check")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// left lists what is on the host of a cluster.
func left(t *testing.T, l *lab) []string {
	t.Helper()
	out, err := leftNamespaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{l.run, lockFile} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			out = append(out, path)
		}
	}
	g, err := findGroups()
	if err != nil {
		t.Fatal(err)
	}
	if g.exist() {
		out = append(out, "control group "+g.top)
	}
	for _, pattern := range []string{"/sys/block/loop*/loop/backing_file", "/proc/[0-9]*/mounts", "/proc/[0-9]*/cmdline"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			// A process may end while it is looked at.
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), l.run+"/") {
				out = append(out, f)
			}
		}
	}
	return out
}

// A loop device that is in use stays, whatever losetup says: here by another on top of it.
func TestDetach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loop devices need root")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "node1", "volume")
	if err := writeFile(file, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	on := file
	for range 2 {
		device, err := output(exec.Command("losetup", "--find", "--show", on))
		if err != nil {
			t.Skipf("this host gives no loop device: %v", err)
		}
		t.Cleanup(func() {
			if t.Failed() { // else the device may be another's by now
				_ = exec.Command("losetup", "--detach", device).Run()
			}
		})
		on = device
	}
	if err := detach(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{file, on} {
		if found, err := output(exec.Command("losetup", "--associated", f)); err != nil || found != "" {
			t.Errorf("left: %s, %v", found, err)
		}
	}
}

func TestUsage(t *testing.T) {
	inModule(t)
	for _, args := range [][]string{nil, {"frobnicate"}, {"up", "more"}, {"load"}, {"up", "-simulated", "x"}} {
		var said strings.Builder
		if code := command(t.Context(), args, io.Discard, &said); code != 2 || !strings.Contains(said.String(), "usage:") {
			t.Errorf("lab %v: exit status %d, %q", args, code, said.String())
		}
	}
}

// Each port on the host's loopback leads to its own server.
func TestForward(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to enter a network namespace needs root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	open := func() *net.TCPListener {
		l, err := listen("0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	cmd := exec.Command(self, "forward", "/proc/self/ns/net")
	cmd.ExtraFiles = []*os.File{os.Stdin} // in the lock's place
	var ports []string
	for _, name := range []string{"first", "second"} {
		server, port := open(), open()
		go func() {
			if c, err := server.Accept(); err == nil {
				_, _ = io.WriteString(c, name)
				_ = c.Close()
			}
		}()
		f, err := port.File()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		cmd.Args, cmd.ExtraFiles = append(cmd.Args, server.Addr().String()), append(cmd.ExtraFiles, f)
		ports = append(ports, port.Addr().String())
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for i, want := range []string{"first", "second"} {
		c, err := net.Dial("tcp", ports[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // a forwarder that is not there
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || string(got) != want {
			t.Errorf("%s leads to %q, %v; want %s", ports[i], got, err, want)
		}
		_ = c.Close()
	}
}
