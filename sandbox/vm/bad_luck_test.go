package vm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/host/state/statetest"
	"tare/sandbox"
	"tare/sandbox/sandboxtest"
	"tare/sandbox/vm/boot"
)

// host takes the host for a test with real machines.
func host(t *testing.T) *Hypervisor {
	t.Helper()
	if testing.Short() {
		t.Skip("boots machines")
	}
	statetest.HostLock(t)
	k := kind(t)
	works.Do(func() { noMachines = k.Check(t.Context()) })
	if noMachines != nil {
		t.Skip("no machines on this host: ", noMachines)
	}
	return k
}

// One trial boot is enough for all tests.
var (
	works      sync.Once
	noMachines error
)

// spec is one of a small machine; nothing of it may be left at the test's end.
func spec(t *testing.T) sandbox.Spec {
	t.Helper()
	name := fmt.Sprintf("bad-vm-%d-%d", os.Getpid(), time.Now().UnixNano()%1e6)
	statetest.Unchanged(t, name)
	dir := t.TempDir()
	s := sandbox.Spec{
		Want:   sandbox.Want{Name: name, Options: map[string]string{paramMemory: "256"}},
		Dir:    filepath.Join(dir, "own"),
		Mounts: sandboxtest.MountsAtData(filepath.Join(dir, "data")),
		Root:   sandboxtest.Root(t),
	}
	for _, d := range []string{s.Dir, s.Mounts[0].Source} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func startVM(t *testing.T, k *Hypervisor, s sandbox.Spec) *instance {
	t.Helper()
	i, err := k.start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := i.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return i
}

// shell runs a shell in the machine and returns what the harness is told.
func shell(ctx context.Context, i *instance, script string) (sandbox.Exit, string, error) {
	var out bytes.Buffer
	exit, err := i.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out})
	return exit, out.String(), err
}

// soon is when whoever waits for a machine that has died must know: far above what it takes on
// a busy host, far below a wait without end.
const soon = time.Minute

// tells holds that an error came in time and says what a user needs to know.
func tells(t *testing.T, begun time.Time, err error, words ...string) {
	t.Helper()
	t.Logf("after %.1f s: %v", time.Since(begun).Seconds(), err)
	if took := time.Since(begun); took > soon {
		t.Errorf("it took %v", took)
	}
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q", w)
		}
	}
}

func TestGuestPanics(t *testing.T) {
	k := host(t)
	i := startVM(t, k, spec(t))
	begun := time.Now()
	_, out, err := shell(t.Context(), i, "echo c > /proc/sysrq-trigger; while :; do :; done")
	tells(t, begun, err, "kernel panicked (sysrq triggered crash)", "sysrq: Trigger a crash")
	if out != "" {
		t.Log(out)
	}
	// Whatever is asked then says so too, at once.
	begun = time.Now()
	_, _, err = shell(t.Context(), i, "true")
	tells(t, begun, err, "kernel panicked")
}

