package spawn

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// Times are the times of one process, from its start to its end.
type Times struct {
	Begun, Ready, Started time.Time // as in Process
	First                 time.Time // the first byte of standard output arrived; zero if none did
	Ended                 time.Time
	Exit                  sandbox.Exit
}

// drain is how long Run waits for output after the end of a process: another process may
// hold the pipe open forever.
const drain = time.Second

// Run runs a process to its end and records its times. It kills the process when ctx ends.
// A process that ran and failed is not an error.
func Run(ctx context.Context, o Options, cmd *exec.Cmd, stdout, stderr io.Writer) (Times, error) {
	var first time.Time
	outPipe, err := NewSink(stdout, func(at time.Time) { first = at })
	if err != nil {
		return Times{}, err
	}
	defer outPipe.Close()
	errPipe, err := NewSink(stderr, nil)
	if err != nil {
		return Times{}, err
	}
	defer errPipe.Close()
	cmd.Stdout, cmd.Stderr = outPipe.Child, errPipe.Child
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Credential != nil {
		c := cmd.SysProcAttr.Credential // who could not open /dev/stdout otherwise
		_, _ = outPipe.Child.Chown(int(c.Uid), int(c.Gid)), errPipe.Child.Chown(int(c.Uid), int(c.Gid))
	}
	p, err := Start(o, cmd)
	outPipe.Started()
	errPipe.Started()
	if err != nil {
		return Times{}, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		_ = cmd.Process.Kill()
	}
	ended, err := p.Wait()
	outPipe.Drain(drain)
	errPipe.Drain(drain)
	if first.After(ended) {
		first = ended // the byte was seen late, because this process had to wait for a processor
	}
	l := Times{Begun: p.Begun, Ready: p.Ready, Started: p.Started, First: first, Ended: ended}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return l, err
	}
	l.Exit = ExitOf(cmd.ProcessState)
	return l, ctx.Err()
}

// ExitOf says how a process ended.
func ExitOf(st *os.ProcessState) sandbox.Exit {
	if st == nil {
		return sandbox.Exit{Code: -1}
	}
	e := sandbox.Exit{Code: st.ExitCode(), User: st.UserTime(), System: st.SystemTime()}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Code = 128 + int(ws.Signal())
		e.Signal = unix.SignalName(ws.Signal())
	}
	return e
}

// Sink is a pipe from a child to a writer.
type Sink struct {
	Child *os.File // the child's end
	fd    int      // ours
	stop  int      // eventfd(2): stop copying
	close sync.Once
	done  chan struct{}
}

// NewSink makes a pipe and copies from it to w (nil discards) until its end. It calls first,
// unless nil, when the first byte arrives. It ignores errors of w, so that the child does not
// notice them.
//
// Its own thread waits in poll(2), which the kernel wakes at once. Go's network poller was
// rejected: on a busy machine it saw the first byte up to 20 ms late.
func NewSink(w io.Writer, first func(time.Time)) (*Sink, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		_, _ = unix.Close(fds[0]), unix.Close(fds[1])
		return nil, err
	}
	s := &Sink{Child: os.NewFile(uintptr(fds[1]), "pipe"), fd: fds[0], stop: stop, done: make(chan struct{})}
	go s.copy(w, first)
	return s, nil
}

func (s *Sink) copy(w io.Writer, first func(time.Time)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.done)
	defer unix.Close(s.fd) //nolint:errcheck // read only
	buf := make([]byte, 64<<10)
	for {
		fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}, {Fd: int32(s.stop), Events: unix.POLLIN}} //nolint:gosec // descriptors are small
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if fds[1].Revents != 0 {
			return
		}
		now := time.Now()
		n, err := unix.Read(s.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		if first != nil {
			first(now)
			first = nil
		}
		if w != nil {
			_, _ = w.Write(buf[:n])
		}
	}
}

// Started must be called when the child has its end, or has failed to start.
func (s *Sink) Started() { _ = s.Child.Close() }

// Drain waits until everything is copied, at most d, and closes the pipe. After it, the
// caller may read what was copied.
func (s *Sink) Drain(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.done:
	case <-t.C:
	}
	s.Close()
}

// Close closes both ends, and waits for the end of copying. It is idempotent.
func (s *Sink) Close() {
	s.close.Do(func() {
		_ = s.Child.Close()
		_, _ = unix.Write(s.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // a count; the byte order does not matter, because nobody reads it
		<-s.done
		_ = unix.Close(s.stop)
	})
}

// Tail is a writer that keeps the last bytes. It is safe for concurrent use.
type Tail struct {
	mu  sync.Mutex
	buf []byte
}

// tailSize is as large as the tail of a record.Failure.
const tailSize = 4 << 10

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-tailSize):]...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String returns the kept bytes.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
