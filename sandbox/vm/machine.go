package vm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/agent"
	"tare/host/cgroup"
	"tare/host/spawn"
	"tare/sandbox/vm/clh"
	"tare/sandbox/vm/qmp"
)

// machine is the process of a machine monitor, QEMU or another, and the streams to it.
type machine struct {
	vmm     string // what it is: QEMU or cloudHypervisor
	proc    *spawn.Process
	cmd     *exec.Cmd
	qmp     *qmp.Client        // of QEMU
	clh     *clh.Client        // of cloud-hypervisor
	client  *agent.Client      // nil before the hello
	channel io.ReadWriteCloser // to the agent
	sent    sends              // what goes into it
	kernel  string             // that it is to boot, and where that is from
	console *console
	said    spawn.Tail // on standard error
	stderr  *spawn.Sink
	greeted time.Time   // QEMU answered
	resumed time.Time   // a saved machine runs; zero for one that booted
	hello   time.Time   // the agent did
	closed  atomic.Bool // the guest has closed the agent's port
	reset   atomic.Bool // the guest has reset its processor, and was ended
}

// power starts a machine monitor and returns when it answers. The returned machine is not nil if
// the process was started, also when it then failed, so that the caller can end it.
func power(ctx context.Context, binary string, h *hardware, opts spawn.Options) (m *machine, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if h.vmm == cloudHypervisor {
		return powerCLH(ctx, binary, h, opts)
	}
	var ours [3]net.Conn
	theirs := []**os.File{&h.qmp, &h.agent, &h.console}
	defer func() {
		for i := range theirs {
			if *theirs[i] != nil {
				_ = (*theirs[i]).Close()
			}
			if m == nil && ours[i] != nil {
				_ = ours[i].Close()
			}
		}
	}()
	for i := range ours {
		if ours[i], *theirs[i], err = socketPair(); err != nil {
			return nil, err
		}
	}
	started, err := launch(binary, h.line(), h, opts)
	if err != nil {
		return nil, err
	}
	m = started
	m.channel, m.sent.to = ours[1], ours[1]
	for _, f := range theirs { // before anything is waited for: QEMU's end must show
		_ = (*f).Close()
	}
	m.console = listen(ours[2])
	if m.qmp, err = qmp.Connect(ctx, ours[0], m.event); err != nil {
		return m, err
	}
	m.greeted = time.Now()
	return m, nil
}

// launch starts the process of a machine monitor.
func launch(binary string, l *line, h *hardware, opts spawn.Options) (*machine, error) {
	cmd := exec.Command(binary, l.args...) //nolint:gosec // the machine monitor of this host
	cmd.Dir, cmd.ExtraFiles = h.dir, l.files
	// The marker is for clean.
	cmd.Env = append(os.Environ(), spawn.Marker+"="+h.name)
	m := &machine{vmm: cmp.Or(h.vmm, theQEMU), cmd: cmd, kernel: h.files.Origin()}
	var err error
	if m.stderr, err = spawn.NewSink(&m.said, nil); err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = m.stderr.Child, m.stderr.Child
	m.proc, err = spawn.Start(opts, cmd)
	m.stderr.Started()
	if err != nil {
		m.stderr.Close()
		return nil, err
	}
	return m, nil
}

// version is the machine monitor's name and version.
func (m *machine) version() string {
	if m.clh != nil {
		return m.vmm + " " + m.clh.Version()
	}
	return m.vmm + " " + m.qmp.Version().String()
}

