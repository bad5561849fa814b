package syscalls

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is one kind of system call, with what it does and how to prepare it.
type call struct {
	name string
	help string
	// open prepares one thread's resources. op runs the call n times and returns the first error
	// number. It does nothing else, so the loop costs only a few instructions a call.
	open func() (op func(n int) unix.Errno, closing func(), err error)
	// each is the number of system calls in one operation; 0 if there is no call, or the number
	// is not fixed.
	each int
}

// calls returns the kinds, from a bare entry into the kernel to those that switch threads.
func calls() []call {
	return []call{
		{"getpid", "nothing but the way into the kernel and back", openGetpid, 1},
		{"clock_gettime", "by system call, not the vDSO", openClock, 1},
		{"clock_vdso", "the same clock through the vDSO, as programs read it: no call where that works", openVDSO, 0},
		{"sched_yield", "to whoever waits for this processor, mostly nobody", openYield, 1},
		{"read_zero", "read of 1 byte from /dev/zero", openReadZero, 1},
		{"write_null", "write of 1 byte to /dev/null", openWriteNull, 1},
		{"pread_file", "read of 4 KiB from a file in the page cache", openPread, 1},
		{"pwrite_memfd", "write of 4 KiB to a file in memory", openPwrite, 1},
		{"stat", "fstatat of a file (this program itself)", openStat, 1},
		{"open_close", "openat and close of a file: both together are one operation", openOpenClose, 2},
		{"mmap_munmap", "map one page, touch it, unmap it: one operation with a page fault", openMmap, 2},
		{"page_fault", "touch a fresh page: a fault each, and a call for every 256", openFault, 0},
		{"futex_wake", "of a futex that nobody waits on", openFutex, 1},
		{"futex_switch", "wake another thread and wait for it to wake this one", openFutexSwitch, 4},
		{"epoll_wait", "of an empty set, without waiting", openEpoll, 1},
		{"send_recv", "1 byte into a UNIX socket and out of it, by one thread: two calls", openSendRecv, 2},
		{"pipe", "1 byte to another thread through a pipe and one back: four calls and two switches", openPipe, 4},
		{"socketpair", "1 byte to another thread through a UNIX socket and one back", openSocketpair, 4},
		{"thread", "start a thread that ends at once, and wait until it has run", openThread, 0},
		{"fork_exec", "start the smallest program and wait for its end", openForkExec, 0},
	}
}

func find(name string) (call, error) {
	var names []string
	for _, c := range calls() {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	return call{}, fmt.Errorf("call %q is not one of %v", name, names)
}

func none() {}

func openGetpid() (func(int) unix.Errno, func(), error) {
	return func(n int) unix.Errno {
		for range n {
			_, _, _ = unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		}
		return 0
	}, none, nil
}

func openClock() (func(int) unix.Errno, func(), error) {
	ts := new(unix.Timespec)
	return func(n int) unix.Errno {
		for range n {
			if _, _, e := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(ts)), 0); e != 0 { //nolint:gosec // the system call's own interface
				return e
			}
		}
		return 0
	}, none, nil
}

// transfer makes an operation of read or write of one byte on a device.
func transfer(path string, flags int, trap uintptr) (func(int) unix.Errno, func(), error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", path, err)
	}
	b := new([8]byte)
	return func(n int) unix.Errno {
		for range n {
			if _, _, e := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(b)), 1); e != 0 { //nolint:gosec // the system call's own interface
				return e
			}
		}
		return 0
	}, func() { _ = unix.Close(fd) }, nil
}

func openReadZero() (func(int) unix.Errno, func(), error) {
	return transfer("/dev/zero", unix.O_RDONLY, unix.SYS_READ)
}

func openWriteNull() (func(int) unix.Errno, func(), error) {
	return transfer("/dev/null", unix.O_WRONLY, unix.SYS_WRITE)
}

// target returns a file that every sandbox has: this program, by its real path, so that the
// measured lookup has no symbolic link.
func target() (*byte, error) {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("finding a file to look at: %w", err)
	}
	return unix.BytePtrFromString(path)
}

// atCWD is AT_FDCWD as a system call's argument.
func atCWD() uintptr {
	fd := unix.AT_FDCWD
	return uintptr(fd)
}

func openStat() (func(int) unix.Errno, func(), error) {
	path, err := target()
	if err != nil {
		return nil, nil, err
	}
	st := new(unix.Stat_t)
	return func(n int) unix.Errno {
		for range n {
			if _, _, e := unix.RawSyscall6(sysStat, atCWD(), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(st)), 0, 0, 0); e != 0 { //nolint:gosec // the system call's own interface
				return e
			}
		}
		return 0
	}, none, nil
}

func openOpenClose() (func(int) unix.Errno, func(), error) {
	path, err := target()
	if err != nil {
		return nil, nil, err
	}
	return func(n int) unix.Errno {
		for range n {
			fd, _, e := unix.RawSyscall6(unix.SYS_OPENAT, atCWD(), uintptr(unsafe.Pointer(path)), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0) //nolint:gosec // the system call's own interface
			if e != 0 {
				return e
			}
			if _, _, e := unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0); e != 0 {
				return e
			}
		}
		return 0
	}, none, nil
}

func openMmap() (func(int) unix.Errno, func(), error) {
	size := uintptr(os.Getpagesize())
	return func(n int) unix.Errno {
		for range n {
			// MAP_POPULATE touches the page inside the call: the fault is part of the operation, and
			// no pointer into the mapping is needed.
			addr, _, e := unix.RawSyscall6(unix.SYS_MMAP, 0, size, unix.PROT_READ|unix.PROT_WRITE,
				unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE, ^uintptr(0), 0)
			if e != 0 {
				return e
			}
			if _, _, e := unix.RawSyscall(unix.SYS_MUNMAP, addr, size, 0); e != 0 {
				return e
			}
		}
		return 0
	}, none, nil
}

func openFutex() (func(int) unix.Errno, func(), error) {
	const wakePrivate = 1 | 128 // FUTEX_WAKE | FUTEX_PRIVATE_FLAG of linux/futex.h
	word := new(uint32)
	return func(n int) unix.Errno {
		for range n {
			if _, _, e := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wakePrivate, 1, 0, 0, 0); e != 0 { //nolint:gosec // the system call's own interface
				return e
			}
		}
		return 0
	}, none, nil
}

func openEpoll() (func(int) unix.Errno, func(), error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("making an epoll set: %w", err)
	}
	ev := new([4]unix.EpollEvent)
	return func(n int) unix.Errno {
		for range n {
			if _, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(ev)), 4, 0, 0, 0); e != 0 { //nolint:gosec // the system call's own interface
				return e
			}
		}
		return 0
	}, func() { _ = unix.Close(fd) }, nil
}
