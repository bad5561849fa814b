package raw

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestConnectWaitsInTicks: a peer that does not answer is waited for in short steps, and
// one that answers later is met.
func TestConnectWaitsInTicks(t *testing.T) {
	a := AddrOf(netip.MustParseAddrPort("127.0.0.1:0"))
	socket := func() int {
		t.Helper()
		fd, e := Socket(a.Family(), unix.SOCK_STREAM)
		if e != 0 {
			t.Fatal(e)
		}
		t.Cleanup(func() { Close(fd) })
		return fd
	}
	listener := socket()
	for _, e := range []unix.Errno{Bind(listener, &a), Listen(listener, 0), Name(listener, &a)} {
		if e != 0 {
			t.Fatal(e)
		}
	}
	waiting := -1
	for range 8 { // until the queue is full
		fd := socket()
		if e := Patience(fd, unix.SO_SNDTIMEO); e != 0 {
			t.Fatal(e)
		}
		if e := Connect(fd, &a); e == unix.EINPROGRESS {
			waiting = fd
			break
		} else if e != 0 {
			t.Fatal(e)
		}
	}
	if waiting < 0 {
		t.Skip("this kernel's queue has no end")
	}
	if e := Connect(waiting, &a); e != unix.EINPROGRESS {
		t.Errorf("again: %v", e)
	}
	if fd, e := Accept(listener); e != 0 {
		t.Fatal(e)
	} else {
		Close(fd)
	}
	for end := time.Now().Add(30 * time.Second); ; {
		e := Connect(waiting, &a)
		if e == 0 {
			return
		}
		if e != unix.EINPROGRESS || time.Now().After(end) {
			t.Fatal(e)
		}
	}
}

func TestAgain(t *testing.T) {
	if !again(unix.EINTR, unix.MSG_DONTWAIT) || again(unix.EINTR, 0) || again(unix.EAGAIN, unix.MSG_DONTWAIT) {
		t.Error("what is called anew is an interrupted call that does not wait")
	}
}
