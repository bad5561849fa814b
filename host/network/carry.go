package network

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/held"
)

const (
	vnetHeader = 10 // bytes of struct virtio_net_hdr
	largest    = vnetHeader + 64<<10 + 18
	// mostWaits bounds the bytes in flight each way: what a link of 1 GB/s carries in 64 ms.
	// If the queue is full, new packets are dropped, as a router does.
	mostWaits = 64 << 20
	// needsSum is VIRTIO_NET_HDR_F_NEEDS_CSUM, the only flag that the next receiver may see.
	needsSum = 1
)

// packet is one packet in flight.
type packet struct {
	due  time.Duration // held.Monotonic
	data []byte
}

// way is one direction: a queue between two descriptors.
type way struct {
	from, to int
	waiting  []packet
	first    int
	bytes    int
}

// carry forwards each packet with a delay, until quit. One thread serves both ways: ppoll(2)
// waits to the nanosecond, which Go's timers do not.
func (d *detour) carry(delay time.Duration) error {
	runtime.LockOSThread() // never unlocked, so the thread with its timer slack ends here
	// Without this, each wait is 50 us longer: PR_SET_TIMERSLACK of prctl(2).
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	tap := int(d.tap.Files[0].Fd())
	in, out := &way{from: tap, to: d.port}, &way{from: d.port, to: tap}
	if err := unix.SetNonblock(tap, true); err != nil { // Fd made it blocking
		return fmt.Errorf("network: %w", err)
	}
	buf := make([]byte, largest)
	fds := []unix.PollFd{{Fd: int32(in.from), Events: unix.POLLIN}, {Fd: int32(out.from), Events: unix.POLLIN}, {Fd: int32(d.quit), Events: unix.POLLIN}} //nolint:gosec // descriptors are small
	for {
		_, err := unix.Ppoll(fds, wait(in, out), nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("network: poll: %w", err)
		}
		if fds[2].Revents != 0 {
			return nil
		}
		for i, w := range []*way{in, out} {
			if fds[i].Revents&^unix.POLLIN != 0 {
				fds[i].Fd = -1 // the port is gone: its sandbox ends
			} else if fds[i].Revents != 0 {
				w.take(buf, delay)
			}
			w.pass()
		}
	}
}

// wait returns the time until the next packet is due; nil if there is no packet.
func wait(ways ...*way) *unix.Timespec {
	var next time.Duration
	for _, w := range ways {
		if w.first < len(w.waiting) && (next == 0 || w.waiting[w.first].due < next) {
			next = w.waiting[w.first].due
		}
	}
	if next == 0 {
		return nil
	}
	ts := unix.NsecToTimespec(max(0, (next - held.Monotonic()).Nanoseconds()))
	return &ts
}

// mostAtOnce keeps one way from blocking the other.
const mostAtOnce = 64

// take reads the packets that have arrived.
func (w *way) take(buf []byte, delay time.Duration) {
	for range mostAtOnce {
		n, err := unix.Read(w.from, buf)
		if err != nil || n <= vnetHeader {
			return // nothing more, or the link is down; ppoll reports a link that is gone
		}
		if w.bytes+n > mostWaits {
			continue
		}
		data := append(make([]byte, 0, n), buf[:n]...)
		data[0] &= needsSum
		w.waiting = append(w.waiting, packet{held.Monotonic() + delay, data})
		w.bytes += n
	}
}

// pass writes the packets that are due. A packet that the other side does not accept is
// lost, as on any network.
func (w *way) pass() {
	now := held.Monotonic()
	for w.first < len(w.waiting) && w.waiting[w.first].due <= now {
		p := &w.waiting[w.first]
		_, _ = unix.Write(w.to, p.data)
		w.bytes -= len(p.data)
		p.data = nil
		w.first++
	}
	switch {
	case w.first == len(w.waiting):
		w.waiting, w.first = w.waiting[:0], 0
	case w.first > 1024 && w.first > len(w.waiting)/2:
		w.waiting = w.waiting[:copy(w.waiting, w.waiting[w.first:])]
		w.first = 0
	}
}
