// Package agent is the part of tare inside a sandbox, and the client that talks to it from
// outside. It needs only one byte stream each way (the standard input and output of the
// sandbox's first process, or a serial port), so the same agent serves every kind of
// sandbox.
//
// The data path: 1. Connect and Serve exchange hellos and check the version (hello.go); 2. the client starts
// commands by id, those with a gate at one moment; 3. the agent sends back their
// output as it comes, as far as the client has room for it (window.go), and how they
// ended; 4. meanwhile it answers calls: the sandbox's clock, the figures of its
// kernel, and a sandbox's own calls; 5. when the stream ends, or the client reads
// nothing for too long, the agent kills what still runs and returns, so that a dead
// harness leaves no load behind.
//
// docs/design/0014-agent-protocol.md has the frames.
package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/held"
	"tare/sandbox"
)

// maxCommands bounds how many commands one sandbox runs at once.
const maxCommands = 256

// Trait is an option of Serve: a property of the sandbox that the agent is in.
type Trait func(*server)

// OwnKernel says that the sandbox has its own kernel: the kernel's count of processes
// killed for lack of memory is the sandbox's.
func OwnKernel(s *server) { s.own = true }

// OwnProcess says that this process is only the agent: each of its children is a command,
// or was left behind by one. The agent becomes the parent of those that are left behind
// (PR_SET_CHILD_SUBREAPER of prctl(2)) and ends them, see orphans.go. SIGTERM and SIGHUP
// end the session.
func OwnProcess(s *server) { s.alone = true }

// NoCommands says that the agent only answers calls: it starts nothing.
func NoCommands(s *server) { s.answers = true }

// In starts every command in a control group (version 2). group returns the group's open
// directory, or nil while it does not exist. The agent itself is outside of the group, so
// it survives what the commands cause there.
func In(group func() *os.File) Trait { return func(s *server) { s.group = group } }

