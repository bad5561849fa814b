package netload

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/workload/inside/raw"
)

// socket is one blocking data connection. file owns the descriptor.
type socket struct {
	fd   int
	file *os.File
	peer string
	port uint16 // of the peer, where the socket has none (neighbours.go)
}

// take turns a connection of package net, which is non-blocking and watched by the Go poller,
// into a blocking descriptor: the poller would add an epoll_wait and two goroutine switches to
// each round trip.
func take(c net.Conn) (*socket, error) {
	peer := ""
	if a := c.RemoteAddr(); a != nil {
		peer = a.String()
	}
	fd, err := raw.Take(c)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("making the connection to %s blocking: %w", peer, err)
	}
	// It is blocking now, so the poller does not watch it.
	return &socket{fd: fd, file: os.NewFile(uintptr(fd), "socket"), peer: peer}, nil
}

// wake ends every read and write on the socket, from another thread: they return 0 or EPIPE. So
// a deadline reaches a blocked thread. SO_RCVTIMEO was rejected: it would arm and cancel a kernel
// timer for each message, and each signal would show as EINTR.
func (s *socket) wake() { _ = unix.Shutdown(s.fd, unix.SHUT_RDWR) }

func (s *socket) close() { _ = s.file.Close() }

// rawRead is read(2) without telling the Go scheduler: see hot.go for why.
//
//go:nosplit
func rawRead(fd int, p []byte) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// rawWrite is write(2) without telling the Go scheduler.
//
//go:nosplit
func rawWrite(fd int, p []byte) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))) //nolint:gosec // the system call's own interface
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// writeAll writes all of p to a stream.
//
//go:nosplit
func writeAll(fd int, p []byte) unix.Errno {
	for len(p) > 0 {
		n, e := rawWrite(fd, p)
		if e != 0 {
			return e
		}
		p = p[n:]
	}
	return 0
}

// readAll fills p from a stream; ended says that the peer closed it before.
//
//go:nosplit
func readAll(fd int, p []byte) (ended bool, e unix.Errno) {
	for len(p) > 0 {
		n, e := rawRead(fd, p)
		if e != 0 {
			return false, e
		}
		if n == 0 {
			return true, 0
		}
		p = p[n:]
	}
	return false, 0
}

// rawSleep sleeps for ts, or less after a signal: the caller looks at the clock.
//
//go:nosplit
func rawSleep(ts *unix.Timespec) {
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(ts)), 0, 0, 0) //nolint:gosec // the system call's own interface
}

// connectUDP fixes the peer of a UDP socket, so that read(2) and write(2) do.
func connectUDP(fd int, peer netip.AddrPort) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("asking the socket's domain: %w", err)
	}
	if domain == unix.AF_INET {
		return unix.Connect(fd, &unix.SockaddrInet4{Port: int(peer.Port()), Addr: peer.Addr().Unmap().As4()})
	}
	return unix.Connect(fd, &unix.SockaddrInet6{Port: int(peer.Port()), Addr: peer.Addr().As16()})
}
