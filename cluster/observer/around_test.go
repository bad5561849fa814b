package observer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/host/cgroup"
)

// TestMadeBy: Kata's shim is told by its name and its program, near the container or by the sandbox's ID. The shims are
// this test's own program, which is Go's, and sleep, which is not.
func TestMadeBy(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skipf("no program that Go did not make: %v", err)
	}
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	start := func(program, name string, args ...string) process {
		text, err := os.ReadFile(program)
		at := filepath.Join(t.TempDir(), name)
		if err := errors.Join(err, os.WriteFile(at, text, 0o700)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), at, args...)
		cmd.Args[0], cmd.Env = name, append(os.Environ(), asShim+"=1")
		in, err := cmd.StdinPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Skipf("cannot start a copy of %s: %v", program, err)
		}
		t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return process(fmt.Sprintf("/proc/%d", cmd.Process.Pid))
	}
	inGo := start("/proc/self/exe", kataShim, "-id", id)
	inRust := start(sleep, kataShim, "1000")
	other := start("/proc/self/exe", "containerd-shim-runc-v2")
	for what, c := range map[string]struct {
		near []process
		id   string
		want string
	}{
		"in Go":            {[]process{inGo}, "", "go"},
		"not in Go":        {[]process{"", inRust}, "", "rs"},
		"found by the ID":  {nil, id, "go"},
		"of another ID":    {nil, strings.ReplaceAll(id, "0", "1"), ""},
		"another's":        {[]process{other}, id, ""},
		"nothing is known": {nil, "", ""},
	} {
		if got := madeBy(c.near, c.id); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestCalledBy: the working directory of containerd's shim names the runtime that the shim calls.
func TestCalledBy(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	for what, c := range map[string]struct {
		shim  string
		files map[string]string
		want  string
	}{
		"named":            {ociShim, map[string]string{"runtime": "/usr/sbin/runc", "options.json": `{"binary_name":"/usr/sbin/runc"}`}, `/usr/sbin/runc {"binary_name":"/usr/sbin/runc"}`},
		"the shim's own":   {ociShim, map[string]string{"runtime": "", "options.json": "{}\n"}, "runc {}"},
		"no options":       {ociShim, map[string]string{"runtime": "/usr/sbin/runc"}, ""},
		"no bundle":        {ociShim, nil, ""},
		"another's shim":   {"containerd-shim-runsc-v1", map[string]string{"runtime": "runsc", "options.json": "{}"}, ""},
		"too many options": {ociShim, map[string]string{"runtime": "runc", "options.json": strings.Repeat("x", 1000)}, ""},
	} {
		dir, bundle := t.TempDir(), t.TempDir()
		at := filepath.Join(dir, c.shim)
		err := os.WriteFile(at, self, 0o700)
		for name, text := range c.files {
			err = errors.Join(err, os.WriteFile(filepath.Join(bundle, name), []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), at)
		cmd.Dir, cmd.Env = bundle, append(os.Environ(), asShim+"=1")
		in, err := cmd.StdinPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Skipf("cannot start a copy of this test: %v", err)
		}
		if got := calledBy([]process{"", process(fmt.Sprintf("/proc/%d", cmd.Process.Pid))}); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// asShim has this test's program wait, as a shim does.
const asShim = "TARE_TEST_AS_SHIM"

func TestMain(m *testing.M) {
	if os.Getenv(asShim) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// TestRootIn: a node's mount table names the file system of a container's root and its snapshotter.
func TestRootIn(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	at := " /run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id + "/rootfs rw - "
	for _, c := range []struct{ line, id, want string }{
		{"77 1 0:50 /" + at + "overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/3/fs", id, "overlay, snapshotter overlayfs"},
		{"77 1 8:1 /var/lib/containerd/io.containerd.snapshotter.v1.native/snapshots/40" + at + "ext4 /dev/sda1 rw", id, "ext4, snapshotter native"},
		{"77 1 253:4 /" + at + "ext4 /dev/mapper/pool-snap-4 rw", id, "ext4 on a block device"},
		{"77 1 0:60 /" + at + "erofs none ro", id, "erofs"},
		{"77 1 0:50 / / rw - overlay overlay rw", id, ""},
		{"77 1 0:50 / / rw - overlay overlay rw", "", "overlay"},
		{"no table", "", ""},
	} {
		if got := rootIn(strings.NewReader(c.line+"\n"), c.id); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

func TestInterfaces(t *testing.T) {
	const table = "Inter-|   Receive\n face |bytes\n    lo: 1 2\n  eth0: 3 4\ntap0_kata: 5 6\n  net1: 7 8\n"
	if got := interfaces(table); got != "eth0 net1" {
		t.Errorf("%q", got)
	}
}

// TestAround: what this host tells of this test's own process is there, and a group without processes is no error.
func TestAround(t *testing.T) {
	p := process("/proc/self")
	if p.root("") == "" || p.parent() == "" {
		t.Errorf("root %q, parent %q", p.root(""), p.parent())
	}
	h, err := cgroup.Detect()
	if err != nil {
		t.Skipf("no control groups on this host: %v", err)
	}
	if a := around(h.Open("tare/none")); a.Kernel == "" || a.Root != "" {
		t.Errorf("%+v", a)
	}
}
