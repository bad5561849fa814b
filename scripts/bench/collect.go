package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tare/collect/proc"
	"tare/internal/rootfs"
	"tare/record"
)

// threads are sampled, for so many seconds at a time, ten times a second.
const threads, seconds, rate = 500, 3, 10

// collect is the CPU time that sampling 500 threads of this process takes: by
// tare's collector proc on a thread of its own, by top and by pidstat. Unlike a
// benchmark in a loop this samples at the real rate, so caches are as cold as
// they are in a study.
func (b *bench) collect(ctx context.Context) (_ []row, err error) {
	release, err := b.hold(ctx, "collect")
	if err != nil {
		return nil, err
	}
	defer release()
	stop, err := sleepers(threads)
	if err != nil {
		return nil, err
	}
	defer stop()
	figure := fmt.Sprintf("CPU of sampling %d threads at %d Hz", threads, rate)
	pid := strconv.Itoa(os.Getpid())
	var rows []row
	for _, peer := range []struct {
		name  string
		args  []string
		scale float64
	}{
		{"top -H", []string{"-b", "-H", "-d", "0.1", "-n", strconv.Itoa(seconds*rate + 1), "-p", pid}, 1},
		// pidstat takes whole seconds: its cost is scaled to the same rate.
		{"pidstat -t, scaled from 1 Hz", []string{"-t", "-p", pid, "1", strconv.Itoa(seconds)}, rate},
	} {
		program, _ := cutWord(peer.name)
		path, ok := rootfs.Lookup(program)
		if !ok {
			rows = append(rows, row{Figure: figure, Note: program + " is not installed: not beside it"})
			continue
		}
		var pairs []pair
		for i := range b.wants(6) {
			p, err := inTurn(ctx, i, sample, func(ctx context.Context) (float64, error) {
				used, err := cpuOf(ctx, path, peer.args)
				return used * peer.scale / seconds, err
			})
			if err != nil {
				return rows, err
			}
			pairs = append(pairs, p)
		}
		rows = append(rows, row{Figure: figure, Unit: string(record.Cores)}.beside("ratio", peer.name, pairs))
	}
	return rows, nil
}

func cutWord(s string) (first, rest string) {
	for i, c := range s {
		if c == ' ' {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// cpuOf runs a program to its end and returns its CPU seconds.
func cpuOf(ctx context.Context, path string, args []string) (float64, error) {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // one of two fixed programs
	cmd.Env = append(os.Environ(), "TERM=dumb")
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

// sample reads the threads as a study does, and returns cores. Opening is not
// counted, reading, searching and preparing of each sample are.
func sample(ctx context.Context) (cores float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := proc.NewWith(proc.Options{}).Open(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	begin, err := threadCPU()
	if err != nil {
		return 0, err
	}
	var got []record.Sample
	for range seconds * rate {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
		if got, err = p.Read(got[:0]); err != nil {
			return 0, err
		}
	}
	end, err := threadCPU()
	if err != nil {
		return 0, err
	}
	for _, s := range got {
		if s.Name == proc.Threads && s.Value >= threads {
			return (end - begin) / seconds, nil
		}
	}
	return 0, fmt.Errorf("the collector did not see %d threads", threads)
}

// threadCPU is the calling thread's CPU time in seconds: clock_gettime(2).
func threadCPU() (float64, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return float64(ts.Nano()) * 1e-9, err
}

// sleepers starts n threads that sleep in a read until stop.
func sleepers(n int) (stop func(), err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	ready, done := make(chan struct{}), make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			ready <- struct{}{}
			_, _ = unix.Read(fds[0], make([]byte, 1)) // ends with the pipe
			done <- struct{}{}
		}()
	}
	for range n {
		<-ready
	}
	time.Sleep(50 * time.Millisecond) // until they are in the read
	return func() {
		_ = unix.Close(fds[1])
		for range n {
			<-done
		}
		_ = unix.Close(fds[0])
	}, nil
}
