// Package raw has the system calls of the hot loops of load generators. They do not inform the Go
// scheduler and do not allocate, for the reasons in hot.go of workload/net: a thread that is blocked in
// one keeps its P, so the program needs enough of them (Threads).
package raw

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Tick is the longest wait of a loop, so that it soon sees that it must end.
const Tick = 50 * time.Millisecond

// Threads prepares for n threads that block without informing the Go scheduler: each keeps its P,
// and the coordinator and the poller need some too. It also runs the last garbage collection
// before them. Both stop the world, so no such thread may be running.
func Threads(n int) {
	runtime.GC()
	if want := n + 4; runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
}

// Pin locks the goroutine to its own thread, which ends with it, and lets that thread wake up on time.
// By default threads sleep up to 50 us longer than requested, so that the kernel can combine
// wake-ups: PR_SET_TIMERSLACK(2const). If a kernel refuses to change it, the wake delay of a report shows it.
func Pin() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

// Spin is the part of a wait to spend looking at the clock, in nanoseconds: an idle processor takes tens of
// microseconds to wake up, more in a virtual machine. It is the given one, but takes at most a quarter of a
// processor at this rate a second.
func Spin(most time.Duration, rate float64) int64 {
	const share = 0.25
	return int64(min(most.Seconds(), share/rate) * 1e9)
}

// Addr is a socket address of either family as the kernel wants it: ip(7), ipv6(7).
type Addr struct {
	b    [28]byte
	size uint32
}

// AddrOf converts an address.
func AddrOf(a netip.AddrPort) (r Addr) {
	if a.Addr().Is4() || a.Addr().Is4In6() {
		r.size = unix.SizeofSockaddrInet4
		binary.NativeEndian.PutUint16(r.b[0:], unix.AF_INET)
		ip := a.Addr().As4()
		copy(r.b[4:], ip[:])
	} else {
		r.size = unix.SizeofSockaddrInet6
		binary.NativeEndian.PutUint16(r.b[0:], unix.AF_INET6)
		ip := a.Addr().As16()
		copy(r.b[8:], ip[:])
	}
	binary.BigEndian.PutUint16(r.b[2:], a.Port())
	return r
}

// Family is AF_INET or AF_INET6.
func (r *Addr) Family() uintptr { return uintptr(binary.NativeEndian.Uint16(r.b[0:])) }

// SetPort sets the port.
func (r *Addr) SetPort(p int) { binary.BigEndian.PutUint16(r.b[2:], uint16(p)) } //nolint:gosec // checked when it came

// SetIP4 sets the address of an IPv4 socket.
func (r *Addr) SetIP4(ip uint32) { binary.BigEndian.PutUint32(r.b[4:], ip) }

// Port is the port.
func (r *Addr) Port() int { return int(binary.BigEndian.Uint16(r.b[2:])) }

// Socket is socket(2).
func Socket(family, kind uintptr) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_SOCKET, family, kind|unix.SOCK_CLOEXEC, 0, 0, 0, 0)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// Connect is connect(2). After a signal or SO_SNDTIMEO the kernel continues to connect: then
// the error is EINPROGRESS, and another call returns the result.
func Connect(fd int, a *Addr) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&a.b)), uintptr(a.size)) //nolint:gosec // the system call's own interface
	switch e {
	case unix.EISCONN:
		return 0
	case unix.EINTR, unix.EALREADY:
		return unix.EINPROGRESS
	}
	return e
}

// Bind is bind(2).
func Bind(fd int, a *Addr) unix.Errno {
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&a.b)), uintptr(a.size), 0, 0, 0) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return e
		}
	}
}

// Listen is listen(2).
func Listen(fd, backlog int) unix.Errno {
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_LISTEN, uintptr(fd), uintptr(backlog), 0, 0, 0, 0)
		if e != unix.EINTR {
			return e
		}
	}
}

// Name is getsockname(2).
func Name(fd int, a *Addr) unix.Errno {
	a.size = uint32(len(a.b))
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&a.b)), uintptr(unsafe.Pointer(&a.size)), 0, 0, 0) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return e
		}
	}
}

// waited turns an interruption into the end of a tick: a signal ends a wait with a timeout even
// with SA_RESTART (signal(7)), and restarting it could go on forever.
func waited(e unix.Errno) unix.Errno {
	if e == unix.EINTR {
		return unix.EAGAIN
	}
	return e
}

