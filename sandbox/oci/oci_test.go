package oci

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/host/state/statetest"
	"tare/internal/rootless"
	"tare/internal/tinyelf"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m.Run)) }

func kind(name, runtime string, args ...string) *Runtime {
	return New(Config{
		Name: name, About: "a runtime under test", Runtime: runtime, Args: args,
		Install: "apt-get install " + runtime, StateDir: stateDir(),
	})
}

// stateDir is on a disk: /run may be mounted noexec.
func stateDir() string {
	if rootless.Is() {
		return filepath.Join(os.TempDir(), "test-oci")
	}
	return "/var/lib/tare/test-oci"
}

func TestOrdinaryUser(t *testing.T) { sandboxtest.AsOrdinary(t, "TestContract") }

// TestContract: crun is driven as runc, and gVisor alike on both platforms. The second of each has
// the brief suite, or with TARE_CONTRACT=all, as `make lab-vm` has it, the whole one.
func TestContract(t *testing.T) {
	for _, k := range []*Runtime{
		kind("runc", "runc"),
		kind("crun", "crun"),
		kind("runsc-systrap", "runsc", "--platform=systrap", "--network=sandbox"),
		kind("runsc-ptrace", "runsc", "--platform=ptrace", "--network=sandbox"),
	} {
		t.Run(k.Name(), func(t *testing.T) {
			noBlock := ""
			if k.gvisor() {
				noBlock = "gVisor has no block devices of the host"
			}
			sandboxtest.Run(t, k, sandboxtest.Options{
				NoBlock: noBlock,
				Brief:   slices.Contains([]string{"crun", "runsc-ptrace"}, k.Name()) && os.Getenv("TARE_CONTRACT") != "all",
			})
			if left, _ := filepath.Glob(filepath.Join(RootDir(), k.Name(), "*")); len(left) > 0 {
				t.Errorf("left in the runtime's directory: %v", left)
			}
		})
	}
}

// TestKVM: where KVM does not work the kind must say so, and soon.
func TestKVM(t *testing.T) {
	statetest.HostLock(t)
	k := kind("runsc-kvm", "runsc", "--platform=kvm", "--network=sandbox")
	if _, err := k.binary(); err != nil {
		t.Skip(err)
	}
	// Where KVM works gVisor starts in tenths of a second. The bound of users is for emulated machines.
	k.within = 5 * time.Second
	begun := time.Now()
	err := k.Check(t.Context())
	switch {
	case err == nil:
		t.Skip("KVM works here")
	case strings.Contains(err.Error(), "is not known: the host is too busy to tell"):
		t.Skip(err)
	}
	if !strings.Contains(err.Error(), "runsc-kvm does not work on this host") {
		t.Errorf("got %v", err)
	}
	// Some hypervisors let it open /dev/kvm and then hang; the check gives up after its bound.
	if took := time.Since(begun); took > k.within+30*time.Second {
		t.Errorf("took %v", took)
	}
	t.Log(err)
}

// script writes a runtime that is a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runtime")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBadRuntimes: a runtime that fails, hangs or talks nonsense must not keep
// Start, and nothing of the sandbox may be left.
func TestBadRuntimes(t *testing.T) {
	statetest.HostLock(t)
	for name, c := range map[string]struct{ text, want string }{
		"fails":    {"echo no such luck >&2; exit 3\n", "no such luck"},
		"hangs":    {"exec sleep 1000\n", "deadline"},
		"nonsense": {"echo garbage garbage garbage garbage; exec sleep 1000\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := kind("bad", script(t, c.text))
			k.known = true // no probing
			within := 500 * time.Millisecond
			if name == "fails" {
				within = 20 * time.Second // it ends by itself, late on a busy host
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			spec := sandbox.Spec{Want: sandbox.Want{Name: "bad-" + name}, Dir: t.TempDir(), Root: t.TempDir()}
			begun := time.Now()
			_, err := k.Start(ctx, spec)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			left, _ := filepath.Glob("/sys/fs/cgroup/*/tare/" + spec.Name)
			if files, _ := os.ReadDir(spec.Dir); len(left)+len(files) > 0 {
				t.Errorf("left: %v %v", left, files)
			}
			_ = os.RemoveAll(filepath.Join(RootDir(), "bad"))
		})
	}
}

