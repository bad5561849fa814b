package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// command is a command that runs, waits at its gate, or has ended with output for which
// the client has no room yet.
type command struct {
	*exec.Cmd
	gate   *gated // nil: it has no gate
	output *output
	kills  uint64 // out-of-memory kills when it began
	reaped bool   // its process id may be reused
}

// holdOn is how long processes may still hold and write to a command's output after the
// command has ended. Then they are killed.
const holdOn = time.Second

func (s *server) wait(id uint32, c *command) {
	// The process stays a zombie until its group is killed, so that its process id
	// is not reused: WNOWAIT of waitid(2).
	_, _ = retry(func() (int, error) {
		return 0, unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	})
	c.output.wait(holdOn)
	// Processes that the command left in its group would load the next phase.
	_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
	s.mu.Lock()
	err := c.Wait()
	c.reaped = true
	s.mu.Unlock()
	if s.alone {
		s.sweep(false)
	}
	c.output.finish()

	var e exitBody
	st := c.ProcessState
	if st == nil {
		e.Code, e.Error = 127, text(fmt.Sprint(err))
	} else {
		e.Code = st.ExitCode()
		e.User, e.System = st.UserTime().Nanoseconds(), st.SystemTime().Nanoseconds()
		if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Code = 128 + int(ws.Signal())
			e.Signal = unix.SignalName(ws.Signal())
		}
	}
	if c.gate != nil {
		<-c.gate.done
		e.Start, e.Error = c.gate.last.Start, text(c.gate.last.Error)
		// The harness used the CPU of the wait at the gate, not the command.
		e.User, e.System = max(0, e.User-c.gate.last.User), max(0, e.System-c.gate.last.System)
	}
	e.OOM = s.kills() > c.kills
	s.mu.Lock()
	delete(s.running, id)
	s.mu.Unlock()
	s.samples.flush()
	s.say(frameExit, id, e)
}

// output brings a command's output to the client. The command writes to pipes, and waits
// when they are full because the client has no room or does not read. Nothing is dropped,
// and only one block of each pipe is kept here.
type output struct {
	out    *outbox
	id     uint32
	room   window
	ours   [2]*os.File // standard output, standard error
	theirs [2]*os.File
	copies sync.WaitGroup
	copied chan struct{} // closed when all of ours are copied
	killed chan struct{} // closed when the command and its group are
}

func newOutput(out *outbox, id uint32) (_ *output, err error) {
	o := &output{out: out, id: id, copied: make(chan struct{}), killed: make(chan struct{})}
	o.room.init(outputRoom)
	for i := range o.ours {
		if o.ours[i], o.theirs[i], err = os.Pipe(); err != nil {
			o.started(false)
			return nil, err
		}
	}
	return o, nil
}

// owned gives the command's ends of the pipes to its user, who could not open /dev/stdout
// otherwise. Where that cannot be (EPERM in a user namespace), only /dev/stdout does not work.
func (o *output) owned(u sandbox.User) {
	if u.Root() {
		return
	}
	for _, f := range o.theirs {
		_ = f.Chown(int(u.UID), int(u.GID))
	}
}

// started must be called when the command has its ends of the pipes, or has failed to start.
func (o *output) started(ok bool) {
	for i := range o.theirs {
		_ = o.theirs[i].Close() // fails only if the file is nil
		if !ok {
			_ = o.ours[i].Close()
		}
	}
	if !ok {
		return
	}
	o.copies.Go(func() { o.copy(o.ours[0], frameStdout) })
	o.copies.Go(func() { o.copy(o.ours[1], frameStderr) })
	go func() { o.copies.Wait(); close(o.copied) }()
}

// copy sends what comes through a pipe. After the command has ended, it takes what other
// holders of the pipe write until the deadline, and then what is left in the pipe.
func (o *output) copy(r *os.File, t frameType) {
	defer r.Close() //nolint:errcheck // read only
	buf := make([]byte, headerSize+maxOutput)
	left := -1 // bytes in the pipe, once the deadline has passed
	for left != 0 {
		n, err := r.Read(buf[headerSize:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			<-o.killed
			if left < 0 {
				left = capacity(r)
			}
			n, err = readNow(r, buf[headerSize:headerSize+min(left, maxOutput)])
			left -= n
		}
		if n > 0 {
			if !o.room.take(cost(n)) {
				return // the client has killed the command
			}
			appendHeader(buf[:0], t, o.id, n)
			if o.out.output(buf[:headerSize+n]) != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait waits until the output has ended, at most d for processes that only hold it.
func (o *output) wait(d time.Duration) {
	for _, r := range o.ours {
		_ = r.SetReadDeadline(time.Now().Add(d)) // a closed one was read to its end
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-o.copied:
	case <-t.C:
	case <-o.out.ended:
	}
}

// finish waits until all output of the command is sent, however long the client takes to
// make room for it.
func (o *output) finish() {
	close(o.killed)
	select {
	case <-o.copied:
	case <-o.out.ended:
	}
}

// capacity is how much a pipe can hold: F_GETPIPE_SZ of fcntl(2).
func capacity(r *os.File) int {
	size := maxOutput
	if conn, err := r.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) {
			if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil {
				size = n
			}
		})
	}
	return size
}

// readNow reads what is in a pipe without waiting. It returns io.EOF or EAGAIN if the pipe
// is empty.
func readNow(r *os.File, p []byte) (n int, err error) {
	conn, err := r.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		n, failed = retry(func() (int, error) { return unix.Read(int(fd), p) })
	})
	if err = errors.Join(err, failed); err == nil && n == 0 {
		err = io.EOF
	}
	return max(n, 0), err
}
