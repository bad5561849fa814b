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

// Life is what Live saw of one process.
type Life struct {
	Begun, Ready, Started time.Time // as in Process
	First                 time.Time // the first byte of standard output arrived; zero if none did
	Ended                 time.Time
	Exit                  sandbox.Exit
}

// drain is how long output is waited for after a process's end: something it
// left behind may hold the pipe open for ever.
const drain = time.Second

// Live runs a process to its end, noting times, and kills it when ctx ends. A
// process that ran and failed is no error.
func Live(ctx context.Context, o Options, cmd *exec.Cmd, stdout, stderr io.Writer) (Life, error) {
	var first time.Time
	outPipe, err := NewSink(stdout, func(at time.Time) { first = at })
	if err != nil {
		return Life{}, err
	}
	defer outPipe.Close()
	errPipe, err := NewSink(stderr, nil)
	if err != nil {
		return Life{}, err
	}
	defer errPipe.Close()
	cmd.Stdout, cmd.Stderr = outPipe.Child, errPipe.Child
	p, err := Start(o, cmd)
	outPipe.Started()
	errPipe.Started()
	if err != nil {
		return Life{}, err
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
		first = ended // it was there, and was seen late: this process had to wait for a processor
	}
	l := Life{Begun: p.Begun, Ready: p.Ready, Started: p.Started, First: first, Ended: ended}
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
	stop  int      // eventfd(2): no more is to be copied
	close sync.Once
	done  chan struct{}
}

// NewSink makes a pipe and copies from it to w (nil discards) until its end.
// When the first byte arrives first is called, if it is not nil. A writer's
// error ends nothing: the child is not to notice who listens.
//
// A thread of its own waits in poll(2), which the kernel wakes at once. Go's
// network poller was tried: on a busy machine it noted the first byte up to
// 20 ms late.
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

// Started is to be called when the child has its end, or never will.
func (s *Sink) Started() { _ = s.Child.Close() }

// Drain waits until everything was copied, at most d, and closes the pipe; what
// was copied can be read after it.
func (s *Sink) Drain(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.done:
	case <-t.C:
	}
	s.Close()
}

// Close closes both ends, and waits until nothing is copied any more. It is
// idempotent.
func (s *Sink) Close() {
	s.close.Do(func() {
		_ = s.Child.Close()
		_, _ = unix.Write(s.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // a count, in the host's order or not: it is not read
		<-s.done
		_ = unix.Close(s.stop)
	})
}

// Tail keeps the last bytes written to it. It is safe for concurrent use.
type Tail struct {
	mu  sync.Mutex
	buf []byte
}

// tailSize is what a record.Failure keeps, too.
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

// String returns what is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
