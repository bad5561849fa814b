// Package agent is the part of tare inside a sandbox, and the client that talks
// to it from outside. One byte stream each way is all it needs (the standard
// input and output of the sandbox's first process, a serial port), so that the
// same agent serves every kind.
//
// The data path: 1. Connect and Serve exchange hellos and check the version;
// 2. the client starts commands by id; 3. the agent sends back their output as
// it comes and how they ended; 4. when the stream ends, the agent kills what
// still runs and returns, so that a dead harness leaves no load behind.
package agent

import (
	"context"
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

// maxCommands bounds how many commands one sandbox runs at once.
const maxCommands = 256

// Serve runs the agent until r ends or ctx is done; then every command it
// started is killed. An orderly end of the stream is not an error. The operations
// are those that Client.Call finds here, beside the agent's own; nil for none.
func Serve(ctx context.Context, r io.Reader, w io.Writer, ops Operations) error {
	s := &server{out: &frameWriter{w: w}, ops: ops, running: map[uint32]*exec.Cmd{}}
	defer s.killAll()
	if err := s.out.json(frameHello, 0, helloBody{Version: version, Pid: os.Getpid()}); err != nil {
		return fmt.Errorf("agent: cannot say hello: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- s.loop(r) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type server struct {
	out     *frameWriter
	ops     Operations
	mu      sync.Mutex
	running map[uint32]*exec.Cmd
}

func (s *server) loop(r io.Reader) error {
	for {
		f, err := readFrame(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch f.typ {
		case frameHello:
			var h helloBody
			if err := f.decode(&h); err != nil {
				return err
			}
			if h.Version != version {
				return fmt.Errorf("agent: the client speaks version %d, this agent %d", h.Version, version)
			}
		case frameStart:
			var b startBody
			if err := f.decode(&b); err != nil {
				return err
			}
			s.start(f.id, b)
		case frameSignal:
			var b signalBody
			if err := f.decode(&b); err != nil {
				return err
			}
			s.signal(f.id, syscall.Signal(b.Signal))
		case frameCall:
			var b callBody
			if err := f.decode(&b); err != nil {
				return err
			}
			s.call(f.id, b)
		default:
			return fmt.Errorf("%w: type %d is not for the agent", errFrame, f.typ)
		}
	}
}

func (s *server) start(id uint32, b startBody) {
	fail := func(err error) {
		// 127 is what a shell says of a command that it cannot start.
		_ = s.out.json(frameExit, id, exitBody{Code: 127, Error: err.Error()})
	}
	if len(b.Args) == 0 {
		fail(errors.New("no command given"))
		return
	}
	cmd := exec.Command(b.Args[0], b.Args[1:]...) //nolint:gosec // running the client's commands is what an agent is for
	cmd.Env = append(os.Environ(), b.Env...)
	cmd.Stdout = &streamWriter{s.out, frameStdout, id}
	cmd.Stderr = &streamWriter{s.out, frameStderr, id}
	// A grandchild that keeps the pipes must not keep the trial.
	cmd.WaitDelay = time.Second
	// A group of its own, so that a signal reaches the children too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.running[id]; taken || len(s.running) >= maxCommands {
		fail(fmt.Errorf("command %d refused: its id is taken or %d commands run already", id, maxCommands))
		return
	}
	if err := cmd.Start(); err != nil {
		fail(err)
		return
	}
	s.running[id] = cmd
	go s.wait(id, cmd)
}

func (s *server) wait(id uint32, cmd *exec.Cmd) {
	err := cmd.Wait()
	s.mu.Lock()
	delete(s.running, id)
	s.mu.Unlock()
	// What the command left running in its group would load the next phase.
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)

	var e exitBody
	st := cmd.ProcessState
	if st == nil {
		e.Code, e.Error = 127, fmt.Sprint(err)
	} else {
		e.Code = st.ExitCode()
		e.User, e.System = st.UserTime().Nanoseconds(), st.SystemTime().Nanoseconds()
		if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Code = 128 + int(ws.Signal())
			e.Signal = unix.SignalName(ws.Signal())
		}
	}
	_ = s.out.json(frameExit, id, e) // a broken channel ends the loop too
}

func (s *server) signal(id uint32, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cmd := s.running[id]; cmd != nil {
		_ = unix.Kill(-cmd.Process.Pid, sig)
	}
}

func (s *server) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cmd := range s.running {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	}
}

// streamWriter turns writes into frames.
type streamWriter struct {
	out *frameWriter
	typ frameType
	id  uint32
}

func (w *streamWriter) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		k := min(len(p), maxPayload)
		if err := w.out.bytes(w.typ, w.id, p[:k]); err != nil {
			return n, err
		}
		n += k
		p = p[k:]
	}
	return n, nil
}
