package syscalls

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// In these kinds the ways of interception differ beyond the entry into the kernel: the vDSO, page
// faults, memory maps, threads, processes, files in memory.

// openVDSO reads the clock as a program does: through the vDSO without a call, if the platform has
// a vDSO that works.
func openVDSO() (operation, func(), error) {
	var last time.Time
	return func(n int) unix.Errno {
		for range n {
			last = time.Now()
		}
		if last.IsZero() {
			return unix.EINVAL
		}
		return 0
	}, none, nil
}

const block = 4096 // bytes of an operation on a file

func openPread() (operation, func(), error) {
	path, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("finding a file to read: %w", err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return positioned(unix.SYS_PREAD64, fd)
}

func openPwrite() (operation, func(), error) {
	fd, err := unix.MemfdCreate("tare", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return positioned(unix.SYS_PWRITE64, fd)
}

// positioned reads or writes the first block of a file.
func positioned(trap uintptr, fd int) (operation, func(), error) {
	b := new([block]byte)
	return repeated(b, trap, uintptr(fd), address(b), block, 0), func() { _ = unix.Close(fd) }, nil
}

// openSendRecv sends a byte to itself and receives it: the cost of a socket without a switch of
// threads.
func openSendRecv() (operation, func(), error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a pair of sockets: %w", err)
	}
	b := new([8]byte)
	p := uintptr(unsafe.Pointer(b)) //nolint:gosec // the system call's own interface; b is kept below
	return func(n int) unix.Errno {
			for range n {
				if _, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fds[0]), p, 1, 0, 0, 0); e != 0 {
					return e
				}
				if _, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fds[1]), p, 1, 0, 0, 0); e != 0 {
					return e
				}
			}
			runtime.KeepAlive(b)
			return 0
		}, func() {
			_ = unix.Close(fds[0])
			_ = unix.Close(fds[1])
		}, nil
}

// faultPages is how many pages are touched for each call that releases them.
const faultPages = 256

func openFault() (operation, func(), error) {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, faultPages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping memory: %w", err)
	}
	// One fault a page: the kernel must not map huge pages.
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return nil, nil, errors.Join(fmt.Errorf("forbidding large pages: %w", err), unix.Munmap(mem))
	}
	at := 0
	return func(n int) unix.Errno {
		for range n {
			mem[at*page] = 1
			if at++; at == faultPages {
				at = 0
				if _, _, e := unix.RawSyscall(unix.SYS_MADVISE, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)), unix.MADV_DONTNEED); e != 0 { //nolint:gosec // the system call's own interface
					return e
				}
			}
		}
		return 0
	}, func() { _ = unix.Munmap(mem) }, nil
}

// openFutexSwitch wakes another thread and waits until that wakes this one: the cost of a contended
// lock.
func openFutexSwitch() (operation, func(), error) {
	const stop = -1
	var word atomic.Int32 // even: ours, odd: the other's
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread()
		for {
			v := word.Load()
			switch {
			case v == stop:
				return
			case v%2 == 0:
				_ = futex(&word, futexWait, v)
			default:
				if word.CompareAndSwap(v, (v+1)&0xffff) {
					_ = futex(&word, futexWake, 1)
				}
			}
		}
	}()
	return func(n int) unix.Errno {
			for range n {
				v := word.Load() + 1
				word.Store(v)
				if e := futex(&word, futexWake, 1); e != 0 {
					return e
				}
				for word.Load() == v {
					if e := futex(&word, futexWait, v); e != 0 && e != unix.EAGAIN && e != unix.EINTR {
						return e
					}
				}
			}
			return 0
		}, func() {
			word.Store(stop)
			_ = futex(&word, futexWake, 1)
			<-gone
		}, nil
}

// Operations of linux/futex.h, with FUTEX_PRIVATE_FLAG.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

func futex(word *atomic.Int32, op uintptr, v int32) unix.Errno {
	_, _, e := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), op, uintptr(v), 0, 0, 0) //nolint:gosec // the system call's own interface
	return e
}

// openThread starts a thread and waits until it has run: the runtime makes a new thread for a
// goroutine that is locked to its thread until its end.
func openThread() (operation, func(), error) {
	ran := make(chan struct{})
	return func(n int) unix.Errno {
		for range n {
			go func() {
				runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
				ran <- struct{}{}
			}()
			<-ran
		}
		return 0
	}, none, nil
}

// openForkExec runs the smallest program: /tare-hello in a sandbox.
func openForkExec() (operation, func(), error) {
	path := ""
	for _, p := range []string{"/tare-hello", "/bin/true", "/usr/bin/true"} {
		if _, err := os.Stat(p); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		return nil, nil, errors.New("cannot find /tare-hello or /bin/true to run; install coreutils")
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	attr := &syscall.ProcAttr{Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}}
	return func(n int) unix.Errno {
		for range n {
			pid, err := syscall.ForkExec(path, []string{path}, attr) //nolint:gosec // one of three fixed paths
			if err != nil {
				return errnoOf(err)
			}
			var ws unix.WaitStatus
			for {
				if _, err = unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR { //nolint:errorlint // an error number, unwrapped
					break
				}
			}
			switch {
			case err != nil:
				return errnoOf(err)
			case ws.ExitStatus() != 0:
				return unix.ECHILD
			}
		}
		return 0
	}, func() { _ = null.Close() }, nil
}

func errnoOf(err error) unix.Errno {
	if e, ok := errors.AsType[unix.Errno](err); ok {
		return e
	}
	return unix.EIO
}