// Accept is accept4(2) on a socket with Patience.
func Accept(fd int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
	return int(n), waited(e)
}

// Close is close(2).
func Close(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// Option is setsockopt(2) of a number.
func Option(fd, level, name, value int) unix.Errno {
	v := int32(value) //nolint:gosec // checked before
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return e
		}
	}
}

// Patience lets a receive or a send wait for a Tick: SO_RCVTIMEO, SO_SNDTIMEO of socket(7).
func Patience(fd, name int) unix.Errno {
	tv := unix.NsecToTimeval(int64(Tick))
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, uintptr(name), uintptr(unsafe.Pointer(&tv)), unsafe.Sizeof(tv), 0) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return e
		}
	}
}

// again reports whether an interrupted call must be repeated: a call that does not wait, because
// EAGAIN would mean that there is no data or no room.
func again(e unix.Errno, flags int) bool { return e == unix.EINTR && flags&unix.MSG_DONTWAIT != 0 }

// Send is send(2) without SIGPIPE.
func Send(fd int, p []byte, flags int) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags|unix.MSG_NOSIGNAL), 0, 0) //nolint:gosec // the system call's own interface
		if !again(e, flags) {
			return int(n), waited(e)
		}
	}
}

// Recv is recv(2).
func Recv(fd int, p []byte, flags int) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags), 0, 0) //nolint:gosec // the system call's own interface
		if !again(e, flags) {
			return int(n), waited(e)
		}
	}
}

// RecvFrom is Recv that also returns the sender.
func RecvFrom(fd int, p []byte, from *Addr) (int, unix.Errno) {
	from.size = uint32(len(from.b))
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, uintptr(unsafe.Pointer(&from.b)), uintptr(unsafe.Pointer(&from.size))) //nolint:gosec // the system call's own interface
	return int(n), waited(e)
}

// Poll waits for events on fd; false when the time is over or after a signal.
func Poll(fd int, events int16, ns int64) (bool, unix.Errno) {
	p := unix.PollFd{Fd: int32(fd), Events: events} //nolint:gosec // a descriptor
	ts := unix.NsecToTimespec(ns)
	n, _, e := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0) //nolint:gosec // the system call's own interface
	if e == unix.EINTR {
		e = 0
		n = 0
	}
	return n > 0, e
}

// ReadOnce is read(2) on a socket with Patience.
func ReadOnce(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))) //nolint:gosec // the system call's own interface
	return int(n), waited(e)
}

// WriteOnce is write(2) on a socket with Patience.
func WriteOnce(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))) //nolint:gosec // the system call's own interface
	return int(n), waited(e)
}

// SendTo sends a datagram to an address.
func SendTo(fd int, p []byte, to *Addr) unix.Errno {
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&to.b)), uintptr(to.size)) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return e
		}
	}
}

// Take moves a connection of package net to a descriptor that Go's poller does not watch.
//
// It does not use File: the poller watches a file made from a non-blocking descriptor, even
// after it is set blocking. Nobody waits for these events, but each message then wakes a thread
// in epoll_wait: measured on one processor, 1.7 times the round trip.
func Take(c net.Conn) (int, error) {
	inner, ok := c.(syscall.Conn)
	if !ok {
		return -1, errors.New("taking over a connection: it has no descriptor")
	}
	fd, dup := -1, error(nil)
	r, err := inner.SyscallConn()
	if err == nil {
		err = r.Control(func(old uintptr) { fd, dup = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	}
	if err := errors.Join(err, dup); err != nil {
		return -1, fmt.Errorf("taking over the connection to %v: %w", c.RemoteAddr(), err)
	}
	if err := c.Close(); err != nil { // also removes it from the poller
		Close(fd)
		return -1, fmt.Errorf("closing the first descriptor of %v: %w", c.RemoteAddr(), err)
	}
	return fd, nil
}

// Watch adds a socket to an epoll(7), edge-triggered. Its events carry two numbers of the caller.
func Watch(epoll, fd int, a, b int32) unix.Errno {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: a, Pad: b}
	_, _, e := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epoll), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(&ev)), 0, 0) //nolint:gosec // the system call's own interface
	return e
}

// Events is epoll_wait(2). After a signal there are none.
func Events(epoll int, into []unix.EpollEvent, ms int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(into))), uintptr(len(into)), uintptr(ms), 0, 0) //nolint:gosec // the system call's own interface
	if e == unix.EINTR {
		return 0, 0
	}
	return int(n), e
}
