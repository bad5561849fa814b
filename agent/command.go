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
)

// command is one that runs, waits at its gate, or has ended and has output that the
// client has no room for yet.
type command struct {
	*exec.Cmd
	gate   *gated // nil: none
	output *output
	kills  uint64 // for memory, when it began
	reaped bool   // its process number may be another's
}

// holdOn is how long a command that has ended waits for those that still hold its output,
// and write to it, before they are killed.
const holdOn = time.Second

func (s *server) wait(id uint32, c *command) {
	// The process stays a zombie until its group was killed, so that its number
	// is nobody else's: WNOWAIT of waitid(2).
	_, _ = retry(func() (int, error) {
		return 0, unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	})
	c.output.wait(holdOn)
	// What the command left running in its group would load the next phase.
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
		// The waiting was the harness's.
		e.User, e.System = max(0, e.User-c.gate.last.User), max(0, e.System-c.gate.last.System)
	}
	e.OOM = s.kills() > c.kills
	s.mu.Lock()
	delete(s.running, id)
	s.mu.Unlock()
	s.samples.flush()
	s.say(frameExit, id, e)
}

// output takes what a command writes to the client. The command writes to pipes, and
// waits where they are full because the client has no room or does not read: nothing is
// dropped, and nothing is kept here but one piece of each pipe.
type output struct {
	out    *outbox
	id     uint32
	room   window
	ours   [2]*os.File // standard output, standard error
	theirs [2]*os.File
	copies sync.WaitGroup
	copied chan struct{} // closed when all of ours are
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

// started is to be called when the command has its ends of the pipes, or never will.
func (o *output) started(ok bool) {
	for i := range o.theirs {
		_ = o.theirs[i].Close() // an error is that of a file that there is not
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

// copy sends what comes through a pipe. When the command has ended, what others write
// that still hold the pipe is taken until the deadline, and what is in the pipe then.
func (o *output) copy(r *os.File, t frameType) {
	defer r.Close() //nolint:errcheck // read only
	buf := make([]byte, headerSize+maxOutput)
	left := -1 // in the pipe, once nobody is waited for any more
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

// wait waits until the output has ended. For those that only hold it it waits d.
func (o *output) wait(d time.Duration) {
	for _, r := range o.ours {
		_ = r.SetReadDeadline(time.Now().Add(d)) // one that is closed has been read
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-o.copied:
	case <-t.C:
	case <-o.out.ended:
	}
}

// finish waits until all that the command wrote was sent, however long the client takes
// to make room for it.
func (o *output) finish() {
	close(o.killed)
	select {
	case <-o.copied:
	case <-o.out.ended:
	}
}

// capacity is how much a pipe holds at most: F_GETPIPE_SZ of fcntl(2).
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

// readNow reads what is in a pipe without waiting; io.EOF or EAGAIN when it is empty.
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
