package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The agent makes frequent system calls, and the calls at the gate, without telling Go's
// scheduler. An ordinary system call wakes the scheduler's monitor (sysmon), a thread that
// then polls about every 20 us until everything is idle again. On an emulated processor
// that costs several times as much as the call. These calls do not block, except
// sleepUntil, which has its own thread.

// monotonic is clock_gettime(2) of CLOCK_MONOTONIC, in nanoseconds.
func monotonic() int64 {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 { //nolint:gosec // as unix.ClockGettime does it
		return 0 // impossible: every kernel that Go runs on has this clock
	}
	return ts.Nano()
}

// sleepUntil is clock_nanosleep(2) until a time of CLOCK_MONOTONIC.
func sleepUntil(at int64) error {
	ts := unix.NsecToTimespec(at)
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0) //nolint:gosec // as unix.ClockNanosleep does it
		switch errno {
		case 0:
			return nil
		case unix.EINTR: // the runtime's monitor tries to preempt this thread; there is nothing else to run
		default:
			return fmt.Errorf("clock_nanosleep: %w", errno)
		}
	}
}

// spent is the CPU that this process has used: getrusage(2), in nanoseconds.
func spent() int64 {
	var used unix.Rusage
	if _, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_SELF, uintptr(unsafe.Pointer(&used)), 0); errno != 0 { //nolint:gosec // as unix.Getrusage does it
		return 0
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// expired returns how often a timer has expired since the last call: read(2) of a
// non-blocking timerfd_create(2).
func expired(timer uintptr) uint64 {
	var n uint64
	if got, _, _ := unix.RawSyscall(unix.SYS_READ, timer, uintptr(unsafe.Pointer(&n)), unsafe.Sizeof(n)); got != unsafe.Sizeof(n) { //nolint:gosec // as unix.Read does it
		return 0
	}
	return n
}

// kernelFile is a file of /proc that is read many times.
type kernelFile struct {
	path string
	fd   int
}

func openKernel(path string) (*kernelFile, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &kernelFile{path, fd}, nil
}

// maxKernelFile bounds how much of one is read, in bytes.
const maxKernelFile = 1 << 20

// read reads the whole file by pread(2) into *buf, which grows as needed.
func (f *kernelFile) read(buf *[]byte) ([]byte, error) {
	if len(*buf) == 0 {
		*buf = make([]byte, 16<<10)
	}
	for n := 0; ; {
		room := (*buf)[n:]
		got, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(f.fd), uintptr(unsafe.Pointer(&room[0])), uintptr(len(room)), uintptr(n), 0, 0) //nolint:gosec // as unix.Pread does it
		if errors.Is(errno, unix.EINTR) {
			continue
		}
		if errno != 0 {
			return nil, &os.PathError{Op: "read", Path: f.path, Err: errno}
		}
		// The kernel fills the buffer in one call. If it is full, there may be more.
		if n += int(got); n < len(*buf) {
			return (*buf)[:n], nil
		}
		if n >= maxKernelFile {
			return nil, &os.PathError{Op: "read", Path: f.path, Err: io.ErrShortBuffer}
		}
		*buf = append(*buf, make([]byte, len(*buf))...)
	}
}

func (f *kernelFile) close() error {
	if f == nil {
		return nil
	}
	return unix.Close(f.fd)
}
