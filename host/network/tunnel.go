package network

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/record"
)

// tunnel is how packets travel between the two bridges of a path.
type tunnel struct {
	encapsulate func(h *netlink.Handle, name string, e end) error // makes one end
	encrypt     func() (encryption, error)                        // with new keys; nil: packets are not encrypted
}

// tunnels are the paths with a tunnel. Kubernetes networks use the same tunnels: Flannel, Calico and Cilium have VXLAN, OVN has
// Geneve and encrypts it with IPsec (https://docs.ovn.org/en/latest/tutorials/ovn-ipsec.html), and Cilium encrypts VXLAN with WireGuard
// (https://docs.cilium.io/en/stable/security/network/encryption-wireguard/).
func tunnels() map[string]tunnel {
	return map[string]tunnel{
		record.PathVXLAN:     {encapsulate: addVXLAN},
		record.PathGeneve:    {encapsulate: addGeneve},
		record.PathWireGuard: {addVXLAN, newWireGuard},
		record.PathIPsec:     {addGeneve, newIPsec},
	}
}

// Paths are the paths that a host can have, beside one bridge.
func Paths() []string {
	return append([]string{record.PathWire}, slices.Sorted(maps.Keys(tunnels()))...)
}

// end is one end of a tunnel, as the namespace that sends its packets sees it.
type end struct {
	id         int        // tells the tunnels of several sandboxes apart
	wg         string     // name of its link of WireGuard, if it has one
	over       string     // the link that carries the packets
	own, other netip.Addr // of that link and of the one at the other end
}

// Sides of a tunnel: near is at the first bridge.
const (
	nearSide = 0
	farSide  = 1
)

// encryption encrypts the packets between the ends of a tunnel.
type encryption interface {
	// start begins to encrypt at a side, the near side first, in the namespace of the thread. It returns the end over which the tunnel then goes.
	start(h *netlink.Handle, e end, side int) (end, error)
	// stop removes what start left at the near side, except links, in the namespace of the thread.
	stop(e end) error
}

const (
	vxlanPort      = 4789 // RFC 7348
	genevePort     = 6081 // RFC 8926
	tunnelOverhead = 50   // bytes before a packet in the tunnel: Ethernet, IPv4, UDP, and VXLAN or Geneve without options
	cryptOverhead  = 80   // room for what encryption adds: 60 bytes for WireGuard, up to 40 for ESP
	defaultMTU     = 1500
)

// ends is what the tunnel has at a side.
func (p *nodePath) ends(side int) end {
	if side == nearSide {
		return end{p.id(), p.link(wgEnd), p.link(underlay), near(), p.far()}
	}
	return end{p.id(), p.link(wgEnd), underlay, p.far(), near()}
}

// tunnel joins the bridges by a tunnel, whose packets go through a namespace beside the bridge's. They go over a veth pair whose MTU has room for
// their headers, so that packets in the tunnel are as large as without it. Both ends are links of the bridge's namespace. A link's packets
// are sent from the namespace in which it was made: the far end is made in one of its own and moved.
func (p *nodePath) tunnel(t tunnel) error {
	if err := Create(nsPath(p.namespace())); err != nil {
		return err
	}
	other, err := os.Open(nsPath(p.namespace()))
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	defer other.Close() //nolint:errcheck // only read
	home, err := os.Open(nsPath(bridgeName))
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	defer home.Close() //nolint:errcheck // only read
	mtu := defaultMTU + tunnelOverhead
	if t.encrypt != nil {
		mtu += cryptOverhead
		if p.encrypted, err = t.encrypt(); err != nil {
			return err
		}
	}
	err = within(nsPath(bridgeName), func(h *netlink.Handle) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = p.link(underlay), mtu
		pair := &netlink.Veth{LinkAttrs: attrs, PeerName: underlay, PeerNamespace: netlink.NsFd(int(other.Fd())), PeerMTU: uint32(mtu)} //nolint:gosec // small
		if err := h.LinkAdd(pair); err != nil {
			return fmt.Errorf("network: cannot make veth %s: %w; modprobe veth", attrs.Name, err)
		}
		return p.addEnd(h, t, nearEnd, nearSide)
	})
	if err != nil {
		return err
	}
	err = within(nsPath(p.namespace()), func(h *netlink.Handle) error {
		if err := p.addEnd(h, t, farEnd, farSide); err != nil {
			return err
		}
		link, err := h.LinkByName(p.link(farEnd))
		if err == nil {
			err = h.LinkSetNsFd(link, int(home.Fd()))
		}
		if err != nil {
			return fmt.Errorf("network: cannot move the tunnel's end to the bridge: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return within(nsPath(bridgeName), p.join)
}

// addEnd makes an end of the tunnel.
func (p *nodePath) addEnd(h *netlink.Handle, t tunnel, what string, side int) error {
	e := p.ends(side)
	err := pointTo(h, e.over, e.own, e.other)
	if err == nil && p.encrypted != nil {
		e, err = p.encrypted.start(h, e, side)
	}
	if err != nil {
		return err
	}
	return t.encapsulate(h, p.link(what), e)
}

// pointTo sets a link up, with an address and the one at its other end.
func pointTo(h *netlink.Handle, name string, own, other netip.Addr) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", name, err)
	}
	if err := h.AddrAdd(link, &netlink.Addr{IPNet: one(own), Peer: one(other)}); err != nil {
		return fmt.Errorf("network: cannot set the address %s on %s: %w", own, name, err)
	}
	return up(h, name)
}

// one is the network that has one address.
func one(a netip.Addr) *net.IPNet { return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)} }

// addVXLAN makes an end of a tunnel of RFC 7348.
func addVXLAN(h *netlink.Handle, name string, e end) error {
	link, err := h.LinkByName(e.over)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", e.over, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, defaultMTU
	return added("VXLAN", "vxlan", name, h.LinkAdd(&netlink.Vxlan{
		LinkAttrs: attrs, VxlanId: e.id, VtepDevIndex: link.Attrs().Index, SrcAddr: e.own.AsSlice(), Group: e.other.AsSlice(), Port: vxlanPort, Learning: true,
	}))
}

// addGeneve makes an end of a tunnel of RFC 8926.
func addGeneve(h *netlink.Handle, name string, e end) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, defaultMTU
	return added("Geneve", "geneve", name, h.LinkAdd(&netlink.Geneve{LinkAttrs: attrs, ID: uint32(e.id), Remote: e.other.AsSlice(), Dport: genevePort})) //nolint:gosec // 16 bits
}

// added explains an error from making a link of a kind.
func added(kind, module, name string, err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("network: this kernel has no %s: %w; modprobe %s", kind, err, module)
	}
	if err != nil {
		return fmt.Errorf("network: cannot make the %s link %s: %w", kind, name, err)
	}
	return nil
}

// checkTunnel tries in the namespace of the thread, which has a link with that name, whether this kernel can make a tunnel.
func checkTunnel(h *netlink.Handle, t tunnel, over string) error {
	e := end{1, Prefix + "4", over, near(), near().Next()}
	if t.encrypt != nil {
		s, err := t.encrypt()
		if err != nil {
			return err
		}
		if e, err = s.start(h, e, nearSide); err != nil {
			return err
		}
	}
	return t.encapsulate(h, Prefix+"3", e)
}
