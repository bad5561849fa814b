package taskiter

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"tare/internal/held"
)

// try reads the calling thread in both ways. They differ if this process is in its own PID
// namespace, or if the kernel's types are not those of its BTF.
func (it *Iter) try() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, tid := os.Getpid(), unix.Gettid()
	it.Add(pid)
	defer func() {
		it.Clear()
		it.Forget()
	}()
	low, err := own(tid)
	if err != nil {
		return err
	}
	got, err := it.Scan(nil)
	if err != nil {
		return err
	}
	high, err := own(tid)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(got, func(r Record) bool { return r.Tid == tid && r.Pid == pid })
	if i < 0 {
		return errors.New("BPF and /proc show different process IDs: this process is in its own PID namespace, such as a container's")
	}
	it.Forget()
	one, err := it.ScanProcess(nil, pid)
	it.narrow = err == nil && slices.ContainsFunc(one, func(r Record) bool { return r.Tid == tid && r.Start == got[i].Start })
	if r := got[i]; r.Run < low[0] || r.Run > high[0] || r.Wait < low[1] || r.Wait > high[1] {
		return fmt.Errorf("BPF says that this thread ran %d ns and waited %d ns, /proc %d to %d and %d to %d", r.Run, r.Wait, low[0], high[0], low[1], high[1])
	}
	return nil
}

// own reads the calling thread's run time and run-queue wait from /proc.
func own(tid int) (out [2]uint64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", tid))
	if err != nil {
		return out, fmt.Errorf("compare with /proc: %w", err)
	}
	for i := range out {
		ok := false
		if out[i], b, ok = held.Uint(b); !ok {
			return out, fmt.Errorf("compare with /proc: schedstat of thread %d has no number", tid)
		}
	}
	return out, nil
}
