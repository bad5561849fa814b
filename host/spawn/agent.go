package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"tare/agent"
	"tare/sandbox"
)

// Agent is a started process whose standard input and output lead to an agent:
// the agent itself, or a runtime that passes them on.
type Agent struct {
	proc   *Process
	cmd    *exec.Cmd
	client *agent.Client
	stdin  *os.File
	stdout *os.File
	stderr *Sink
	tail   Tail
}

// StartAgent starts cmd and waits until the agent has said hello. If the process was
// started, the returned Agent is not nil even after an error, so that the caller can end it.
func StartAgent(ctx context.Context, o Options, cmd *exec.Cmd) (*Agent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := &Agent{cmd: cmd}
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), stdin.Close())
	}
	a.stdin, a.stdout = stdin, stdout
	if a.stderr, err = NewSink(&a.tail, nil); err != nil {
		return nil, errors.Join(err, childIn.Close(), stdin.Close(), childOut.Close(), stdout.Close())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, a.stderr.Child
	a.proc, err = Start(o, cmd)
	_, _ = childIn.Close(), childOut.Close()
	a.stderr.Started()
	if err != nil {
		_, _ = stdin.Close(), stdout.Close()
		a.stderr.Close()
		return nil, err
	}
	a.client, err = agent.Connect(ctx, stdout, stdin)
	if err != nil {
		return a, a.explain(err)
	}
	return a, nil
}

// explain adds to an error of the stream how the process ended, and its last output.
func (a *Agent) explain(err error) error {
	select {
	case <-a.proc.Done():
		a.stderr.Drain(drain)
		err = fmt.Errorf("%w (%s: %s%s)", err, a.cmd.Args[0], a.cmd.ProcessState, killed(a.cmd.ProcessState))
	case <-time.After(drain):
		// It runs, or is about to end: there is nothing to add.
	}
	return fmt.Errorf("%w%s", err, Says(&a.tail))
}

// killed explains a SIGKILL that tare did not send, to the process or to a runtime's child.
// Then the runtime's exit code is 128 plus the signal's number, as a shell's.
func killed(st *os.ProcessState) string {
	if ExitOf(st).Code != 128+int(unix.SIGKILL) {
		return ""
	}
	return ": the sandbox was killed from outside (SIGKILL), by hand or because the host was out of memory (then `dmesg` says so); free memory of the host, or run fewer or smaller loads, and try again"
}

// Pid is the number of the process.
func (a *Agent) Pid() int { return a.proc.Pid }

// Run runs a command through the agent. An error means that the agent is lost.
func (a *Agent) Run(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	if a == nil || a.client == nil {
		return sandbox.Exit{}, errors.New("the sandbox was not started")
	}
	if len(c.Args) == 0 {
		return sandbox.Exit{}, errors.New("no command given")
	}
	exit, err := a.client.Run(ctx, c)
	if err != nil {
		return exit, a.explain(err)
	}
	return exit, nil
}

// Hangup closes the agent's input, which asks it to end everything. A command under way ends with an error.
func (a *Agent) Hangup() {
	if a.client != nil {
		_ = a.client.Close()
	}
	_ = a.stdin.Close()
}

// Close kills the process and waits for it until ctx ends. It is idempotent.
func (a *Agent) Close(ctx context.Context) error {
	_ = a.stdin.Close()
	select {
	case <-a.proc.Done():
	default:
		_ = a.cmd.Process.Kill()
	}
	defer a.stderr.Close()
	defer a.stdout.Close() //nolint:errcheck // read only
	if a.client != nil {
		defer a.client.Close() //nolint:errcheck // forgets, never fails
	}
	return a.Wait(ctx)
}

// Wait waits until the process has ended by itself, or ctx ends.
func (a *Agent) Wait(ctx context.Context) error {
	select {
	case <-a.proc.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("process %d (%s) does not end: %w", a.proc.Pid, a.cmd.Args[0], ctx.Err())
	}
}
