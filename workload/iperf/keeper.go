package iperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"tare/workload/child"
	"tare/workload/inside"
)

// late is how much later a signal may arrive here than in the server.
const late = 200 * time.Millisecond

// Main is `tare internal iperf`: it runs an iperf3 server. iperf3 exits with 1 both when it is
// told to end and when it fails; Main distinguishes the two. It returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	fs := inside.Flags("iperf", stderr)
	port := fs.Int("port", 5201, "port to listen on")
	path := fs.String("program", program, "iperf3")
	if err := fs.Parse(args); err != nil || fs.NArg() > 0 {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// Without reports at intervals, which would only take time. Flush every line at once,
	// because run waits for the first.
	cmd := child.Command(ctx, *path, "--server", "--port", strconv.Itoa(*port), "--interval", "0", "--forceflush")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := child.Run(cmd, nil)
	if cmd.ProcessState == nil {
		_, _ = fmt.Fprintf(stderr, "iperf: %v\n", err)
		return 1
	}
	// A signal to the whole group may end the server before it is seen here.
	select {
	case <-ctx.Done():
		return 0 // it ended because it was told to
	case <-time.After(late):
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	_, _ = fmt.Fprintf(stderr, "iperf: the server ended by itself: %v\n", err)
	return 1
}
