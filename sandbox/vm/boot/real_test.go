package boot_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/agent"
	"tare/agent/guest"
	"tare/host/image"
	"tare/host/state/statetest"
	"tare/sandbox"
	"tare/sandbox/vm/boot"
)

// The test program is the guest's first process too.
func TestMain(m *testing.M) {
	if guest.IsInit(os.Args) {
		guest.Main()
	}
	os.Exit(m.Run())
}

// source makes files of the distribution's kernel and this test program.
func source(t *testing.T) *boot.Cache {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &boot.Cache{Images: &image.Builder{Cache: "/var/cache/tare/images", Say: t.Logf}, Dir: t.TempDir(), Self: self, Kernel: os.Getenv(boot.KernelVariable)}
}

// machine is a QEMU started by hand.
type machine struct {
	client *agent.Client
	conn   net.Conn // to the agent
	dir    string   // of its sockets and its console's text
	done   chan error
}

func start(t *testing.T, f boot.Files, args ...string) *machine {
	dir := t.TempDir()
	m := &machine{dir: dir, done: make(chan error, 1)}
	sock := func(n string) string { return filepath.Join(dir, n) }
	cmd := exec.Command("qemu-system-x86_64", append([]string{
		"-name", "tare-boot-test", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35,accel=tcg", "-cpu", "max", "-kernel", f.Kernel, "-initrd", f.Initramfs,
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check",
		"-chardev", "file,id=ser,path=" + sock("console"), "-serial", "chardev:ser",
		"-qmp", "unix:" + sock("qmp") + ",server=on,wait=off",
		"-device", "virtio-serial-pci,id=vs0", "-chardev", "socket,id=ag,path=" + sock("agent") + ",server=on,wait=off",
		"-device", "virtserialport,bus=vs0.0,chardev=ag,name=" + guest.PortName,
	}, args...)...)
	// QEMU makes its tap in a network of its own, which ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-m.done
		if t.Failed() {
			b, _ := os.ReadFile(sock("console"))
			t.Logf("console:\n%s\n%s", b, stderr.String())
		}
	})
	go func() { m.done <- cmd.Wait(); close(m.done) }()
	m.connect(t)
	t.Logf("hello after %s", time.Since(began).Round(time.Millisecond))
	return m
}

// connect waits for the agent's hello.
func (m *machine) connect(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m.conn = m.dial(ctx, t, filepath.Join(m.dir, "agent"))
	t.Cleanup(func() { _ = m.conn.Close() })
	var err error
	if m.client, err = agent.Connect(ctx, m.conn, m.conn); err != nil {
		t.Fatal(err)
	}
}

// control gives QEMU commands: https://www.qemu.org/docs/master/interop/qmp-spec.html
func (m *machine) control(t *testing.T, commands ...string) {
	t.Helper()
	conn := m.dial(t.Context(), t, filepath.Join(m.dir, "qmp"))
	defer conn.Close()
	said := bufio.NewScanner(conn)
	for _, c := range append([]string{`{"execute": "qmp_capabilities"}`}, commands...) {
		fmt.Fprintln(conn, c)
		for said.Scan() && !strings.Contains(said.Text(), `"return"`) {
			if strings.Contains(said.Text(), `"error"`) {
				t.Fatalf("%s: %s", c, said.Text())
			}
		}
	}
}