// TestGuestMemoryIsFull: with the memory full of files, which cannot be killed, what the
// kernel kills is the command, and not the agent.
func TestGuestMemoryIsFull(t *testing.T) {
	k := host(t)
	i := startVM(t, k, spec(t))
	begun := time.Now()
	exit, out, err := shell(t.Context(), i, `for f in /dev/shm/file /tmp/file; do while printf '%1000000s' x >> $f; do :; done; done
		x=0123456789; while :; do x=$x$x; done`)
	t.Logf("after %.1f s: %+v, %q, %v", time.Since(begun).Seconds(), exit, out, err)
	if err != nil || !exit.OOM || exit.Signal != "SIGKILL" {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestGuestLosesItsChannel(t *testing.T) {
	k := host(t)
	i := startVM(t, k, spec(t))
	begun := time.Now()
	ended := make(chan error, 1)
	go func() {
		_, _, err := shell(t.Context(), i, "while :; do :; done")
		ended <- err
	}()
	if err := i.machine.qmp.Run(t.Context(), "device_del", map[string]any{"id": "agent"}, nil); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	tells(t, begun, err, "the sandbox ended; the machine has been switched off", "no such device")
}

func TestGuestStandsStill(t *testing.T) {
	k := host(t)
	i := startVM(t, k, spec(t))
	if err := i.machine.qmp.Run(t.Context(), "stop", nil, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	_, _, err := shell(ctx, i, "true")
	tells(t, begun, err)
}

// killed ends a process of the machine in the middle of a command.
func killed(t *testing.T, i *instance, pid int) (time.Time, error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, _, err := shell(t.Context(), i, "while :; do /bin/sh -c 'echo x > /data/file'; done")
		ended <- err
	}()
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		return begun, err
	case <-time.After(soon):
		t.Fatal("a command in a machine that was killed does not end")
		return begun, nil
	}
}

func TestQEMUIsKilled(t *testing.T) {
	k := host(t)
	i := startVM(t, k, spec(t))
	begun, err := killed(t, i, i.machine.proc.Pid)
	tells(t, begun, err, "QEMU has ended (signal: killed)")
}

func TestVirtiofsdIsKilled(t *testing.T) {
	i := startVM(t, host(t), spec(t))
	// The first is that of the root: the commands that are to end it need it.
	begun, err := killed(t, i, i.shares[1].proc.Pid)
	tells(t, begun, err, "virtiofsd for data has ended (signal: killed)")
}

// TestBootFails: machines that never get as far as the agent.
func TestBootFails(t *testing.T) {
	k := host(t)
	good, err := k.cfg.Boot.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, init, kernel string
		says               []string
	}{
		// A script cannot be run without a shell: the kernel finds no init.
		{"panics", "#!/bin/sh\n", "", []string{"kernel panicked (No working init found."}},
		{"hangs", hangs(), "", []string{"did not start within %v", "; the guest's kernel was " + good.Origin(), "its console ends with: still here"}},
		{"is none", "", "no kernel at all", []string{"kernel", "/boot/vmlinuz-1, as " + boot.KernelVariable + " names it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := good
			bad.Initramfs = filepath.Join(t.TempDir(), "initramfs.cpio")
			if err := os.WriteFile(bad.Initramfs, archive(t, c.init), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.kernel != "" {
				bad.Kernel, bad.Package = filepath.Join(t.TempDir(), "vmlinuz"), "/boot/vmlinuz-1"
				if err := os.WriteFile(bad.Kernel, []byte(strings.Repeat(c.kernel, 4096)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			k := New(Config{Boot: given(bad), StateDir: k.cfg.StateDir, CacheDir: k.cfg.CacheDir})
			var begun time.Time
			var err error
			// A busy host may need longer until the kernel has started its first program.
			for k.within = 4 * time.Second; k.within < soon; k.within *= 3 {
				begun = time.Now()
				var i sandbox.Instance
				if i, err = k.Start(t.Context(), spec(t)); err == nil {
					_ = i.Stop(context.Background())
				} else if strings.Contains(err.Error(), c.says[len(c.says)-1]) {
					break
				}
			}
			says := slices.Clone(c.says)
			says[0] = strings.Replace(says[0], "%v", k.within.String(), 1)
			tells(t, begun, err, says...)
		})
	}
}

// given is a Source of files that are there.
type given boot.Files

func (g given) Get(context.Context) (boot.Files, error) { return boot.Files(g), nil }
func (g given) Find() (boot.Files, bool, error)         { return boot.Files(g), true, nil }

func TestTapIsInUse(t *testing.T) {
	k := host(t)
	s := spec(t)
	b, err := network.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if s.Network, err = b.Attach(s.Name); err != nil {
		t.Fatal(err)
	}
	taken, err := network.Tap(s.Network, 1)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err = k.Start(t.Context(), s)
	tells(t, begun, err, "is in use by process", "stop that process")
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	startVM(t, k, s) // it is not in use any more
}

// TestQEMUThatIsNone has a program in QEMU's place.
func TestQEMUThatIsNone(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"old":    {"echo 'QEMU emulator version 4.2.1 (Debian 1:4.2-3)'", "QEMU 4.2.1 (Debian 1:4.2-3) is too old"},
		"other":  {"echo hello", "its --version is neither QEMU's"},
		"broken": {"echo no such library >&2; exit 127", "no such library"},
		"silent": {"sleep 60", "no answer within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "qemu-system-x86_64"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			begun := time.Now()
			_, err := kind(t).Start(t.Context(), sandbox.Spec{Want: sandbox.Want{Name: "bad-vm-qemu"}})
			tells(t, begun, err, c.says, "apt-get install")
		})
	}
}
