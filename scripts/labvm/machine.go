package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tare/agent"
	"tare/host/rootfs"
	"tare/host/spawn"
	"tare/sandbox"
)

const (
	bootWithin = 4 * time.Minute  // emulated, on a busy machine
	kvmWithin  = 15 * time.Second // until the kernel's first output; where KVM works it takes one
	memory     = "3072"           // MiB
	processors = "2"
)

const (
	kvm = "kvm"
	tcg = "tcg"
)

// errNoQEMU says that this host cannot boot a machine.
var errNoQEMU = errors.New("cannot find qemu-system-x86_64; run scripts/setup.sh run, or install qemu-system-x86")

// errNoKVM says that no kernel starts with KVM, although /dev/kvm can be opened.
var errNoKVM = errors.New("no kernel starts with KVM")

// vm is the running machine.
type vm struct {
	accel  string
	dir    string // of the socket and the console's output
	proc   *spawn.Process
	cmd    *exec.Cmd
	conn   net.Conn
	client *agent.Client
	said   spawn.Tail
}

// boot starts a machine from two disks and waits until it accepts commands. It uses KVM if a
// kernel starts with it. Only a try can show that; cache keeps the answer until this host
// boots again. line is added to the kernel's command line.
func boot(ctx context.Context, cache string, d disk, tools, line string) (*vm, error) {
	accel, remember := known(cache)
	if accel == tcg {
		return start(ctx, tcg, d, tools, line)
	}
	m, err := start(ctx, kvm, d, tools, line)
	if !errors.Is(err, errNoKVM) {
		return m, err
	}
	if m, err = start(ctx, tcg, d, tools, line); err == nil {
		err = remember()
	}
	return m, err
}

// known says which accelerator to try first.
func known(cache string) (accel string, remember func() error) {
	dev, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return tcg, nil
	}
	_ = dev.Close()
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	file := filepath.Join(cache, "no-kvm")
	if old, err := os.ReadFile(file); err == nil && len(id) > 0 && bytes.Equal(old, id) { //nolint:gosec // our own cache
		return tcg, nil
	}
	return kvm, func() error { return os.WriteFile(file, id, 0o600) } //nolint:gosec // our own cache
}

// arguments are those of QEMU. The disks are NVMe: Debian's cloud kernel has that driver
// built in, so no initramfs is needed.
func arguments(accel, dir string, d disk, tools, more string) []string {
	cpu, line := "host", "root=/dev/nvme0n1 rw console=ttyS0 panic=-1 net.ifnames=0"
	// A fixed identity: without it systemd takes this for the first boot of an installation.
	line += " systemd.machine_id=7a7265000000400080006c61626c6162 systemd.firstboot=off systemd.show_status=no"
	if more != "" {
		line += " " + more
	}
	if accel == tcg {
		cpu = "max"
		line += " quiet mitigations=off tsc=reliable no_timer_check"
	}
	out := strings.Fields("-nodefaults -no-user-config -display none -no-reboot -nic none -machine q35,accel=" + accel +
		" -cpu " + cpu + " -smp " + processors + " -m " + memory)
	return append(out, "-name", "tare-lab", "-kernel", d.kernel, "-append", line,
		"-chardev", "file,id=ser,path="+filepath.Join(dir, "console"), "-serial", "chardev:ser",
		"-chardev", "socket,id=ag,path="+filepath.Join(dir, "agent")+",server=on,wait=off",
		"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=ag,name=lab.agent", "-device", "virtio-rng-pci",
		"-drive", "if=none,id=root,format=raw,snapshot=on,file="+d.root,
		"-drive", "if=none,id=tools,format=raw,readonly=on,file="+tools,
		"-device", "nvme,id=disks,serial=lab", "-device", "nvme-ns,bus=disks,nsid=1,drive=root", "-device", "nvme-ns,bus=disks,nsid=2,drive=tools")
}