// Serve runs the agent until r ends, the client stops reading, ctx is done, or, with
// OwnProcess, SIGTERM or SIGHUP arrives. Then it kills every command that it started. An
// orderly end of the stream is not an error. ops are the operations that Client.Call finds
// here, in addition to the agent's own.
func Serve(ctx context.Context, r io.Reader, w io.Writer, ops Operations, traits ...Trait) (err error) {
	all := Operations{opTime: tell}
	maps.Copy(all, ops)
	s := &server{
		out: newOutbox(w), ops: all, running: map[uint32]*command{},
		group: func() *os.File { return nil },
	}
	s.samples = &batch{figures: &sampler{root: "/proc"}, answer: s.answer}
	for _, trait := range traits {
		trait(s)
	}
	hello, err := s.hello()
	if err != nil {
		return err
	}
	if s.alone {
		stop, err := s.adopt()
		if err != nil {
			return err
		}
		defer stop()
	}
	signals := make(chan os.Signal, 1)
	defer signal.Stop(signals) // after killAll: a second signal must not end the agent before its commands
	defer func() {
		s.killAll()
		err = errors.Join(err, s.samples.close())
	}()
	if err := greet(w, hello); err != nil {
		return fmt.Errorf("agent: cannot say hello: %w", err)
	}
	// From here on, commands may run. Until now a signal had its usual effect, because the
	// write above may wait forever.
	if s.alone {
		notify(signals)
	}
	go s.out.run()
	done := make(chan error, 1)
	go func() { done <- s.loop(bufio.NewReaderSize(r, readAhead)) }()
	select {
	case err := <-done:
		return err
	case <-s.out.ended:
		return s.out.why()
	case sig := <-signals:
		return fmt.Errorf("agent: ended by signal %q; its commands have ended too", sig)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// greet writes the agent's hello. On a network it has a deadline. On a machine's port it has none: a
// saved machine waits here until the host resumes it, and nothing runs yet.
func greet(w io.Writer, hello []byte) error {
	conn, network := w.(net.Conn)
	if network {
		if err := conn.SetWriteDeadline(time.Now().Add(helloWithin)); err != nil {
			return err
		}
	}
	_, err := w.Write(hello)
	if network && err == nil {
		err = conn.SetWriteDeadline(time.Time{})
	}
	return err
}

// notify asks for the signals that end a session. One that is ignored stays so: after nohup,
// a session outlives its terminal.
func notify(c chan<- os.Signal) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}

// readAhead is how much is read from a stream at once, so that small frames take one
// system call.
const readAhead = 16 << 10

type server struct {
	out     *outbox
	ops     Operations
	own     bool // the sandbox has its own kernel
	answers bool // calls alone: no commands
	alone   bool // the process is only the agent
	group   func() *os.File
	samples *batch
	mu      sync.Mutex
	running map[uint32]*command
	closed  bool // start no more commands
}

// loop reads the client's frames. It never waits for the client to read.
func (s *server) loop(r io.Reader) error {
	err := s.greeted(r)
	for err == nil {
		var f frame
		if f, err = readFrame(r); err == nil {
			err = s.take(f)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// take carries out a frame.
func (s *server) take(f frame) error {
	switch f.typ {
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
		if c := s.command(f.id); c != nil && c.gate != nil {
			_ = c.gate.open(b.At) // if the child has ended, its waiter reports that
		}
	case frameRoom:
		var b roomBody
		if err := f.decode(&b); err != nil {
			return err
		}
		if b.Bytes < 0 || b.Bytes > outputRoom {
			return fmt.Errorf("%w: room for %d bytes", errFrame, b.Bytes)
		}
		if c := s.command(f.id); c != nil {
			c.output.room.give(b.Bytes)
		}
	case frameCall:
		var b callBody
		if err := f.decode(&b); err != nil {
			return err
		}
		s.call(f.id, b)
	default:
		return fmt.Errorf("%w: the agent does not accept type %d now", errFrame, f.typ)
	}
	return nil
}

// command returns the command of that id, or nil.
func (s *server) command(id uint32) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[id]
}

func (s *server) start(id uint32, b startBody) {
	if err := s.begin(id, b); err != nil {
		// 127 is a shell's exit code for a command that it cannot start.
		s.say(frameExit, id, exitBody{Code: 127, Error: text(err.Error())})
	}
}

// say queues a frame. Its body always fits; a broken channel ends the loop too.
func (s *server) say(t frameType, id uint32, body any) { _ = s.out.say(t, id, body) }

func (s *server) begin(id uint32, b startBody) (err error) {
	if s.answers {
		return errors.New("this agent does not start commands, it only answers calls")
	}
	if len(b.Args) == 0 {
		return errors.New("no command given")
	}
	env := append(os.Environ(), b.Env...)
	path, err := sandbox.Find(b.Args, env, b.Dir)
	if err != nil {
		return err
	}
	if b.Dir != "" { // a command with a user fails with a message about the program instead
		if st, err := os.Stat(b.Dir); err != nil || !st.IsDir() {
			return fmt.Errorf("the sandbox has no working directory %s; make it, or give another", b.Dir)
		}
	}
	c := &command{Cmd: &exec.Cmd{Path: path, Args: b.Args}}
	if b.Gate {
		var child *os.File
		if c.Cmd, c.gate, child, err = gateCommand(path, b); err != nil {
			return err
		}
		defer child.Close() //nolint:errcheck // the child has its own
		defer func() {
			if err != nil {
				_ = c.gate.conn.Close() // the other end is closed
			}
		}()
	}
	c.Env, c.Dir = env, b.Dir
	if c.output, err = newOutput(s.out, id); err != nil {
		return err
	}
	c.Stdout, c.Stderr = c.output.theirs[0], c.output.theirs[1]
	// Its own process group, so that a signal reaches its children too.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: b.User.Credential()}
	c.output.owned(b.User)
	if g := s.group(); g != nil {
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(g.Fd())
	}
	c.kills = s.kills()

	// Held during the start as well: the reaper of orphans must know every command.
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.running[id]; taken || s.closed || len(s.running) >= maxCommands {
		err = fmt.Errorf("command %d refused: its id is taken or %d commands run already", id, maxCommands)
	} else {
		err = c.Start()
	}
	if c.output.started(err == nil); err != nil {
		return err
	}
	s.running[id] = c
	if c.gate != nil {
		go c.gate.follow(func() { s.say(frameReady, id, struct{}{}) })
	}
	go s.wait(id, c)
	return nil
}

// kills returns how many processes this kernel has killed for lack of memory, if the kernel
// is the sandbox's own: oom_kill of /proc/vmstat (proc_vmstat(5)).
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
	c := s.running[id]
	if c == nil {
		return
	}
	if !c.reaped {
		_ = unix.Kill(-c.Process.Pid, sig)
	}
	if sig == syscall.SIGKILL {
		// A client that kills a command does not want the output for which it has no room.
		c.output.room.shut()
	}
}

// killAll ends the session's commands and the processes that they left behind.
func (s *server) killAll() {
	s.out.end(errSession) // ends the wait of pending writes
	s.mu.Lock()
	s.closed = true
	for _, c := range s.running {
		c.output.room.shut()
		if !c.reaped {
			_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		}
	}
	s.mu.Unlock()
	if s.alone {
		s.sweep(true)
	}
}
