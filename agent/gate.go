package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A gated command starts as this program: `tare internal gate PATH ARGS...`. It opens the
// program to run, reports on its socket that it is ready, waits for the moment, and then
// calls execve(2). So execve(2) is the only part of a start that comes after the moment.

// gateFD is the child's end of the socket; packets on it are gateNotes.
const gateFD = 3

// gateNote is a message of the child (Ready, then Start or Error) or to it (At). Times are
// nanoseconds of CLOCK_MONOTONIC, or of CPU.
type gateNote struct {
	Ready  bool   `json:"ready,omitempty"`
	At     int64  `json:"at,omitempty"`
	Start  int64  `json:"start,omitempty"`
	User   int64  `json:"user,omitempty"` // CPU that the wait took
	System int64  `json:"system,omitempty"`
	Error  string `json:"error,omitempty"`
}

const (
	// gateSpin is how long before the moment the child stops sleeping and polls the clock. It
	// is longer than a sleep usually ends late, even with QEMU's timer and an emulated
	// processor.
	gateSpin = 2 * time.Millisecond
	// gateLongest is how far ahead the moment may be.
	gateLongest = time.Minute
)

// Gate is `tare internal gate`. args are the program's path and its arguments, including
// argv[0]. It returns only if it could not execute that program.
func Gate(args []string, stderr io.Writer) int {
	if err := gate(args); err != nil {
		fmt.Fprintln(stderr, "tare internal gate:", err)
	}
	return 127 // as a shell's exit code for a command that it cannot start
}

// gate returns an error if it could not tell the agent why the program did not start.
func gate(args []string) error {
	if len(args) < 2 {
		return errors.New("only the agent calls this: PATH NAME [ARGUMENT...]")
	}
	unix.CloseOnExec(gateFD)
	err := become(args[0], args[1:])
	if lost := note(gateNote{Error: text(err.Error())}); lost != nil {
		return errors.Join(err, lost)
	}
	return nil
}

// become executes the program. It returns only an error.
func become(path string, args []string) error {
	// Read the program's first pages while there is time. execve reports whether it can run.
	if f, err := os.Open(path); err == nil { //nolint:gosec // running the client's commands is what an agent is for
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_WILLNEED)
		_ = f.Close()
	}
	env := os.Environ()
	runtime.LockOSThread()
	if err := note(gateNote{Ready: true}); err != nil {
		return err
	}
	buf := make([]byte, 4<<10)
	n, err := retry(func() (int, error) { return unix.Read(gateFD, buf) })
	if err != nil || n == 0 {
		return fmt.Errorf("the agent has gone: %w", errors.Join(err, io.EOF))
	}
	var when gateNote
	if err := json.Unmarshal(buf[:n], &when); err != nil {
		return fmt.Errorf("%w: the gate's moment: %w", errFrame, err)
	}
	said := gateNote{}
	if said.Start, err = waitUntil(when.At); err != nil {
		return err
	}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err == nil {
		said.User, said.System = used.Utime.Nano(), used.Stime.Nano()
	}
	if err := note(said); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, args, env)) //nolint:gosec // likewise
}

// waitUntil returns at the moment, with the clock's reading then.
func waitUntil(at int64) (now int64, err error) {
	now = monotonic()
	if at-now > int64(gateLongest) {
		return now, fmt.Errorf("the gate's moment is %s ahead", time.Duration(at-now))
	}
	if wake := at - int64(gateSpin); wake > now {
		if err := sleepUntil(wake); err != nil {
			return now, err
		}
	}
	for now = monotonic(); now < at; now = monotonic() {
	}
	return now, nil
}

func note(n gateNote) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = retry(func() (int, error) { return unix.Write(gateFD, b) })
	return err
}

func retry(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// gated is the agent's side of a command at the gate.
type gated struct {
	conn *os.File
	last gateNote      // the child's last message; valid once done is closed
	done chan struct{} // closed when the child has executed its program, or ended
}

// gateCommand returns the command line that executes the program at path at the gate, and the
// gate. The caller closes the child's end of the socket after the start.
func gateCommand(path string, b startBody) (cmd *exec.Cmd, g *gated, child *os.File, err error) {
	if _, err := exec.LookPath(path); err != nil {
		return nil, nil, nil, err
	}
	self := "/proc/self/exe" // exists even if the agent's root directory does not hold its program
	if _, err := os.Stat(self); err != nil {
		self = "/tare"
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("a gate for %s: %w", b.Args[0], err)
	}
	child = os.NewFile(uintptr(fds[1]), "gate")
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("a gate for %s: %w", b.Args[0], err), unix.Close(fds[0]), child.Close())
	}
	g = &gated{conn: os.NewFile(uintptr(fds[0]), "gate"), done: make(chan struct{})}
	cmd = exec.Command(self, append([]string{"internal", "gate", path}, b.Args...)...) //nolint:gosec // this program
	cmd.Args[0] = "tare"
	cmd.ExtraFiles = []*os.File{child}
	return cmd, g, child, nil
}

// follow reads the child's messages until it has executed its program or ended.
func (g *gated) follow(ready func()) {
	defer close(g.done)
	defer g.conn.Close() //nolint:errcheck // nothing is buffered
	buf := make([]byte, 8<<10)
	for {
		n, err := g.conn.Read(buf)
		if err != nil {
			return
		}
		var said gateNote
		if json.Unmarshal(buf[:n], &said) != nil {
			continue // the command itself cannot write here: execve closes the socket
		}
		if said.Ready {
			ready()
			continue
		}
		if said.Error != "" {
			g.last.Error = said.Error // execve failed after Start was sent
			continue
		}
		g.last = said
	}
}

// open sends the child the moment.
func (g *gated) open(at int64) error {
	b, err := json.Marshal(gateNote{At: at})
	if err != nil {
		return err
	}
	_, err = g.conn.Write(b)
	return err
}
