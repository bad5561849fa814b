package netload

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls of strands, which open and close connections in their hot loops. They do not
// inform the Go scheduler and do not allocate, for the reasons in hot.go.

// rawAddr is a socket address of either family as the kernel wants it: ip(7), ipv6(7).
type rawAddr struct {
	b    [28]byte
	size uint32
}

func rawAddrOf(a netip.AddrPort) (r rawAddr) {
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

func (r *rawAddr) family() uintptr { return uintptr(binary.NativeEndian.Uint16(r.b[0:])) }

// setPort sets the port.
func (r *rawAddr) setPort(p int) { binary.BigEndian.PutUint16(r.b[2:], uint16(p)) } //nolint:gosec // checked when it came

func (r *rawAddr) port() int { return int(binary.BigEndian.Uint16(r.b[2:])) }

func rawSocket(family, kind uintptr) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_SOCKET, family, kind|unix.SOCK_CLOEXEC, 0, 0, 0, 0)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// rawConnect is connect(2). After a signal or SO_SNDTIMEO the kernel continues to connect: then
// the error is EINPROGRESS, and another call returns the result.
func rawConnect(fd int, a *rawAddr) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&a.b)), uintptr(a.size)) //nolint:gosec // the system call's own interface
	switch e {
	case unix.EISCONN:
		return 0
	case unix.EINTR, unix.EALREADY:
		return unix.EINPROGRESS
	}
	return e
}

func rawBind(fd int, a *rawAddr) unix.Errno {
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&a.b)), uintptr(a.size), 0, 0, 0) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return e
		}
	}
}

func rawListen(fd, backlog int) unix.Errno {
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_LISTEN, uintptr(fd), uintptr(backlog), 0, 0, 0, 0)
		if e != unix.EINTR {
			return e
		}
	}
}

// rawName is getsockname(2).
func rawName(fd int, a *rawAddr) unix.Errno {
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

func rawAccept(fd int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
	return int(n), waited(e)
}

func rawClose(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func rawOption(fd, level, name, value int) unix.Errno {
	v := int32(value) //nolint:gosec // checked before
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return e
		}
	}
}

// rawPatience lets a receive or a send wait for a tick: SO_RCVTIMEO, SO_SNDTIMEO of socket(7).
func rawPatience(fd, name int) unix.Errno {
	tv := unix.NsecToTimeval(int64(tick))
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

func rawSend(fd int, p []byte, flags int) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags|unix.MSG_NOSIGNAL), 0, 0) //nolint:gosec // the system call's own interface
		if !again(e, flags) {
			return int(n), waited(e)
		}
	}
}

func rawRecv(fd int, p []byte, flags int) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags), 0, 0) //nolint:gosec // the system call's own interface
		if !again(e, flags) {
			return int(n), waited(e)
		}
	}
}

// rawRecvFrom is rawRecv that also returns the sender.
func rawRecvFrom(fd int, p []byte, from *rawAddr) (int, unix.Errno) {
	from.size = uint32(len(from.b))
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, uintptr(unsafe.Pointer(&from.b)), uintptr(unsafe.Pointer(&from.size))) //nolint:gosec // the system call's own interface
	return int(n), waited(e)
}

// rawPoll waits for events on fd; false when the time is over or after a signal.
func rawPoll(fd int, events int16, ns int64) (bool, unix.Errno) {
	p := unix.PollFd{Fd: int32(fd), Events: events} //nolint:gosec // a descriptor
	ts := unix.NsecToTimespec(ns)
	n, _, e := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0) //nolint:gosec // the system call's own interface
	if e == unix.EINTR {
		e = 0
		n = 0
	}
	return n > 0, e
}

// readOnce and writeOnce are read(2) and write(2) on a socket with a tick.
func readOnce(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))) //nolint:gosec // the system call's own interface
	return int(n), waited(e)
}

func writeOnce(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))) //nolint:gosec // the system call's own interface
	return int(n), waited(e)
}

// sendTo sends a datagram to an address.
func sendTo(fd int, p []byte, to *rawAddr) unix.Errno {
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&to.b)), uintptr(to.size)) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return e
		}
	}
}
