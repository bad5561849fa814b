package network

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

// TunError is what is said about an error of the tun driver.
var TunError = tunError

// Ports are the ports of the bridge, by name.
func Ports() (map[string]netlink.Link, error) {
	ports := map[string]netlink.Link{}
	err := within(nsPath(bridgeName), func(h *netlink.Handle) error {
		links, err := h.LinkList()
		for _, l := range links {
			if l.Attrs().MasterIndex != 0 {
				ports[l.Attrs().Name] = l
			}
		}
		return err
	})
	return ports, err
}

// BridgeMAC is the bridge's hardware address.
func BridgeMAC() (mac string, err error) {
	err = within(nsPath(bridgeName), func(h *netlink.Handle) error {
		link, err := h.LinkByName(bridgeLink)
		if err == nil {
			mac = link.Attrs().HardwareAddr.String()
		}
		return err
	})
	return mac, err
}

// Learned tells behind which port the bridge has seen a hardware address; "" for none.
func Learned(mac string) (port string, err error) {
	err = within(nsPath(bridgeName), func(h *netlink.Handle) error {
		entries, err := h.NeighList(0, unix.AF_BRIDGE)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.HardwareAddr.String() != mac {
				continue
			}
			link, err := h.LinkByIndex(e.LinkIndex)
			if err != nil {
				return err
			}
			port = link.Attrs().Name
		}
		return nil
	})
	return port, err
}
