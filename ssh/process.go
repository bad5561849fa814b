package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"tare/site/remote"
)

// process is ssh.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *os.File
	ended chan struct{}
	over  atomic.Bool // the other side has closed its output
}

// start runs ssh. A Ctrl-C at the terminal is not for it: Machine tells the other side, which
// cleans up. ssh leaves the signal ignored where it was (client_loop.c), and is in this process
// group, so that it can ask for a password.
func start(at Address, hash string, heard func(string)) (*process, error) {
	text := strings.NewReplacer("MARK", mark(hash), "HASH", hash).Replace(script)
	args := append([]string{"-c", `trap "" INT; exec ssh "$@"`, "ssh"}, at.arguments()...)
	p := &process{cmd: exec.Command("/bin/sh", append(args, "exec /bin/sh -c '"+text+"'")...), ended: make(chan struct{})} //nolint:gosec // the address was checked
	p.cmd.WaitDelay = time.Second                                                                                          // a master connection that ssh leaves may hold its standard error
	p.cmd.Stderr = &lines{heard: heard}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	p.out, p.cmd.Stdout = r, w
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState has how it ended
		close(p.ended)
	}()
	return p, nil
}

// within reports whether ssh ends in a time.
func (p *process) within(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		return false
	}
}

// Read reads what the other side prints.
func (p *process) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if errors.Is(err, io.EOF) {
		p.over.Store(true)
	}
	return n, err
}

// Kill ends ssh. By SIGTERM it gives the terminal and the socket of a master connection back.
// Once the other side is over, ssh ends by itself, or is the master of other connections.
func (p *process) Kill() {
	if p.over.Load() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if !p.within(time.Second) {
		_ = p.cmd.Process.Kill()
	}
}

// Close ends the other side.
func (p *process) Close() error {
	_ = p.in.Close()
	if !p.within(3 * time.Second) {
		p.Kill()
	}
	return p.out.Close()
}

// Why is how ssh ended, if that is why a stream failed.
func (p *process) Why(err error) error {
	const failed = 255 // ssh(1): otherwise the code is the command's
	if p.within(time.Second) {
		switch code := p.cmd.ProcessState.ExitCode(); {
		case code == failed:
			return errors.New("ssh has ended")
		case code > 0:
			return fmt.Errorf("exit code %d", code)
		}
	}
	return err
}

// lines hands on what is written to it, line by line.
type lines struct {
	heard func(string)
	rest  []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole && len(l.rest) <= remote.MaxText {
			return len(p), nil
		}
		if s := strings.TrimSuffix(string(line), "\r"); s != "" {
			l.heard(s)
		}
		l.rest = append([]byte(nil), rest...)
	}
}
