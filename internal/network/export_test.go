package network

import (
	"net/netip"

	"github.com/vishvananda/netlink"
)

// SetAddress gives eth0 of a namespace its address, or takes it away, as runsc
// does when it moves the address into its own network stack.
func SetAddress(path string, prefix netip.Prefix, there bool) error {
	return within(path, func(h *netlink.Handle) error {
		if there {
			return address(h, "eth0", prefix)
		}
		link, err := h.LinkByName("eth0")
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr(prefix.String())
		if err != nil {
			return err
		}
		return h.AddrDel(link, addr)
	})
}
