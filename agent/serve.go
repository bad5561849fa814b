// Package agent is the part of tare inside a sandbox, and the client that talks
// to it from outside. One byte stream each way is all it needs (the standard
// input and output of the sandbox's first process, a serial port), so that the
// same agent serves every kind.
//
// The data path: 1. Connect and Serve exchange hellos and check the version;
// 2. the client starts commands by id, those with a gate at one moment; 3. the
// agent sends back their output as it comes and how they ended; 4. meanwhile it
// answers calls: the sandbox's clock, the figures of its kernel, and what a
// sandbox has of its own; 5. when the stream ends, the agent kills what still runs
// and returns, so that a dead harness leaves no load behind.
//
// docs/design/0014-agent-protocol.md has the frames.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/held"
)

// maxCommands bounds how many commands one sandbox runs at once.
const maxCommands = 256

// Trait is what an agent is told of the sandbox that it is in.
type Trait func(*server)

// OwnKernel says that the kernel is the sandbox's alone: what it counts as killed for
// memory was killed in the sandbox.
func OwnKernel(s *server) { s.own = true }

// In has every command start in a control group (version 2): group returns its open
// directory, or nil while there is none. The agent itself is not in it, so that it
// outlives what the commands do to their group.
func In(group func() *os.File) Trait { return func(s *server) { s.group = group } }

// Serve runs the agent until r ends or ctx is done; then every command it
// started is killed. An orderly end of the stream is not an error. The operations
// are those that Client.Call finds here, beside the agent's own; nil for none.
func Serve(ctx context.Context, r io.Reader, w io.Writer, ops Operations, traits ...Trait) error {
	all := Operations{opTime: tell}
	maps.Copy(all, ops)
	s := &server{
		out: &frameWriter{w: w}, ops: all, running: map[uint32]*command{},
		group: func() *os.File { return nil },
	}
	s.samples = &batch{figures: &sampler{root: "/proc"}, answer: s.answer}
	for _, trait := range traits {
		trait(s)
	}
	defer s.killAll()
	if err := s.out.json(frameHello, 0, helloBody{Version: version, Pid: os.Getpid()}); err != nil {
		return fmt.Errorf("agent: cannot say hello: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- errors.Join(s.loop(r), s.samples.close()) }()
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
	own     bool // the kernel is
	group   func() *os.File
	samples *batch
	mu      sync.Mutex
	running map[uint32]*command
}

// command is one that runs, or waits at its gate.
type command struct {
	*exec.Cmd
	gate  *gated // nil: none
	kills uint64 // for memory, when it began
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
		if err := s.take(f); err != nil {
			return err
		}
	}
}

// take does what a frame asks for.
func (s *server) take(f frame) error {
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
	case frameGo:
		var b goBody
		if err := f.decode(&b); err != nil {
			return err
		}
		s.open(f.id, b.At)
	case frameCall:
		var b callBody
		if err := f.decode(&b); err != nil {
			return err
		}
		s.call(f.id, b)
	default:
		return fmt.Errorf("%w: type %d is not for the agent", errFrame, f.typ)
	}
	return nil
}

func (s *server) start(id uint32, b startBody) {
	if err := s.begin(id, b); err != nil {
		// 127 is what a shell says of a command that it cannot start.
		_ = s.out.json(frameExit, id, exitBody{Code: 127, Error: text(err.Error())})
	}
}

func (s *server) begin(id uint32, b startBody) error {
	if len(b.Args) == 0 {
		return errors.New("no command given")
	}
	c := &command{Cmd: exec.Command(b.Args[0], b.Args[1:]...)} //nolint:gosec // running the client's commands is what an agent is for
	if b.Gate {
		var child *os.File
		var err error
		if c.Cmd, c.gate, child, err = gateCommand(b); err != nil {
			return err
		}
		defer child.Close() //nolint:errcheck // the child has its own
	}
	c.Env = append(os.Environ(), b.Env...)
	c.Stdout = &streamWriter{s.out, frameStdout, id}
	c.Stderr = &streamWriter{s.out, frameStderr, id}
	// A grandchild that keeps the pipes must not keep the trial.
	c.WaitDelay = time.Second
	// A group of its own, so that a signal reaches the children too.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if g := s.group(); g != nil {
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(g.Fd())
	}
	c.kills = s.kills()

	s.mu.Lock()
	defer s.mu.Unlock()
	err := error(nil)
	if _, taken := s.running[id]; taken || len(s.running) >= maxCommands {
		err = fmt.Errorf("command %d refused: its id is taken or %d commands run already", id, maxCommands)
	} else {
		err = c.Start()
	}
	if err != nil {
		if c.gate != nil {
			_ = c.gate.conn.Close() // nobody is at the other end
		}
		return err
	}
	s.running[id] = c
	if c.gate != nil {
		go c.gate.follow(func() { _ = s.out.json(frameReady, id, struct{}{}) }) // a broken channel ends the loop too
	}
	go s.wait(id, c)
	return nil
}

// open lets a gated command go at a moment; one that has ended is none.
func (s *server) open(id uint32, at int64) {
	s.mu.Lock()
	c := s.running[id]
	s.mu.Unlock()
	if c != nil && c.gate != nil {
		_ = c.gate.open(at) // a child that has gone is waited for already
	}
}

func (s *server) wait(id uint32, c *command) {
	err := c.Wait()
	s.mu.Lock()
	delete(s.running, id)
	s.mu.Unlock()
	// What the command left running in its group would load the next phase.
	_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)

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
	s.samples.flush()
	_ = s.out.json(frameExit, id, e) // a broken channel ends the loop too
}

// kills counts what this kernel has killed for memory, if that says something of
// this sandbox: oom_kill of /proc/vmstat (proc_vmstat(5)).
func (s *server) kills() uint64 {
	if !s.own {
		return 0
	}
	b, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	n, _ := held.Value(b, "oom_kill")
	return n
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
