package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/sandbox"
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

// KataTap is what a Kata pod has: the veth pair stays, and all that one of eth0
// and the tap beside it receives is redirected to the other.
func KataTap(n sandbox.Network) (*TapLink, error) {
	t := &TapLink{Name: "tap0_kata", Addr: n.Addr}
	err := within(n.Path, func(h *netlink.Handle) error {
		eth0, err := h.LinkByName("eth0")
		if err != nil {
			return err
		}
		t.MAC = eth0.Attrs().HardwareAddr
		f, err := openQueue(t.Name, unix.IFF_TAP|unix.IFF_NO_PI|unix.IFF_VNET_HDR)
		if err != nil {
			return err
		}
		t.Files = append(t.Files, f)
		if err := up(h, t.Name); err != nil {
			return err
		}
		tap, err := h.LinkByName(t.Name)
		if err != nil {
			return err
		}
		for from, to := range map[int]int{eth0.Attrs().Index: tap.Attrs().Index, tap.Attrs().Index: eth0.Attrs().Index} {
			ingress := netlink.QdiscAttrs{LinkIndex: from, Parent: netlink.HANDLE_INGRESS}
			if err := h.QdiscAdd(&netlink.Ingress{QdiscAttrs: ingress}); err != nil {
				return err
			}
			if err := h.FilterAdd(&netlink.U32{
				FilterAttrs: netlink.FilterAttrs{LinkIndex: from, Parent: netlink.MakeHandle(0xffff, 0), Protocol: unix.ETH_P_ALL, Priority: 1},
				Actions:     []netlink.Action{netlink.NewMirredAction(to)},
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return t, err
}

// CheckTap tries in a temporary, unnamed namespace whether this host can make taps.
func CheckTap() error {
	return tried(func(h *netlink.Handle) error {
		t := &TapLink{Name: Prefix + "1"}
		return errors.Join(t.open(h, 2), t.Close())
	})
}

// Underlay is how many bytes the tunnel of a sandbox has carried, both ways.
func Underlay(name string) (bytes uint64, err error) {
	err = within(nsPath((&nodePath{name: name}).namespace()), func(h *netlink.Handle) error {
		link, err := h.LinkByName("under")
		if err == nil {
			bytes = link.Attrs().Statistics.RxBytes + link.Attrs().Statistics.TxBytes
		}
		return err
	})
	return bytes, err
}

// Seen runs f, and returns what packets came to the far end of a sandbox's tunnel meanwhile: "udp PORT", of the receiver, or "proto NUMBER".
func Seen(name string, f func()) (kinds map[string]int, err error) {
	kinds = map[string]int{}
	var fd int
	if err := Enter(nsPath((&nodePath{name: name}).namespace()), func() (err error) {
		const ip = unix.ETH_P_IP
		const be = uint16(ip<<8&0xff00 | ip>>8)
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, int(be)); err != nil {
			return err
		}
		link, err := net.InterfaceByName(underlay)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: be, Ifindex: link.Index})
	}); err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	f()
	p := make([]byte, 2048)
	for {
		n, _, err := unix.Recvfrom(fd, p, 0)
		if errors.Is(err, unix.EAGAIN) {
			return kinds, nil
		}
		if err != nil || n < 24 {
			return nil, fmt.Errorf("a packet of %d bytes: %w", n, err)
		}
		kind := fmt.Sprintf("proto %d", p[9])
		if udp := p[int(p[0]&15)*4:]; p[9] == unix.IPPROTO_UDP {
			kind = fmt.Sprintf("udp %d", binary.BigEndian.Uint16(udp[2:]))
		}
		kinds[kind]++
	}
}

// Sealed counts the states and policies of IPsec in the bridge's namespace.
func Sealed() (n int, err error) {
	err = Enter(nsPath(bridgeName), func() error {
		return xfrm(func(h *netlink.Handle) error {
			states, err := h.XfrmStateList(netlink.FAMILY_V4)
			if err != nil {
				return err
			}
			policies, err := h.XfrmPolicyList(netlink.FAMILY_V4)
			n = len(states) + len(policies)
			return err
		})
	})
	return n, err
}