func (m *machine) dial(ctx context.Context, t *testing.T, path string) net.Conn {
	for {
		c, err := net.Dial("unix", path)
		if err == nil {
			return c
		}
		select {
		case err := <-m.done:
			t.Fatalf("QEMU ended: %v", err)
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (m *machine) call(t *testing.T, op string, body any) guest.Up {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var up guest.Up
	began := time.Now()
	if err := m.client.Call(ctx, op, body, &up); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s took %s: %+v", op, time.Since(began).Round(time.Millisecond), up)
	return up
}

func (m *machine) sh(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	e, err := m.client.Run(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil || e.Code != 0 {
		t.Fatalf("%s: %+v, %v\n%s", script, e, err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// block makes a file with ext4 of the host's busybox-like shell and what it needs.
func block(t *testing.T) string {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	for _, d := range []string{"proc", "sys", "dev", "tmp", "data", "run"} {
		if err := os.MkdirAll(filepath.Join(tree, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"bin", "lib", "lib64"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(tree, "usr", d), 0o755), os.Symlink("usr/"+d, filepath.Join(tree, d))); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"sh", "cat", "ls", "uname", "sleep", "hostname", "date"} {
		copyWithLibraries(t, tree, program)
	}
	file := filepath.Join(dir, "root.ext4")
	if out, err := exec.Command("mke2fs", "-q", "-t", "ext4", "-d", tree, file, "64M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// TestBoot: a machine of the distribution's kernel, by QEMU alone, through its life.
func TestBoot(t *testing.T) {
	for _, tool := range []string{"qemu-system-x86_64", "mke2fs"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: scripts/setup.sh run", tool)
		}
	}
	statetest.HostLock(t)
	f, err := source(t).Get(context.Background())
	if err != nil {
		t.Skip(err)
	}
	m := start(t, f, "-smp", "2,maxcpus=3", "-m", "256M,slots=1,maxmem=1G",
		"-drive", "if=none,id=d0,format=raw,readonly=on,file="+block(t), "-device", "virtio-blk-pci,drive=d0,serial=root",
		"-netdev", "tap,id=n0,queues=2,script=no,downscript=no,ifname=tare0", "-device", "virtio-net-pci,netdev=n0,mq=on,vectors=6")

	// Another host takes the line: it gets a hello of its own, if the guest has had
	// the time to see that the first one has left.
	if err := m.conn.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	m.connect(t)

	now := time.Now()
	setup := guest.Setup{
		Hostname: "weighed", Now: now, Root: guest.Mount{Kind: guest.MountBlock, Source: "root"},
		Address: netip.MustParsePrefix("10.9.8.7/24"), MTU: 1400, MAC: "02:00:00:00:00:07",
	}
	up := m.call(t, guest.OpSetUp, setup)
	if up.Kernel != f.Version || up.CPUs != 2 || up.Memory < 150<<20 || up.Memory > 256<<20 || up.Boot <= 0 || up.Ready < up.Boot {
		t.Errorf("the guest is %+v", up)
	}
	if err := m.client.Call(t.Context(), guest.OpSetUp, setup, nil); err == nil || !strings.Contains(err.Error(), "set up already") {
		t.Errorf("a second set-up: %v", err)
	}
	for script, want := range map[string]string{
		"uname -r; hostname": f.Version + "\nweighed",
		"cat /sys/class/net/eth0/mtu /sys/class/net/eth0/address /sys/class/net/eth0/operstate /sys/class/net/lo/mtu": "1400\n02:00:00:00:00:07\nup\n65536",
		"ls -d /sys/class/net/eth0/queues/*":                                     "/sys/class/net/eth0/queues/rx-0\n/sys/class/net/eth0/queues/rx-1\n/sys/class/net/eth0/queues/tx-0\n/sys/class/net/eth0/queues/tx-1",
		"echo x 2>/dev/null >/x || echo read-only; echo x >/tmp/x && cat /tmp/x": "read-only\nx",
		"echo x >/dev/null; ls /dev /dev/fd/1; ulimit -n":                        "/dev/fd/1\n\n/dev:\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n1024",
	} {
		if got := m.sh(t, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if date := m.sh(t, "date +%s"); date < fmt.Sprint(now.Unix()) || date > fmt.Sprint(now.Add(time.Minute).Unix()) {
		t.Errorf("the clock says %s, the host's %d", date, now.Unix())
	}
	modules := m.sh(t, "cat /proc/modules")
	for name, want := range map[string]bool{"virtio_net ": true, "virtio_blk ": true, "overlay ": true, "virtiofs ": false, "virtio_rng ": false} {
		if strings.Contains(modules, name) != want {
			t.Errorf("the module %sis loaded: %t", name, !want)
		}
	}

	// What orphans leave is taken away, and no command's status with it.
	for range 3 {
		if got := m.sh(t, "(sleep 0.05 &) ; sleep 0.1; echo done"); got != "done" {
			t.Error(got)
		}
	}
	time.Sleep(3 * time.Second)
	if left := m.sh(t, "cat /proc/[0-9]*/stat"); strings.Contains(left, ") Z ") {
		t.Errorf("zombies:\n%s", left)
	}

	m.control(t, `{"execute": "device_add", "arguments": {"driver": "max-x86_64-cpu", "id": "c2", "socket-id": 0, "core-id": 2, "thread-id": 0}}`,
		`{"execute": "object-add", "arguments": {"qom-type": "memory-backend-ram", "id": "m1", "size": 134217728}}`,
		`{"execute": "device_add", "arguments": {"driver": "pc-dimm", "id": "dimm1", "memdev": "m1"}}`)
	more := m.call(t, guest.OpPlug, guest.Plug{CPUs: 3, Memory: 384 << 20})
	if more.CPUs != 3 || more.Memory < up.Memory+100<<20 {
		t.Errorf("after the plugging the guest is %+v", more)
	}

	// The harness is gone: so is the machine.
	if err := m.conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-m.done:
		if err != nil {
			t.Errorf("QEMU: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the machine lives on without its host")
	}
}
