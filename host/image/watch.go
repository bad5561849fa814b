package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of one command of a recipe and of all that it starts.
const (
	stepProcesses = 1000
	stepMemory    = 4 << 30 // bytes of data of one process
	watchEvery    = 100 * time.Millisecond
)

// watch bounds the processes of the PID namespace whose first process is pid. It returns
// nil when done is closed. An error says why the caller must kill them: ctx has ended, or
// there are too many.
//
// A control group below tare's was rejected: tare clean kills the processes there, and may
// run while an image is built. So each process gets limits that its children inherit
// (setrlimit(2)), and watch counts the processes.
func watch(ctx context.Context, pid int, done <-chan struct{}) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	limited := false
	for {
		pids, err := namesakes(pid)
		for range 20 { // repeat at once, for processes that start others quickly
			if limited || err != nil || len(pids) > stepProcesses {
				break
			}
			if limited, err = limitAll(pids); err == nil {
				pids, err = namesakes(pid)
			}
		}
		if err != nil {
			return err
		}
		if len(pids) > stepProcesses {
			return fmt.Errorf("it started more than %d processes", stepProcesses)
		}
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			select {
			case <-done: // it has ended meanwhile
				return nil
			default:
				return ctx.Err()
			}
		case <-tick.C:
		}
	}
}

func stepLimits() map[int]uint64 {
	return map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: stepFile, unix.RLIMIT_DATA: stepMemory}
}

// limitAll limits processes, and reports whether all were limited before. Then all
// processes are limited. Otherwise, or if pids is empty, one may have started another that
// has no limits.
func limitAll(pids []int) (all bool, err error) {
	all = len(pids) > 0
	for _, pid := range pids {
		known, err := limit(pid)
		if err != nil {
			return false, err
		}
		all = all && known
	}
	return all, nil
}

// limit sets the limits of a process, and reports whether it had them.
func limit(pid int) (known bool, err error) {
	known = true
	for what, most := range stepLimits() {
		var old unix.Rlimit
		err := unix.Prlimit(pid, what, &unix.Rlimit{Cur: most, Max: most}, &old)
		if errors.Is(err, unix.ESRCH) {
			return false, nil // it has ended, and may have started another before
		}
		if err != nil {
			return false, fmt.Errorf("cannot limit its process %d: %w", pid, err)
		}
		known = known && old.Max <= most
	}
	return known, nil
}

// namesakes lists the processes in the PID namespace of pid. The list is empty if pid has
// ended.
func namesakes(pid int) ([]int, error) {
	ours, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/pid"))
	if err != nil {
		return nil, nil //nolint:nilerr // it has ended
	}
	if host, err := os.Readlink("/proc/self/ns/pid"); err != nil || host == ours {
		return nil, err // another process has this number now
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if ns, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/pid")); err == nil && ns == ours {
			out = append(out, n)
		}
	}
	return out, nil
}