// TestCheckSaysWhatHung: a runtime that hangs or babbles is told with the command
// and the time, and without quoting silence.
func TestCheckSaysWhatHung(t *testing.T) {
	statetest.HostLock(t)
	for name, c := range map[string]struct {
		text      string
		want, not []string
	}{
		"hangs":  {"exec sleep 1000\n", []string{"run --bundle", "did not finish within ", "was killed", "by hand"}, []string{"it says"}},
		"silent": {"exit 0\n", []string{"did not answer"}, []string{"it says", "standard output"}},
		"quits":  {"exit 7\n", []string{"did not answer, exit code 7"}, []string{"it says"}},
		"talks":  {"echo I am no runtime; echo no luck >&2\n", []string{`its standard output was "I am no runtime\n"`, "it says: no luck"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := kind("bad", script(t, c.text))
			if name == "hangs" {
				k.within = time.Second // the others end by themselves
			}
			err := k.Check(t.Context())
			if err == nil {
				t.Fatal("it passed")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			for _, w := range c.not {
				if strings.Contains(err.Error(), w) {
					t.Errorf("%q says %q", err, w)
				}
			}
		})
	}
}

// TestDeleteHangs: the step that hung is named, and the trial's time is overrun
// by no more than a few seconds. The rest of the runtime is runc.
func TestDeleteHangs(t *testing.T) {
	statetest.HostLock(t)
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("runc is not installed")
	}
	k := kind("bad", script(t, "for a in \"$@\"; do test \"$a\" = delete && exec sleep 1000; done\nexec runc \"$@\"\n"))
	k.known = true // no probing
	dir, root := t.TempDir(), t.TempDir()
	code, err := tinyelf.Hello()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "tare-hello"), code, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"proc", "sys", "dev", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	begun := time.Now()
	spec := sandbox.Spec{Want: sandbox.Want{Name: "bad-delete"}, Dir: dir, Root: root}
	_, err = k.Launch(ctx, spec, sandbox.Command{Args: []string{"/tare-hello"}}, sandbox.Phased)
	if err == nil || !strings.Contains(err.Error(), "delete --force bad-delete` did not finish within") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > 20*time.Second { // of the 1000 s that the runtime sleeps
		t.Errorf("took %v, its time was 4 s", took)
	}
	left, _ := filepath.Glob("/sys/fs/cgroup/*/tare/" + spec.Name)
	if files, _ := os.ReadDir(dir); len(left)+len(files) > 0 {
		t.Errorf("left: %v %v", left, files)
	}
	_ = os.RemoveAll(filepath.Join(RootDir(), "bad"))
}

