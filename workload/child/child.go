// Package child runs the programs that a workload's driver starts in its sandbox:
// redis-benchmark, wrk, an iperf3 server. They never outlive the driver.
//
// The data path: 1. Command describes the program and its context; 2. Run starts it from a
// thread at whose death the kernel kills it, and waits; 3. when the context ends, the program
// is asked to end, and killed after Grace.
package child

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Grace is how long a program may take to end after SIGTERM. Then it is killed, and the pipes
// that its children hold are closed.
const Grace = 5 * time.Second

// Command is exec.CommandContext for Run: at the end of the context the program
// gets SIGTERM first. args has the program as its first word.
func Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // words of the harness's own
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = Grace
	// If the driver is killed, the kernel kills the program (prctl(2), PR_SET_PDEATHSIG).
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Run runs cmd to its end. started, unless nil, gets the process after its start.
// cmd.ProcessState is nil if it could not be started. Run keeps its thread: the kernel takes
// the end of that thread, not of the process, for the parent's death.
func Run(cmd *exec.Cmd, started func(*os.Process)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	if started != nil {
		started(cmd.Process)
	}
	return cmd.Wait()
}
