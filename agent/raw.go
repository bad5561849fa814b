package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the agent does many times a second, or while it waits for a moment, goes to the
// kernel past Go's scheduler. A usual system call wakes its monitor (sysmon), a thread that
// then looks about every 20 us until it sees that all is idle again: on an emulated
// processor that costs several times as much as the call. None of these calls waits but
// sleepUntil, which a thread of its own does.

// monotonic is clock_gettime(2) of CLOCK_MONOTONIC, in nanoseconds.
func monotonic() int64 {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 { //nolint:gosec // as unix.ClockGettime does it
		return 0 // cannot be: every kernel that Go runs on has the clock
	}
	return ts.Nano()
}

// sleepUntil is clock_nanosleep(2) up to a moment of CLOCK_MONOTONIC.
func sleepUntil(at int64) error {
	ts := unix.NsecToTimespec(at)
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0) //nolint:gosec // as unix.ClockNanosleep does it
		switch errno {
		case 0:
			return nil
		case unix.EINTR: // the monitor wants this thread to make room, and there is nobody for it
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

// expired is how often a timer has run out since it was last asked, by read(2) of a
// timerfd_create(2) that does not block; 0: not yet.
func expired(timer uintptr) uint64 {
	var n uint64
	if got, _, _ := unix.RawSyscall(unix.SYS_READ, timer, uintptr(unsafe.Pointer(&n)), unsafe.Sizeof(n)); got != unsafe.Sizeof(n) { //nolint:gosec // as unix.Read does it
		return 0
	}
	return n
}

// kernelFile is a file of /proc that is read again and again.
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

// maxKernelFile bounds what is read of one, in bytes.
const maxKernelFile = 1 << 20

// read reads the whole file by pread(2) into *buf, which grows as it has to.
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
		// What fits is there after one call; a full buffer may hide more.
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