func start(ctx context.Context, accel string, d disk, tools, more string) (_ *vm, err error) {
	qemu, ok := rootfs.Lookup("qemu-system-x86_64")
	if !ok {
		return nil, errNoQEMU
	}
	m := &vm{accel: accel}
	if m.dir, err = os.MkdirTemp("", "tare-lab-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = m.explain(fmt.Errorf("the machine did not boot with %s: %w", accel, err))
			m.off()
		}
	}()
	m.cmd = &exec.Cmd{Path: qemu, Args: append([]string{qemu}, arguments(accel, m.dir, d, tools, more)...), Stdout: &m.said, Stderr: &m.said}
	if m.proc, err = spawn.Start(spawn.Options{}, m.cmd); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, bootWithin)
	defer cancel()
	if m.conn, err = m.dial(ctx); err != nil {
		return nil, err
	}
	if accel == kvm {
		if err := m.speaks(ctx); err != nil {
			return nil, err
		}
	}
	m.client, err = agent.Connect(ctx, m.conn, m.conn)
	return m, err
}

// speaks waits for the kernel's first output on the console, without quiet on its command
// line. If KVM does not work, QEMU ends, or the processor hangs for ever.
func (m *vm) speaks(ctx context.Context) error {
	late := time.After(kvmWithin)
	for {
		console, _ := os.ReadFile(filepath.Join(m.dir, "console"))
		if bytes.Contains(console, []byte("Linux version")) {
			return nil
		}
		select {
		case <-m.proc.Done():
			return fmt.Errorf("%w: QEMU ended", errNoKVM)
		case <-late:
			return fmt.Errorf("%w within %s", errNoKVM, kvmWithin)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// dial connects to QEMU's end of the agent's port.
func (m *vm) dial(ctx context.Context) (net.Conn, error) {
	for {
		c, err := net.Dial("unix", filepath.Join(m.dir, "agent"))
		if err == nil {
			return c, nil
		}
		select {
		case <-m.proc.Done():
			if m.accel == kvm {
				return nil, fmt.Errorf("%w: QEMU ended", errNoKVM)
			}
			return nil, errors.New("QEMU ended")
		case <-ctx.Done():
			return nil, err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// explain adds the last output of QEMU and the console.
func (m *vm) explain(err error) error {
	if said := strings.TrimSpace(m.said.String()); said != "" {
		err = fmt.Errorf("%w; QEMU says: %s", err, said)
	}
	console, _ := os.ReadFile(filepath.Join(m.dir, "console"))
	const most = 2000
	if len(console) > most {
		console = console[len(console)-most:]
	}
	if len(console) > 0 {
		err = fmt.Errorf("%w; the end of its console: %s", err, console)
	}
	return err
}

// off ends the machine. Nothing on its disks is kept.
func (m *vm) off() {
	if m.conn != nil {
		_ = m.conn.Close()
	}
	if m.proc != nil {
		_ = m.cmd.Process.Kill()
		_, _ = m.proc.Wait()
	}
	_ = os.RemoveAll(m.dir)
}

// run runs a command as root in the machine and returns its standard output. Both streams
// go to log too.
func (m *vm) run(ctx context.Context, log *journal, args ...string) (string, int, error) {
	log.printf("$ %s\n", shown(args))
	var out bytes.Buffer
	cmd := sandbox.Command{Args: args, Stdout: io.MultiWriter(&out, log), Stderr: log}
	exit, err := m.client.Run(ctx, cmd)
	if err != nil {
		return out.String(), -1, m.explain(err)
	}
	if exit.Code != 0 {
		log.printf("[exit code %d]\n", exit.Code)
	}
	return out.String(), exit.Code, nil
}

// shown is a command for a log. It shows only the first line of a script; a script whose
// commands must be seen runs with sh -x.
func shown(args []string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(strings.Join(args, " ")), "\n")
	if strings.TrimSpace(rest) != "" {
		line += " ..."
	}
	return line
}
