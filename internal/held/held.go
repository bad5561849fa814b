// Package held reads small kernel files many times, at little cost.
//
// The data path: 1. Open opens a file and, while the Budget lasts, keeps the
// descriptor; 2. Read fills the caller's buffer by pread at offset 0, which
// makes the kernel write the file anew (Documentation/filesystems/seq_file.rst);
// 3. the byte parsers (Uint, Value, Line) take the numbers out
// without allocating; 4. Meter counts the CPU that all this took.
//
// With a held descriptor a reading is one system call, measured at 0.5 us for schedstat.
// Open, read and close are three, about 4 us. The descriptor also identifies the thread for
// which it was opened: after the thread's end it gives ESRCH, even if the number is used
// again. The hot path avoids bufio and os.File because they allocate and poll.
package held

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// maxFile bounds what Read takes from one file. /proc/stat of a host with
// hundreds of processors stays below it.
const maxFile = 1 << 20

// Budget bounds how many descriptors are held. It is not safe for concurrent
// use, like the probe that owns it.
type Budget struct{ left int }

// NewBudget allows n held descriptors.
func NewBudget(n int) *Budget { return &Budget{left: max(n, 0)} }

// DefaultBudget allows a quarter of this process's RLIMIT_NOFILE, at most 8192: enough for
// every thread of a usual trial, and the rest of the program can still open files. Files
// beyond the budget are opened, read and closed each time.
func DefaultBudget() *Budget {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return NewBudget(64)
	}
	return NewBudget(int(min(r.Cur/4, 8192)))
}

// Left is the number of descriptors that may still be held.
func (b *Budget) Left() int { return b.left }

// File is one kernel file that is read repeatedly. Close releases the descriptor. A File
// must not be copied.
type File struct {
	path   string
	fd     int // -1: not held
	budget *Budget
}

// Open opens path for reading. The error is the system's (errors.Is with
// fs.ErrNotExist works on it).
func Open(path string, b *Budget) (*File, error) {
	f := &File{path: path, fd: -1, budget: b}
	fd, err := open(path)
	switch {
	case err == nil && b.left > 0:
		b.left--
		f.fd = fd
	case err == nil:
		return f, unix.Close(fd)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		b.left = 0 // the limit is reached: hold no more
		return nil, fmt.Errorf("open %s: %w; raise the limit of open files (ulimit -n)", path, err)
	default:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

// Path returns the path that was given to Open.
func (f *File) Path() string { return f.path }

// Held reports whether the file's descriptor is kept open.
func (f *File) Held() bool { return f.fd >= 0 }

// Read reads the whole file into *buf from its start, growing *buf up to 1 MiB,
// and returns what it read, valid until *buf is used again. A thread that has
// ended gives ESRCH, a cgroup that was removed ENODEV.
func (f *File) Read(buf *[]byte) ([]byte, error) {
	fd := f.fd
	if fd < 0 {
		var err error
		if fd, err = open(f.path); err != nil {
			return nil, err
		}
		defer unix.Close(fd) //nolint:errcheck // only read from
	}
	if len(*buf) == 0 {
		*buf = make([]byte, 4096)
	}
	n := 0
	for {
		m, err := unix.Pread(fd, (*buf)[n:], int64(n))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		n += m
		// The kernel fills the buffer in one call. If it is full, there may be more.
		if n < len(*buf) {
			return (*buf)[:n], nil
		}
		if len(*buf) >= maxFile {
			return nil, fmt.Errorf("read %s: %w: over 1 MiB", f.path, io.ErrShortBuffer)
		}
		*buf = append(*buf, make([]byte, len(*buf))...)
	}
}

// Close releases the descriptor. It is idempotent, and safe on nil.
func (f *File) Close() error {
	if f == nil || f.fd < 0 {
		return nil
	}
	fd := f.fd
	f.fd = -1
	f.budget.left++
	return unix.Close(fd)
}

// Head reads the beginning of a file into buf. It closes the file, and avoids Go's network
// poller, which would double the cost.
func Head(path string, buf []byte) ([]byte, error) {
	fd, err := open(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) //nolint:errcheck // only read from
	for n := 0; ; {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		}
		if n += m; m == 0 || n == len(buf) {
			return buf[:n], nil
		}
	}
}

func open(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// Monotonic is CLOCK_MONOTONIC of clock_gettime(2): the time since boot without suspension.
func Monotonic() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

// ThreadCPU is the CPU time of the calling thread, CLOCK_THREAD_CPUTIME_ID. Use it between
// Start and Stop of a Meter, which keep the goroutine on its thread.
func ThreadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
