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
	"tare/host/rootfs"
	"tare/record"
)

// threads are sampled, so many readings at a time.
const threads, readings = 500, 30

// sampled is one way to sample threads: the CPU seconds of a reading.
type sampled func(ctx context.Context, every time.Duration, n int) (float64, error)

// collect is the CPU time that sampling 500 threads of this process takes: by
// tare's collector proc on a thread of its own, by top and by pidstat. Unlike a
// benchmark in a loop this samples at the real rate, so caches are as cold as
// they are in a study.
func (b *bench) collect(ctx context.Context) (_ []row, err error) {
	stop, err := sleepers(threads)
	if err != nil {
		return nil, err
	}
	defer stop()
	const second, tenth = time.Second, time.Second / 10
	var rows []row
	for _, c := range []struct {
		ours  proc.Way
		name  string // of our way
		peer  string
		every time.Duration
		other time.Duration // the peer's interval; its cost is scaled to ours
	}{
		{proc.BPF, "BPF iterator", "top -H", tenth, tenth},
		// pidstat takes whole seconds: what a reading costs it then, ten times a
		// second; and both at its own rate.
		{proc.BPF, "BPF iterator", "pidstat -t", tenth, second},
		{proc.BPF, "BPF iterator", "pidstat -t", second, second},
		{proc.Files, "files of /proc", "pidstat -t", tenth, second},
		{proc.BPF, "BPF iterator", "files of /proc", tenth, tenth},
	} {
		r := row{Figure: fmt.Sprintf("CPU of sampling %d threads at %d Hz, %s", threads, second/c.every, c.name), Unit: string(record.Cores)}
		ours, peer := with(c.ours), peers(c.peer)
		if c.peer == c.name || c.peer == "files of /proc" {
			peer = with(proc.Files)
		}
		if peer == nil {
			rows = append(rows, row{Figure: r.Figure, Note: c.peer + " is not installed: not beside it"})
			continue
		}
		pairs, err := inTurn(ctx, b.wants(6), perSecond(ours, c.every, c.every), perSecond(peer, c.other, c.every))
		switch {
		case err != nil && c.ours != proc.BPF:
			return rows, err
		case err != nil:
			rows = append(rows, row{Figure: r.Figure, Note: "not measured: " + err.Error()})
		}
		if len(pairs) == 0 {
			continue
		}
		if c.other != c.every {
			c.peer += ", a reading at 1 Hz x 10"
		}
		r = r.beside("ratio", c.peer, pairs)
		if c.ours == proc.BPF && c.every == tenth {
			r = r.below(0.005)
		}
		if c.ours == proc.BPF && c.other == second {
			r.Note = fmt.Sprintf("wanted: 20 times cheaper; it is %.0f times", 1/r.Mid)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// perSecond measures readings at one interval, and says what they would take of
// a processor at another.
func perSecond(s sampled, at, scaled time.Duration) func(context.Context) (float64, error) {
	n := readings
	if at >= time.Second {
		n = 5
	}
	return func(ctx context.Context) (float64, error) {
		each, err := s(ctx, at, n)
		return each / scaled.Seconds(), err
	}
}

// peers is a program that samples this process, nil if it is not installed. Its
// start and first reading are taken off, by a run of fewer readings.
func peers(name string) sampled {
	pid := strconv.Itoa(os.Getpid())
	program, args := "top", func(every time.Duration, n int) []string {
		return []string{"-b", "-H", "-d", fmt.Sprintf("%.1f", every.Seconds()), "-n", strconv.Itoa(n + 1), "-p", pid}
	}
	if name == "pidstat -t" {
		program, args = "pidstat", func(every time.Duration, n int) []string {
			return []string{"-t", "-p", pid, strconv.Itoa(int(every / time.Second)), strconv.Itoa(n)}
		}
	}
	path, ok := rootfs.Lookup(program)
	if !ok {
		return nil
	}
	return func(ctx context.Context, every time.Duration, n int) (float64, error) {
		all, err := cpuOf(ctx, path, args(every, n))
		if err != nil {
			return 0, err
		}
		one, err := cpuOf(ctx, path, args(every, 1))
		return (all - one) / float64(n-1), err
	}
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

// with reads the threads as a study does. Opening is not counted; reading,
// searching and preparing of each sample are.
func with(way proc.Way) sampled {
	return func(ctx context.Context, every time.Duration, n int) (each float64, err error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := proc.NewWith(proc.Options{Way: way}).Open(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		got, err := p.Read(nil) // the first one makes room
		if err != nil {
			return 0, err
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		begin, err := threadCPU()
		if err != nil {
			return 0, err
		}
		for range n {
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
				return (end - begin) / float64(n), nil
			}
		}
		return 0, fmt.Errorf("the collector did not see %d threads", threads)
	}
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
