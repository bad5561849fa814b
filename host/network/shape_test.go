package network_test

import (
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/record"
	"tare/sandbox"
)

// listen is a listener in a sandbox's namespace.
func listen(t *testing.T, n sandbox.Network) net.Listener {
	t.Helper()
	var ln net.Listener
	err := network.Enter(n.Path, func() (err error) {
		ln, err = net.Listen("tcp", netip.AddrPortFrom(n.Addr.Addr(), 7).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// dial connects from one sandbox to a listener in another.
func dial(t *testing.T, from sandbox.Network, ln net.Listener) net.Conn {
	t.Helper()
	var c net.Conn
	err := network.Enter(from.Path, func() (err error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		c, err = connectFD(fd, ln.Addr().(*net.TCPAddr).AddrPort())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// shortest is the shortest of some round trips of one byte.
func shortest(t *testing.T, server, client sandbox.Network) time.Duration {
	t.Helper()
	ln := listen(t, server)
	go func() {
		if c, err := ln.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	c := dial(t, client, ln)
	least := time.Hour
	buf := []byte{1}
	for range 20 {
		begin := time.Now()
		if _, err := c.Write(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			t.Fatal(err)
		}
		least = min(least, time.Since(begin))
	}
	_ = c.Close()
	_ = ln.Close()
	return least
}

// send moves bytes from the client to the server, and returns how many a second came.
func send(t *testing.T, server, client sandbox.Network, size int) float64 {
	t.Helper()
	data := make([]byte, size)
	for i, r := 0, rand.NewChaCha8([32]byte{1}); i < size; i += 4096 {
		_, _ = r.Read(data[i:min(size, i+4096)])
	}
	ln := listen(t, server)
	type got struct {
		sum  [32]byte
		took time.Duration
		err  error
	}
	done := make(chan got, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			done <- got{err: err}
			return
		}
		begin := time.Now()
		b, err := io.ReadAll(c)
		done <- got{sha256.Sum256(b), time.Since(begin), err}
		_ = c.Close()
	}()
	c := dial(t, client, ln)
	if _, err := c.Write(data); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	g := <-done
	_ = ln.Close()
	if g.err != nil || g.sum != sha256.Sum256(data) {
		t.Fatalf("what came is not what was sent: %v", g.err)
	}
	return float64(size) / g.took.Seconds()
}

// TestDelay: every round trip takes two delays more, whole streams come as they were sent,
// and the bridge itself reaches the sandbox.
func TestDelay(t *testing.T) {
	const delay = 20 * time.Millisecond
	b := open(t)
	server, client := attach(t, b, "delay-server"), attach(t, b, "delay-client")
	before := shortest(t, server, client)
	if err := b.Delay(server, delay); err != nil {
		t.Fatal(err)
	}
	after := shortest(t, server, client)
	t.Logf("shortest round trip %v, with a delay %v", before, after)
	if after < 2*delay {
		t.Errorf("a round trip took %v, less than two delays of %v", after, delay)
	}
	if before < delay && after > 4*delay {
		t.Errorf("the shortest round trip took %v, twice what was asked for", after)
	}
	t.Logf("%.0f MB/s through the detour", send(t, server, client, 32<<20)/1e6)
	t.Logf("%.0f MB/s the other way", send(t, client, server, 32<<20)/1e6)
	if err := b.Delay(server, delay); err == nil {
		t.Error("a second delay of the same sandbox is taken")
	}
	if err := b.Detach("delay-server"); err != nil {
		t.Fatal(err)
	}
	// Its name can be used again, without the delay.
	server = attach(t, b, "delay-server")
	if again := shortest(t, server, client); again > delay {
		t.Errorf("after Detach a round trip takes %v", again)
	}
}

// TestRate: no more comes through than the rate, and the stream is whole.
func TestRate(t *testing.T) {
	const rate = 12_500_000 // 100 Mbit/s
	b := open(t)
	server, client := attach(t, b, "rate-server"), attach(t, b, "rate-client")
	if err := b.Rate(server, rate); err != nil {
		t.Fatal(err)
	}
	if got := send(t, server, client, 16<<20); got > 1.1*rate {
		t.Errorf("%.1f MB/s came through a link of %.1f MB/s", got/1e6, rate/1e6)
	}
	// The other way is free until its port is held too.
	if err := b.Rate(client, rate); err != nil {
		t.Fatal(err)
	}
	if got := send(t, client, server, 16<<20); got > 1.1*rate {
		t.Errorf("the other way %.1f MB/s came through a link of %.1f MB/s", got/1e6, rate/1e6)
	}
}

// TestDelayAndRateTogether: a wide area network.
func TestDelayAndRateTogether(t *testing.T) {
	b := open(t)
	server, client := attach(t, b, "wan-server"), attach(t, b, "wan-client")
	if err := errors.Join(b.Rate(server, 5_000_000), b.Rate(client, 5_000_000), b.Delay(server, 5*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got := shortest(t, server, client); got < 10*time.Millisecond {
		t.Errorf("a round trip took %v", got)
	}
	if got := send(t, server, client, 4<<20); got > 5.5e6 {
		t.Errorf("%.1f MB/s came through", got/1e6)
	}
}

func TestShapeRefusals(t *testing.T) {
	b := open(t)
	n := attach(t, b, "refuse")
	for name, err := range map[string]error{
		"no rate": b.Rate(n, 0), "no delay": b.Delay(n, 0), "an hour": b.Delay(n, time.Hour),
		"elsewhere": b.Rate(sandbox.Network{Path: "/run/netns/other"}, 1e6), "nowhere": b.Delay(sandbox.Network{}, time.Millisecond),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, ok := network.PortOf(sandbox.Network{}); ok {
		t.Error("a sandbox without a network has a port")
	}
	if p, ok := network.PortOf(n); !ok || p.Link != "tare-refuse" {
		t.Errorf("the port is %+v", p)
	}
}

// TestCloseEndsDetours: nobody has to detach first.
func TestCloseEndsDetours(t *testing.T) {
	b := open(t)
	n := attach(t, b, "forgotten")
	if err := b.Delay(n, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestCheckLink(t *testing.T) {
	open(t)
	if err := network.CheckLink(sandbox.Link{Delay: time.Millisecond, Rate: 1e6, Path: record.PathVXLAN}); err != nil {
		t.Error(err)
	}
}

// connectFD connects a socket and makes it a net.Conn.
func connectFD(fd int, to netip.AddrPort) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}