func TestRoles(t *testing.T) {
	roles := ThreadRoles("/usr/sbin/runc")
	for _, c := range []struct {
		args []string
		want record.ThreadRole
	}{
		// As seen on Debian 12 with runc 1.1.5 and runsc of September 2026.
		{[]string{"/usr/sbin/runc", "--root", "/run/tare/oci/runc", "run"}, record.RoleShim},
		{[]string{"runsc-sandbox", "--platform=systrap", "boot"}, record.RoleSentry},
		{[]string{"runsc-gofer", "--platform=systrap", "gofer"}, record.RoleGofer},
		{nil, record.RoleWorkload}, // the sentry's stub processes
		{[]string{"/tare", "internal", "agent"}, record.RoleHarness},
		{[]string{"/tare", "internal", "net"}, record.RoleWorkload},
		{[]string{"fio", "--name=x"}, record.RoleWorkload},
	} {
		if got := roles.Of(sandbox.Thread{Comm: "exe", Args: c.args}); got != c.want {
			t.Errorf("%q is %s, want %s", c.args, got, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	c, err := config(sandbox.Spec{
		Want:    sandbox.Want{Name: "s", CPULimit: 1.5, MemoryLimit: 64 << 20, CPUs: "0-1"},
		Mounts:  sandboxtest.MountsAtData("/d"),
		Network: sandbox.Network{Path: "/run/netns/tare-s"},
	}, "/tree", "/tare.scope/tare/s/c", sandbox.Command{Args: []string{"/tare-hello"}, Env: []string{"A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Linux.Resources; *r.CPU.Quota != 150_000 || *r.CPU.Period != 100_000 || r.CPU.Cpus != "0-1" || *r.Memory.Limit != 64<<20 {
		t.Errorf("resources %+v %+v", r.CPU, r.Memory)
	}
	if !c.Root.Readonly || c.Linux.CgroupsPath != "/tare.scope/tare/s/c" || c.Process.OOMScoreAdj != nil || len(c.Process.Rlimits) > 0 {
		t.Errorf("%+v", c)
	}
	if c, err := config(sandbox.Spec{}, "/tree", "/tare/s/c", sandbox.Command{}); err != nil || c.Linux.Resources.CPU != nil || c.Linux.Resources.Memory != nil {
		t.Errorf("limits from nowhere: %+v, %v", c.Linux.Resources, err)
	}
}

// BenchmarkWhole is the life of one container, each time beside a plain
// fork, exec and wait of the same `runc run`, as hyperfine does it: the
// difference is what this package adds to the figure. Medians, for a busy host.
func BenchmarkWhole(b *testing.B) {
	statetest.HostLock(b)
	k := kind("runc", "runc")
	if err := k.Check(b.Context()); err != nil {
		b.Skip(err)
	}
	root := sandboxtest.Root(b)
	hello := sandbox.Command{Args: []string{"/tare-hello"}}
	prepare := func(kind string, i int) *container {
		dir, err := os.MkdirTemp(b.TempDir(), "")
		if err != nil {
			b.Fatal(err)
		}
		c, err := k.prepare(b.Context(), sandbox.Spec{Want: sandbox.Want{Name: fmt.Sprintf("bench-%s-%d-%d", kind, os.Getpid(), i)}, Dir: dir, Root: root}, hello, false)
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	var ours, plain []float64
	for i := range b.N {
		l, err := prepare("ours", i).launch(b.Context(), hello, sandbox.Whole)
		if err != nil {
			b.Fatal(err)
		}
		ours = append(ours, l.Deleted.Seconds()*1e6)
		c := prepare("plain", i)
		run := exec.Command(c.binary, "--root", c.state, "run", "--bundle", c.bundle, c.spec.Name)
		begun := time.Now()
		if err := run.Run(); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(begun).Seconds()*1e6)
		if err := c.end(b.Context(), func(context.Context) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(ours)
	slices.Sort(plain)
	b.ReportMetric(ours[len(ours)/2], "us/life")
	b.ReportMetric(plain[len(plain)/2], "us/plain")
	b.ReportMetric(0, "ns/op") // preparing and clearing away included: of no interest
}

// TestOverlayOfGVisor: gVisor's own overlay is turned off where the root can be
// written, unless the user's arguments or parameters speak of it. Parameters are flags of runsc.
func TestOverlayOfGVisor(t *testing.T) {
	for _, c := range []struct {
		binary, upper string
		args, want    []string
		options       map[string]string
	}{
		{"/x/runsc", "/u", []string{"--platform=systrap"}, []string{"--platform=systrap", "--overlay2=none"}, nil},
		{"/x/runsc", "", []string{"--platform=systrap"}, []string{"--platform=systrap"}, nil},
		{"/x/runsc", "/u", []string{"--overlay2=root:self"}, []string{"--overlay2=root:self"}, nil},
		{"/x/runsc", "/u", []string{"-overlay2=root:memory"}, []string{"-overlay2=root:memory"}, nil},
		{"/x/runc", "/u", nil, nil, nil},
		{"/x/runsc", "/u", nil, []string{"--overlay2=all:memory"}, map[string]string{"overlay2": "all:memory", "directfs": "default"}},
		{"/x/runsc", "", []string{"--directfs"}, []string{"--directfs", "--directfs=false", "--file-access-mounts=exclusive"}, map[string]string{"directfs": "false", "file-access-mounts": "exclusive"}},
	} {
		k := kind("k", c.binary, c.args...)
		got := k.args(&container{kind: k, binary: c.binary, spec: sandbox.Spec{Want: sandbox.Want{Options: c.options}, Upper: c.upper}})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %q with upper %q: %q, want %q", c.binary, c.args, c.upper, got, c.want)
		}
	}
}
