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

// A gated command is this program first: `tare internal gate PATH ARGS...`, which
// has found and opened what it is to become, says so on the socket that it was
// given, waits for the moment, and becomes it. So nothing of a start is left to
// do after the moment but execve(2).

// gateFD is the child's end of the socket; packets on it are gateNotes.
const gateFD = 3

// gateNote is what the child says (Ready, then Start or Error) and hears (At).
// Times are nanoseconds of CLOCK_MONOTONIC, or of CPU.
type gateNote struct {
	Ready  bool   `json:"ready,omitempty"`
	At     int64  `json:"at,omitempty"`
	Start  int64  `json:"start,omitempty"`
	User   int64  `json:"user,omitempty"` // what the waiting took
	System int64  `json:"system,omitempty"`
	Error  string `json:"error,omitempty"`
}

const (
	// gateSpin is how long before the moment the child stops sleeping: longer than
	// a sleep ends late as a rule, also where the timer is QEMU's and an emulated
	// processor has to wake up.
	gateSpin = 2 * time.Millisecond
	// gateLongest is how far ahead a moment may be.
	gateLongest = time.Minute
)

// Gate is `tare internal gate`: args are the program's path and its arguments, with
// the name that it is called by first. It returns only when it could not become
// that program.
func Gate(args []string, stderr io.Writer) int {
	if err := gate(args); err != nil {
		fmt.Fprintln(stderr, "tare internal gate:", err)
	}
	return 127 // as a shell says of what it cannot start
}

// gate returns an error if the agent could not be told why it came back.
func gate(args []string) error {
	if len(args) < 2 {
		return errors.New("for the agent's own use: PATH NAME [ARGUMENT...]")
	}
	unix.CloseOnExec(gateFD)
	err := become(args[0], args[1:])
	if lost := note(gateNote{Error: text(err.Error())}); lost != nil {
		return errors.Join(err, lost)
	}
	return nil
}

// become returns only why it did not.
func become(path string, args []string) error {
	// The program's first pages are read while there is time. Whether it can be
	// run is for execve to say.
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

// waitUntil returns at the moment, and by how the clock then stands.
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
	last gateNote      // what the child said last; known when done
	done chan struct{} // closed when the child has become its program, or ended
}

// gateCommand is the command line that becomes b's at the gate, and the gate.
// The child's end of the socket is to be closed once it was started.
func gateCommand(b startBody) (cmd *exec.Cmd, g *gated, child *os.File, err error) {
	// As without a gate: found by the agent's own PATH.
	path, err := exec.LookPath(b.Args[0])
	if err != nil {
		return nil, nil, nil, err
	}
	self := "/proc/self/exe" // which is there also where the agent's root is not its program's
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

// follow hears what the child says until it has become its program or ended.
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
			continue // the command itself cannot write here: the socket closes as it begins
		}
		if said.Ready {
			ready()
			continue
		}
		if said.Error != "" {
			g.last.Error = said.Error // after a Start, which then was none
			continue
		}
		g.last = said
	}
}

// open tells the child the moment.
func (g *gated) open(at int64) error {
	b, err := json.Marshal(gateNote{At: at})
	if err != nil {
		return err
	}
	_, err = g.conn.Write(b)
	return err
}
