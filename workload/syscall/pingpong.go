package syscalls

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func openPipe() (operation, func(), error) {
	var there, back [2]int
	if err := unix.Pipe2(there[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("making a pipe: %w", err)
	}
	if err := unix.Pipe2(back[:], unix.O_CLOEXEC); err != nil {
		_ = unix.Close(there[0])
		_ = unix.Close(there[1])
		return nil, nil, fmt.Errorf("making a pipe: %w", err)
	}
	return pingPong(side{back[0], there[1]}, side{there[0], back[1]})
}

func openSocketpair() (operation, func(), error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a pair of sockets: %w", err)
	}
	return pingPong(side{fds[0], fds[0]}, side{fds[1], fds[1]})
}

// side is one thread's side of a ping-pong.
type side struct{ in, out int }

func (e side) close() {
	_ = unix.Close(e.out)
	if e.in != e.out {
		_ = unix.Close(e.in)
	}
}

// pingPong starts the thread that answers. It ends when its input does, after
// closing has closed the asking side.
func pingPong(ask, answer side) (op operation, closing func(), err error) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer answer.close()
		runtime.LockOSThread()
		b := new([8]byte)
		for one(unix.SYS_READ, answer.in, b) == 0 && one(unix.SYS_WRITE, answer.out, b) == 0 {
		}
	}()
	b := new([8]byte)
	return func(n int) unix.Errno {
			for range n {
				if e := one(unix.SYS_WRITE, ask.out, b); e != 0 {
					return e
				}
				if e := one(unix.SYS_READ, ask.in, b); e != 0 {
					return e
				}
			}
			return 0
		}, func() {
			ask.close()
			<-gone
		}, nil
}

// one transfers one byte; an end of input is EPIPE.
//
//go:nosplit
func one(trap uintptr, fd int, b *[8]byte) unix.Errno {
	for {
		n, _, e := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(b)), 1) //nolint:gosec // the system call's own interface
		switch {
		case e == unix.EINTR:
		case e != 0:
			return e
		case n == 0:
			return unix.EPIPE
		default:
			return 0
		}
	}
}
