package network

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// furtherPool is the half of the subnet that Attach takes no addresses of. All sandboxes have its addresses on their
// link, without a route.
const furtherPool = "198.18.128.0/17"

// Further gives a sandbox at least n addresses beside its own, and returns the range that has them. Its
// namespace answers ARP requests for all of them, each of which takes an entry in the table of whoever asks. A single
// route makes the whole range local (ip-route(8), type local), so the number costs nothing there. Programs reach
// sockets that are bound to no address. A sandbox with a network stack of its own does not have them.
func (b *Bridge) Further(to sandbox.Network, n int) (netip.Prefix, error) {
	own, err := b.findFurther(to.Addr.Addr(), n)
	if err != nil {
		return own, err
	}
	return own, within(to.Path, func(h *netlink.Handle) error {
		lo, err := h.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("network: link lo: %w", err)
		}
		dst, err := netlink.ParseIPNet(own.String())
		if err != nil {
			return fmt.Errorf("network: %w", err)
		}
		err = h.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Table: unix.RT_TABLE_LOCAL})
		if err != nil {
			return fmt.Errorf("network: cannot make the addresses %s local: %w", own, err)
		}
		return nil
	})
}

// findFurther finds a range that no other sandbox has; free gives it back.
func (b *Bridge) findFurther(of netip.Addr, n int) (netip.Prefix, error) {
	pool := netip.MustParsePrefix(furtherPool)
	bits := 32
	for 1<<(32-bits) < n && bits > pool.Bits()+1 { // never the last address of the pool: it is the broadcast address
		bits--
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	first := pool.Addr().As4()
	for at := 0; 1<<(32-bits) >= n && at+1<<(32-bits) < 1<<(32-pool.Bits()); at += 1 << (32 - bits) {
		own := netip.PrefixFrom(netip.AddrFrom4([4]byte{first[0], first[1], first[2] + byte(at>>8), byte(at)}), bits)
		taken := false
		for _, p := range b.further {
			taken = taken || p.Overlaps(own)
		}
		if !taken {
			if b.further == nil {
				b.further = map[netip.Addr]netip.Prefix{}
			}
			b.further[of] = own
			return own, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("network: no %d addresses of %s are free; use fewer neighbours, or fewer sandboxes at once (leave turns out)", n, furtherPool)
}
