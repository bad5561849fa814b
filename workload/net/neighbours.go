package netload

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"tare/workload/inside/raw"
)

// Neighbours are addresses of the server, all of them on the client's link. A request to each needs an entry of its own in
// the client's ARP table, as if as many machines answered. Both ends use sockets that are not connected: the client's sends
// to each address, and the server's hears them all. The server answers from its own address, so that it has
// one entry, the client's.

// readAddresses reads the range that has the neighbours.
func (c *config) readAddresses(text string) error {
	if c.Neighbours == 0 {
		return nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || !p.Addr().Is4() || p.Bits() < 16 {
		return fmt.Errorf("--addresses %q is not a range of at most 65536 IPv4 addresses; write one such as 198.18.128.0/22", text)
	}
	if room := 1 << (32 - p.Bits()); room < c.Neighbours {
		return fmt.Errorf("--addresses %s has %d addresses for %d neighbours; write a larger range", text, room, c.Neighbours)
	}
	c.addresses = p.Masked()
	return nil
}

// sendAround returns what sends msg to the next neighbour. The next is any: with a fixed order, a table that is too small
// would serve a row of neighbours and then none for as long a row.
func (w *worker) sendAround(msg []byte) func() unix.Errno {
	to := raw.AddrOf(netip.AddrPortFrom(w.cfg.addresses.Addr(), w.sock.port))
	first := w.cfg.addresses.Addr().As4()
	base := binary.BigEndian.Uint32(first[:])
	n, random := uint64(w.cfg.Neighbours), uint64(w.index)+1 //nolint:gosec // checked
	return func() unix.Errno {
		// xorshift64 of G. Marsaglia, "Xorshift RNGs", 2003.
		random ^= random << 13
		random ^= random >> 7
		random ^= random << 17
		to.SetIP4(base + uint32(random%n)) //nolint:gosec // below the range's size
		return raw.SendTo(w.sock.fd, msg, &to)
	}
}

// answerAround is answerUDP on a socket without a peer.
func answerAround(w *worker) error {
	req, rep := make([]byte, w.cfg.Size+1), make([]byte, w.cfg.replySize())
	seq := min(8, w.cfg.Size, len(rep))
	var ops int64
	var from raw.Addr
	for {
		n, e := raw.RecvFrom(w.sock.fd, req, &from)
		if w.stop.Load() {
			return nil
		}
		if e == unix.EAGAIN || e == unix.ECONNREFUSED { // a signal, or an ICMP error of an earlier reply
			continue
		}
		if e != 0 {
			return w.fail("receiving a request", false, e)
		}
		if n != w.cfg.Size || from.Port() != int(w.sock.port) {
			continue // not a request of this session
		}
		copy(rep[:seq], req)
		if e := raw.SendTo(w.sock.fd, rep, &from); e != 0 && e != unix.ECONNREFUSED {
			return w.fail("sending a reply", false, e)
		}
		ops++
		w.count1(ops, w.cfg.Size, len(rep))
	}
}
