package network_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/sandbox"
)

// BenchmarkTap is a datagram's way to a guest and back, without the guest: on
// the tap that Tap makes, and on what a Kata pod has, where the frame also passes
// a veth pair and two redirections.
func BenchmarkTap(b *testing.B) {
	for _, path := range []struct {
		name string
		make func(*network.Bridge, sandbox.Network) (*network.TapLink, error)
	}{
		{"bridge", func(_ *network.Bridge, n sandbox.Network) (*network.TapLink, error) { return network.Tap(n, 1) }},
		{"kata", func(_ *network.Bridge, n sandbox.Network) (*network.TapLink, error) { return network.KataTap(n) }},
	} {
		for _, size := range []int{64, 1400} {
			b.Run(path.name+"/"+map[int]string{64: "64B", 1400: "1400B"}[size], func(b *testing.B) {
				br := open(b)
				n, err := br.Attach("test-vm")
				if err != nil {
					b.Fatal(err)
				}
				link, err := path.make(br, n)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = link.Close() }()
				go poll(link)
				roundTrips(b, n, size)
			})
		}
	}
}

// poll is a guest that blocks in the read: Go's poller adds more than is measured here.
func poll(link *network.TapLink) {
	fd := int(link.Files[0].Fd())
	_ = unix.SetNonblock(fd, false)
	frame := make([]byte, 1<<16)
	for {
		n, err := unix.Read(fd, frame)
		if err != nil {
			return
		}
		if out := answer(frame[:n], link); out != nil {
			_, _ = unix.Write(fd, out)
		}
	}
}

func roundTrips(b *testing.B, to sandbox.Network, size int) {
	err := network.Enter(bridgePath, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5})
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 7, Addr: to.Addr.Addr().As4()}); err != nil {
			return err
		}
		out, in := make([]byte, size), make([]byte, size)
		for b.Loop() {
			if _, err := unix.Write(fd, out); err != nil {
				return err
			}
			if _, err := unix.Read(fd, in); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