// socketPair makes a pair of connected stream sockets, one of them for a child.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket: %w", err)
	}
	mine := os.NewFile(uintptr(fds[0]), "socket")
	theirs = os.NewFile(uintptr(fds[1]), "socket")
	ours, err = net.FileConn(mine) // of a copy
	if err = errors.Join(err, mine.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// greet waits for the agent's hello.
func (m *machine) greet(ctx context.Context) (err error) {
	if m.client, err = agent.Connect(ctx, m.channel, &m.sent); err != nil {
		return err
	}
	m.hello = time.Now()
	return nil
}

// event hears from QEMU. When the guest closes the agent's port the host's end stays
// open, and whoever waits for the agent would wait for ever.
func (m *machine) event(e qmp.Event) {
	if e.Name != "VSERPORT_CHANGE" {
		return
	}
	var change struct {
		ID   string `json:"id"`
		Open bool   `json:"open"`
	}
	if json.Unmarshal(e.Data, &change) == nil && change.ID == "agent" && !change.Open {
		m.closed.Store(true)
		_ = m.channel.Close()
	}
}

// needs ends the channel when a daemon ends: a guest whose files are gone waits for
// them for ever, and so would whoever waits for the guest.
func (m *machine) needs(s *share) {
	<-s.proc.Done()
	_ = m.channel.Close()
}

// endsSoon is how long explain waits for QEMU's end: a guest whose kernel panics
// loses its agent a moment before QEMU sees it.
const endsSoon = time.Second

// explain adds to an error why it came to it: the guest's panic, QEMU's end, a port
// that the guest closed; and the last that QEMU and the guest's console said.
func (m *machine) explain(err error) error {
	select {
	case <-m.proc.Done():
		m.stderr.Drain(endsSoon)
		m.console.drain(endsSoon)
		switch {
		case m.reset.Load():
			err = fmt.Errorf("%w; the guest reset itself and was stopped", err)
		case m.cmd.ProcessState.Success():
			err = fmt.Errorf("%w; the machine has been switched off", err)
		default:
			err = fmt.Errorf("%s has ended (%s): %w", m.vmm, m.cmd.ProcessState, err) // first: reports cut long reasons
		}
	case <-time.After(endsSoon):
		if m.closed.Load() {
			err = fmt.Errorf("%w; the guest has closed its channel", err)
		}
	}
	err = m.console.explain(fmt.Errorf("%w%s", err, spawn.Says(&m.said)), m.client == nil)
	if m.kernelMayBeBad() {
		err = fmt.Errorf("%w; the guest's kernel was %s", err, m.kernel)
	}
	return err
}

// kernelMayBeBad says whether a boot has failed in a way that a bad kernel makes it fail: it hangs,
// panics, resets itself, or QEMU refuses it by name. All else that QEMU gives up for, as
// for a wrong argument or "Could not access KVM kernel module", has other causes.
func (m *machine) kernelMayBeBad() bool {
	if m.client != nil {
		return false
	}
	said := m.said.String()
	return !m.gaveUp() || strings.Contains(said, "kernel") && !strings.Contains(said, "kernel module")
}

// gaveUp says whether QEMU has ended by itself: neither did it end well, nor was it killed,
// as the host's kernel kills where memory is short.
func (m *machine) gaveUp() bool {
	select {
	case <-m.proc.Done():
	default:
		return false
	}
	st := m.cmd.ProcessState
	status, ok := st.Sys().(syscall.WaitStatus)
	killed := ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	return !st.Success() && !killed
}

// off lets the guest end itself, which it does when its channel ends, and waits. QEMU
// that fails or is killed meanwhile is an error.
func (m *machine) off(ctx context.Context) error {
	_ = m.channel.Close()
	select {
	case <-m.proc.Done():
		if !m.cmd.ProcessState.Success() {
			return errors.New("the virtual machine did not shut down")
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the guest does not power off: %w", ctx.Err())
	}
}

// close ends the process and all that belongs to it here. It is idempotent. The connections end
// first: a process that cannot be killed yet must not keep who waits for it.
func (m *machine) close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	_ = m.channel.Close()
	select {
	case <-m.proc.Done():
	default:
		_ = m.cmd.Process.Kill()
	}
	var err error
	if m.qmp != nil {
		err = m.qmp.Close()
	}
	if m.clh != nil {
		err = m.clh.Close()
	}
	if m.client != nil {
		err = errors.Join(err, m.client.Close())
	}
	m.console.close()
	select {
	case <-m.proc.Done():
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("%s, process %d, does not end: %w", m.vmm, m.proc.Pid, ctx.Err()))
	}
	m.stderr.Close() // last: what QEMU says at its end is kept
	return err
}

// sends is what is told the agent. It notes when one message had been.
type sends struct {
	to    io.Writer
	noted atomic.Pointer[time.Time]
	armed atomic.Bool
}

// note has the time of the next message noted.
func (s *sends) note() { s.armed.Store(true) }

// Write passes on.
func (s *sends) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	if err == nil && s.armed.CompareAndSwap(true, false) {
		now := time.Now()
		s.noted.Store(&now)
	}
	return n, err
}

// inGroup starts processes in a group.
func inGroup(h *cgroup.Hierarchy, g *cgroup.Group) spawn.Options {
	return spawn.Options{Hierarchy: h, Group: g.Rel()}
}
