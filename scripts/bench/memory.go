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
	var peak int64
	begun := time.Now()
	if err := b.runStudy(ctx, &peak); err != nil {
		return nil, err
	}
	r := row{Figure: "peak memory of tare during one block of " + filepath.Base(b.study), Unit: "B", Tare: float64(peak)}.below(100e6)
	r.Note = fmt.Sprintf("VmHWM of the tare process alone, the last of readings every 50 ms for %.0f s", time.Since(begun).Seconds())
	return []row{r}, nil
}

// runStudy runs one block of the study into b.results.
func (b *bench) runStudy(ctx context.Context, peak *int64) error {
	dir := filepath.Join(b.work, "results")
	err := b.watched(ctx, []string{b.study, "--set", "stop.fixed=1", "-o", dir}, func(pid int) { *peak = max(*peak, peakMemory(pid)) })
	if err == nil {
		b.results = dir
	}
	return err
}

// watched runs a study by the built tare, and calls see with the process's id
// every 50 ms. The study takes the host's lock itself.
func (b *bench) watched(ctx context.Context, args []string, see func(pid int)) error {
	cmd := exec.Command(b.tare, append([]string{"run", "--wait", "--fresh"}, args...)...) //nolint:gosec,noctx // the binary under test, interrupted below
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	interrupt := ctx.Done()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("tare run %s: %w: %s", args[0], err, tail(said.Bytes()))
			}
			return nil
		case <-interrupt:
			interrupt = nil
			_ = cmd.Process.Signal(syscall.SIGINT) // it cleans up
		case <-tick.C:
			see(cmd.Process.Pid)
		}
	}
}

// peakMemory is the largest resident set of a process so far, 0 if it has ended.
func peakMemory(pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	return peakOf(f)
}

// peakOf reads "VmHWM:    48412 kB", in bytes; 0 if it is not there.
func peakOf(r io.Reader) int64 {
	for s := bufio.NewScanner(io.LimitReader(r, 64<<10)); s.Scan(); {
		var kib int64
		if rest, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
