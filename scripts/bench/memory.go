package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// memory runs one block of the study and reads the peak memory of the tare
// process, not of its children: VmHWM in /proc/PID/status (proc_pid_status(5)).
// getrusage(2) would give the largest of the children too.
func (b *bench) memory(ctx context.Context) ([]row, error) {
	u, err := b.runStudy(ctx)
	if err != nil {
		return nil, err
	}
	r := row{Figure: "peak memory of tare during one block of " + filepath.Base(b.study), Unit: "B", Tare: u.peak}.below(100e6)
	r.Note = fmt.Sprintf("VmHWM of the tare process alone, the last of readings every 50 ms for %.0f s", u.seconds)
	return []row{r}, nil
}

// runStudy runs one block of the study into b.results.
func (b *bench) runStudy(ctx context.Context) (usage, error) {
	dir := filepath.Join(b.work, "results")
	u, err := b.block(ctx, b.study, dir)
	if err == nil {
		b.results = dir
	}
	return u, err
}

// block runs one block of a study into a new results folder. The study takes the host's lock
// itself.
func (b *bench) block(ctx context.Context, study, dir string) (usage, error) {
	return b.used(ctx, nil, "run", "--wait", "--fresh", study, "--set", "stop.fixed=1", "-o", dir)
}

// usage is what one call of tare took: seconds, seconds of CPU, bytes at most.
type usage struct{ seconds, cpu, peak float64 }

// used calls the built tare. Its peak memory is VmHWM, read every 50 ms: getrusage(2) would give
// that of this process where it is the larger one, since a new program's count begins with that
// of the one that it was forked from. see, unless nil, gets the process's id each time.
func (b *bench) used(ctx context.Context, see func(pid int), args ...string) (u usage, err error) {
	cmd := exec.CommandContext(ctx, b.tare, args...)                        //nolint:gosec // the binary under test
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it cleans up
	var said bytes.Buffer
	cmd.Stderr = &said
	if u, err = observed(cmd, see); err != nil {
		err = fmt.Errorf("tare %s: %w: %s", args[0], err, tail(said.Bytes()))
	}
	return u, err
}

// observed runs a command. Unless see is nil, observed calls it every 50 ms with the process id.
func observed(cmd *exec.Cmd, see func(pid int)) (u usage, err error) {
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return u, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			u.seconds = time.Since(begun).Seconds()
			u.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
			return u, err
		case <-tick.C:
			u.peak = max(u.peak, float64(peakMemory(cmd.Process.Pid)))
			if see != nil {
				see(cmd.Process.Pid)
			}
		}
	}
}

// printed is what a call of tare prints.
func (b *bench) printed(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.tare, args...) //nolint:gosec // the binary under test
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("tare %s: %w: %s", args[0], err, tail(said.Bytes()))
	}
	return out, err
}

// peakMemory is the largest resident set of a process so far, 0 if it has ended.
func peakMemory(pid int) int64 { return statusOf(pid, "VmHWM:") }

// residentMemory returns the current resident set of a process in bytes; 0 if the process has ended.
func residentMemory(pid int) int64 { return statusOf(pid, "VmRSS:") }

func statusOf(pid int, key string) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	return sizeOf(f, key)
}

// sizeOf reads "VmHWM:    48412 kB", in bytes; 0 if it is not there.
func sizeOf(r io.Reader, key string) int64 {
	for s := bufio.NewScanner(io.LimitReader(r, 64<<10)); s.Scan(); {
		var kib int64
		if rest, ok := strings.CutPrefix(s.Text(), key); ok {
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
