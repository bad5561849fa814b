package boot_test

import (
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
	"testing"
	"time"

	"tare/agent"
	"tare/internal/guest"
	"tare/internal/image"
	"tare/internal/state/statetest"
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
	qmp    net.Conn
	serial string
	done   chan error
}

func start(t *testing.T, f boot.Files, args ...string) *machine {
	dir := t.TempDir()
	m := &machine{serial: filepath.Join(dir, "serial.log"), done: make(chan error, 1)}
	sock := func(n string) string { return filepath.Join(dir, n) }
	cmd := exec.Command("qemu-system-x86_64", append([]string{
		"-name", "tare-boot-test", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35,accel=tcg", "-cpu", "max", "-kernel", f.Kernel, "-initrd", f.Initramfs,
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable",
		"-chardev", "file,id=ser,path=" + m.serial, "-serial", "chardev:ser",
		"-qmp", "unix:" + sock("qmp") + ",server=on,wait=off",
		"-device", "virtio-serial-pci,id=vs0", "-chardev", "socket,id=ag,path=" + sock("agent") + ",server=on,wait=off",
		"-device", "virtserialport,bus=vs0.0,chardev=ag,name=" + guest.PortName,
	}, args...)...)
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
			b, _ := os.ReadFile(m.serial)
			t.Logf("console:\n%s\n%s", b, stderr.String())
		}
	})
	go func() { m.done <- cmd.Wait(); close(m.done) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn := m.dial(ctx, t, sock("agent"))
	m.qmp = m.dial(ctx, t, sock("qmp"))
	client, err := agent.Connect(ctx, conn, conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("hello after %s", time.Since(began).Round(time.Millisecond))
	m.client = client
	t.Cleanup(func() { _ = conn.Close() })
	return m
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
	for _, program := range []string{"sh", "cat", "ls", "uname", "sleep", "hostname"} {
		copyWithLibraries(t, tree, program)
	}
	file := filepath.Join(dir, "root.ext4")
	if out, err := exec.Command("mke2fs", "-q", "-t", "ext4", "-d", tree, file, "64M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func TestBoot(t *testing.T) {
	for _, tool := range []string{"qemu-system-x86_64", "mke2fs"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: scripts/setup.sh run", tool)
		}
	}
	statetest.HostLock(t)
	f, err := source(t).Get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	m := start(t, f, "-smp", "1,maxcpus=2", "-m", "256",
		"-drive", "if=none,id=d0,format=raw,readonly=on,file="+block(t), "-device", "virtio-blk-pci,drive=d0,serial=root")
	now := time.Now()
	up := m.call(t, guest.OpSetUp, guest.Setup{
		Hostname: "weighed", Now: now, Root: guest.Mount{Kind: guest.MountBlock, Source: "root"},
		Address: netip.Prefix{},
	})
	if up.Kernel != f.Version || up.CPUs != 1 {
		t.Errorf("the guest is %+v", up)
	}
	fmt.Println(m.sh(t, "uname -a; cat /proc/mounts /proc/self/limits /proc/modules; ls -l / /dev"))
}
