package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// daemon is a program of the lab that runs in the background.
type daemon struct {
	Name    string
	Program string // "": its name
	path    string // "": where the lab's programs are
	Args    []string
}

// entry is what a process enters before it becomes a program. It is given to this program
// itself on standard input, as JSON.
type entry struct {
	Record  string   // file that the process writes about itself; "" for a command that is waited for
	Groups  []string // the control groups' cgroup.procs
	Net     string   // file of the network namespace; "" for the host's
	Like    int      // a process whose mount and control group namespaces it enters; 0: the host's
	Node    *layout  // makes these namespaces instead
	Command []string // path and arguments
	Env     []string
}

// started is a daemon that was just started: it can still be waited for.
type started struct {
	name  string
	log   string
	ended chan struct{} // closed when it has ended
}

// start starts a daemon. When it returns, the process exists, and either has recorded itself
// or does so before it lets go of the lab's lock, which it inherits.
func (l *lab) start(d daemon, e entry, files ...*os.File) (*started, error) {
	if d.path == "" {
		d.path = l.program(cmp.Or(d.Program, d.Name))
	}
	e.Record = filepath.Join(l.records(), d.Name+".json")
	e.Command = append([]string{d.path}, d.Args...)
	input, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	s := &started{name: d.Name, log: l.log(d.Name), ended: make(chan struct{})}
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command("/proc/self/exe", "enter")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, out
	cmd.ExtraFiles = append([]*os.File{l.lock}, files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// inside runs a command in the namespaces of e.
func (l *lab) inside(ctx context.Context, e entry, stdin []byte, command ...string) error {
	e.Command = command
	head, err := json.Marshal(e)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "enter")
	cmd.Stdin = bytes.NewReader(append(head, stdin...))
	_, err = output(cmd)
	return err
}

// output runs a command and returns its standard output; an error has what it said. The command
// dies with this program, or else kubectl would go on waiting after a kill. (It dies with the
// thread that started it; only network.go ends threads, and never while a command runs.)
func output(cmd *exec.Cmd) (string, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Args[0]), err, strings.TrimSpace(said.String()+" "+out.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// until calls f until it returns no error. It gives up when one of the daemons ends, or after
// the time; then the error is f's last, with the end of the daemon's log.
func until(ctx context.Context, within time.Duration, watched *started, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-watched.done():
			return fmt.Errorf("%s ended: %s", watched.name, tail(watched.log))
		case <-ctx.Done():
			if watched != nil {
				err = fmt.Errorf("%w; the end of its log: %s", err, tail(watched.log))
			}
			return fmt.Errorf("%w (after %s)", err, within)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *started) done() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.ended
}

// tail is the end of a log.
func tail(file string) string {
	b, err := os.ReadFile(file) //nolint:gosec // the lab's own
	if err != nil {
		return err.Error()
	}
	const most = 1500
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return strings.TrimSpace(string(b))
}

// recorded reads the records of all daemons.
func (p places) recorded() ([]record, error) {
	files, err := filepath.Glob(filepath.Join(p.records(), "*.json"))
	if err != nil {
		return nil, err
	}
	var out []record
	for _, f := range files {
		b, err := os.ReadFile(f) //nolint:gosec // the lab's own
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(b, &r); err != nil {
			return nil, fmt.Errorf("%s is damaged: %w; its process is in the control group %s", f, err, groupName)
		}
		out = append(out, r)
	}
	return out, nil
}
