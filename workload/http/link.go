package httpload

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"tare/workload/inside/raw"
)

// link is the connection below TLS: one of package net for the handshake, then a descriptor that a lane
// watches. crypto/tls keeps what it has of a record when a Read ends with a temporary error.
type link struct {
	net.Conn
	fd      int // -1: during the handshake
	timeout time.Duration
}

// take ends the handshake.
func (l *link) take() (err error) {
	l.fd, err = raw.Take(l.Conn)
	return err
}

func (l *link) Read(p []byte) (int, error) {
	if l.fd < 0 {
		return l.Conn.Read(p)
	}
	return receive(l.fd, p)
}

func (l *link) Write(p []byte) (int, error) {
	if l.fd < 0 {
		return l.Conn.Write(p)
	}
	if err := sendAll(l.fd, p, l.timeout); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *link) Close() error {
	if l.fd < 0 {
		return l.Conn.Close()
	}
	raw.Close(l.fd)
	return nil
}

// errWait says that nothing has come.
var errWait net.Error = wait{}

type wait struct{}

func (wait) Error() string   { return "nothing has come" }
func (wait) Timeout() bool   { return true }
func (wait) Temporary() bool { return true }

// receive reads what has come: an error at the end of the connection, or if there is nothing.
func receive(fd int, p []byte) (int, error) {
	n, e := raw.Recv(fd, p, unix.MSG_DONTWAIT)
	switch {
	case e == unix.EAGAIN:
		return 0, errWait
	case e != 0:
		return 0, os.NewSyscallError("recv", e)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// sendAll sends a request. It hardly ever has to wait: the connection had nothing under way.
func sendAll(fd int, p []byte, timeout time.Duration) error {
	var begun time.Time
	for len(p) > 0 {
		n, e := raw.Send(fd, p, unix.MSG_DONTWAIT)
		switch {
		case e == 0:
			p = p[n:]
		case e != unix.EAGAIN:
			return os.NewSyscallError("send", e)
		case begun.IsZero():
			begun = time.Now()
		case time.Since(begun) > timeout:
			return fmt.Errorf("the server took no request within the timeout %s; write a lower rate or fewer connections, or raise timeout", timeout)
		default:
			_, _ = raw.Poll(fd, unix.POLLOUT, int64(raw.Tick))
		}
	}
	return nil
}
