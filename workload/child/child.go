// Package child runs the programs that a workload's driver starts beside itself
// inside a sandbox: redis-benchmark, wrk, an iperf3 server. None outlives its
// driver.
//
// The data path: 1. Command says what is to run and until when; 2. Run starts it
// from a thread whose death the kernel tells it of, and waits; 3. when the context
// is over the program is asked to end, and killed after Grace.
package child

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Grace is how long a program may take to end after SIGTERM. It is then killed,
// and so are the pipes to it that its own children hold.
const Grace = 5 * time.Second

// Command is exec.CommandContext for Run: at the end of the context the program
// gets SIGTERM first. args has the program as its first word.
func Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // words of the harness's own
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = Grace
	// A driver that is killed has no time to end anything itself: the kernel does it
	// (prctl(2), PR_SET_PDEATHSIG).
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Run runs cmd to its end; started, unless it is nil, gets the process as soon as
// there is one. cmd.ProcessState is nil if it could not be started. The thread is kept for as
// long: it is that thread's end, and not the process's, which the kernel sees as a
// parent's death.
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
