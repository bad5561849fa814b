package network_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/sandbox"
)

// connect waits up to 5 s for the outcome of a connection.
func connect(t *testing.T, fd int, to netip.AddrPort) error {
	t.Helper()
	err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if n, err := unix.Poll(fds, 5000); n == 0 {
		return errors.Join(errors.New("no answer"), err)
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	return err
}

func TestSocketReachesSandboxes(t *testing.T) {
	b := open(t)
	n := attach(t, b, "test-a")
	to := netip.AddrPortFrom(n.Addr.Addr(), 7)
	fd, err := b.Socket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := connect(t, fd, to); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("where nobody listens: %v", err)
	}
	var ln net.Listener
	err = network.Enter(n.Path, func() (err error) {
		ln, err = net.Listen("tcp", to.String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	other, err := b.Socket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(other) }()
	if err := connect(t, other, to); err != nil {
		t.Errorf("where somebody listens: %v", err)
	}
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(); from != netip.MustParseAddr("198.18.0.1") {
		t.Errorf("the bridge connects from %s", from)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Socket(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Socket after Close: %v", err)
	}
}

// TestSilenceIsNotAskedAbout: a sandbox whose network stack is not there yet is
// silent to ARP as well. The first packet after it has come must find it at once:
// the next question by ARP would be a second after the first. A busy host makes an answer
// late, but not each time.
func TestSilenceIsNotAskedAbout(t *testing.T) {
	b := open(t)
	const bound = 500 * time.Millisecond
	least := time.Hour
	for try := 0; try < 4 && least > bound; try++ {
		least = min(least, silence(t, b, attach(t, b, fmt.Sprint("test-", try))))
	}
	t.Logf("the answer came after %v", least)
	if least > bound {
		t.Errorf("no answer came before %v", bound)
	}
}

// silence is the time until an address that has just come answers.
func silence(t *testing.T, b *network.Bridge, n sandbox.Network) time.Duration {
	t.Helper()
	to := netip.AddrPortFrom(n.Addr.Addr(), 7)
	if err := network.SetAddress(n.Path, n.Addr, false); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		fd, err := b.Socket()
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 7, Addr: to.Addr().As4()}); !errors.Is(err, unix.EINPROGRESS) {
			t.Errorf("silence is %v", err)
		}
		_ = unix.Close(fd)
		time.Sleep(10 * time.Millisecond)
	}
	if err := network.SetAddress(n.Path, n.Addr, true); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	fd, err := b.Socket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := connect(t, fd, to); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("where nobody listens: %v", err)
	}
	return time.Since(begin)
}

func BenchmarkSocket(b *testing.B) {
	br := open(b)
	b.Run("thread", func(b *testing.B) {
		for range b.N {
			fd, err := br.Socket()
			if err != nil {
				b.Fatal(err)
			}
			_ = unix.Close(fd)
		}
	})
	b.Run("enter", func(b *testing.B) {
		for range b.N {
			err := network.Enter("/run/netns/tare-bridge", func() error {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
				_ = unix.Close(fd)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
