package syscalls

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is one kind of system call, with what it does and how to prepare it.
type call struct {
	name string
	help string
	// open prepares one thread's resources. op runs the call n times and returns the first error
	// number. It does nothing else, so the loop costs only a few instructions a call.
	open func() (op operation, closing func(), err error)
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

// operation makes a number of calls, or of pairs of them.
type operation = func(n int) unix.Errno

// repeated makes the same call again and again; keep is what its arguments point to.
func repeated(keep any, trap uintptr, args ...uintptr) operation {
	var a [6]uintptr
	copy(a[:], args)
	return func(n int) unix.Errno {
		for range n {
			if _, _, e := unix.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
				return e
			}
		}
		runtime.KeepAlive(keep)
		return 0
	}
}

// address is a pointer as a call's argument. What it points to must be kept alive, on the heap.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) } //nolint:gosec // the system call's own interface

func openGetpid() (operation, func(), error) { return repeated(nil, unix.SYS_GETPID), none, nil }

func openYield() (operation, func(), error) { return repeated(nil, unix.SYS_SCHED_YIELD), none, nil }

func openClock() (operation, func(), error) {
	ts := new(unix.Timespec)
	return repeated(ts, unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, address(ts)), none, nil
}

// transfer makes an operation of read or write of one byte on a device.
func transfer(path string, flags int, trap uintptr) (operation, func(), error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", path, err)
	}
	b := new([8]byte)
	return repeated(b, trap, uintptr(fd), address(b), 1), func() { _ = unix.Close(fd) }, nil
}

func openReadZero() (operation, func(), error) {
	return transfer("/dev/zero", unix.O_RDONLY, unix.SYS_READ)
}

func openWriteNull() (operation, func(), error) {
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

func openStat() (operation, func(), error) {
	path, err := target()
	if err != nil {
		return nil, nil, err
	}
	st := new(unix.Stat_t)
	return repeated([]any{path, st}, sysStat, atCWD(), address(path), address(st), 0), none, nil
}

func openOpenClose() (operation, func(), error) {
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

func openMmap() (operation, func(), error) {
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

func openFutex() (operation, func(), error) {
	word := new(uint32)
	return repeated(word, unix.SYS_FUTEX, address(word), futexWake, 1), none, nil
}

func openEpoll() (operation, func(), error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("making an epoll set: %w", err)
	}
	ev := new([4]unix.EpollEvent)
	return repeated(ev, unix.SYS_EPOLL_PWAIT, uintptr(fd), address(ev), 4), func() { _ = unix.Close(fd) }, nil
}
