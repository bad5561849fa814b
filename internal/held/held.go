// Package held reads small kernel files again and again, at the least cost.
//
// The data path: 1. Open opens a file and, while the Budget lasts, keeps the
// descriptor; 2. Read fills the caller's buffer by pread at offset 0, which
// makes the kernel write the file afresh (Documentation/filesystems/seq_file.rst);
// 3. the byte parsers beside it (Uint, Value, Line) take the numbers out
// without allocating; 4. Meter counts the CPU that all this took.
//
// A held descriptor costs one system call a reading, measured at 0.5 us for
// schedstat, against three and about 4 us for open, read and close. It also
// names the thread that it was opened for: after the thread's end it gives
// ESRCH, even if the number is used again. bufio and os.File were left out of
// the hot path because they allocate, and poll on regular files.
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
// use, as the probe that owns it is not.
type Budget struct{ left int }

// NewBudget allows n held descriptors.
func NewBudget(n int) *Budget { return &Budget{left: max(n, 0)} }

// DefaultBudget allows a quarter of this process's RLIMIT_NOFILE, at most 8192:
// enough for every thread of a usual trial, and the rest of the program keeps
// its share. Files beyond the budget still work, by open, read and close.
func DefaultBudget() *Budget {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return NewBudget(64)
	}
	return NewBudget(int(min(r.Cur/4, 8192)))
}

// Left is the number of descriptors that may still be held.
func (b *Budget) Left() int { return b.left }

// File is one kernel file that is read repeatedly. Close gives the descriptor
// back; a File must not be copied.
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
		b.left = 0 // somebody else needs them: hold no more
		return nil, fmt.Errorf("open %s: %w; raise the limit of open files (ulimit -n)", path, err)
	default:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

// Path is the name that the file was opened by.
func (f *File) Path() string { return f.path }

// Held says whether the file's descriptor is kept open.
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
		// One call is enough for files that fit: these writers fill the buffer
		// or stop at the end. A full buffer may hide more.
		if n < len(*buf) {
			return (*buf)[:n], nil
		}
		if len(*buf) >= maxFile {
			return nil, fmt.Errorf("read %s: %w: over 1 MiB", f.path, io.ErrShortBuffer)
		}
		*buf = append(*buf, make([]byte, len(*buf))...)
	}
}

// Close gives the descriptor back. It is idempotent, and safe on nil.
func (f *File) Close() error {
	if f == nil || f.fd < 0 {
		return nil
	}
	fd := f.fd
	f.fd = -1
	f.budget.left++
	return unix.Close(fd)
}

// Head reads the beginning of a file, as much as buf holds, without keeping it open
// and without Go's network poller, which costs as much again.
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

// Monotonic is the time since boot less suspension, clock_gettime(2)'s
// CLOCK_MONOTONIC: what rescans are timed by.
func Monotonic() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

// ThreadCPU is the CPU time of the calling thread, CLOCK_THREAD_CPUTIME_ID: for
// stretches within a Meter's, which keeps the goroutine on its thread.
func ThreadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
