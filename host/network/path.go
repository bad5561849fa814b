package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/record"
	"tare/sandbox"
)

// Path puts a sandbox on a node of its own, as it were: its port becomes one of a second bridge,
// which a veth pair (record.PathWire) or a VXLAN tunnel (record.PathVXLAN, RFC 7348) joins to the
// first. The tunnel's packets go through a namespace beside the bridge's, over a veth pair whose MTU
// has room for their headers, so that packets in the tunnel are as large as without it. Call Path
// once, after the start of the sandbox and after Delay. Detach ends it.
func (b *Bridge) Path(n sandbox.Network, path string) error {
	name, err := attached(n)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.lock == nil:
		return fmt.Errorf("network: cannot change the path of %s: the bridge is closed", name)
	case b.nodes[name]:
		return fmt.Errorf("network: %s has a path already", name)
	}
	port := linkName(name)
	if b.detours[name] != nil {
		port = detourName(name)
	}
	if b.nodes == nil {
		b.nodes = map[string]bool{}
	}
	b.nodes[name] = true // from here on there is something to remove
	p := nodePath{name: name, addr: n.Addr.Addr()}
	switch path {
	case record.PathWire:
		err = within(nsPath(bridgeName), func(h *netlink.Handle) error { return errors.Join(p.bridge(h, port), p.wire(h)) })
	case record.PathVXLAN:
		if err = within(nsPath(bridgeName), func(h *netlink.Handle) error { return p.bridge(h, port) }); err == nil {
			err = p.tunnel()
		}
	default:
		err = fmt.Errorf("network: path %q must be %s or %s", path, record.PathWire, record.PathVXLAN)
	}
	if err != nil {
		delete(b.nodes, name)
		return errors.Join(err, p.remove())
	}
	return nil
}

// leaveNode removes a sandbox's node, if it has one.
func (b *Bridge) leaveNode(name string) error {
	b.mu.Lock()
	there := b.nodes[name]
	delete(b.nodes, name)
	b.mu.Unlock()
	if !there {
		return nil
	}
	return nodePath{name: name}.remove()
}

// nodePath is what joins the second bridge of a sandbox to the first.
type nodePath struct {
	name string
	addr netip.Addr // of the sandbox
}

const (
	vxlanPort     = 4789 // of IANA
	vxlanOverhead = 50   // bytes before a packet in the tunnel: Ethernet, IPv4, UDP and VXLAN
	defaultMTU    = 1500
)

// near is the tunnel's address at the first bridge, in the other half of the range for benchmarks.
func near() netip.Addr { return netip.AddrFrom4([4]byte{198, 19, 0, 1}) }

// far is that at the second: the sandbox's, in the same half as near.
func (p nodePath) far() netip.Addr {
	a := p.addr.As4()
	a[1] = near().As4()[1]
	return netip.AddrFrom4(a)
}

// id tells the tunnels of several sandboxes apart.
func (p nodePath) id() int {
	a := p.addr.As4()
	return int(a[2])<<8 | int(a[3])
}

// link is the name of one of its links in the bridge's namespace.
func (p nodePath) link(what string) string {
	sum := sha256.Sum256([]byte(what + " " + p.name))
	return (Prefix + hex.EncodeToString(sum[:]))[:maxLink]
}

// Links of a path, in the bridge's namespace.
const (
	farBridge = "bridge" // the second
	farEnd    = "far"    // port of the second bridge
	nearEnd   = "near"   // port of the first
	underlay  = "under"  // carries the tunnel's packets; the same name at its other end
)

// namespace is where the tunnel has its far end.
func (p nodePath) namespace() string { return p.name + ".node" }

// bridge makes the second bridge, with the sandbox's port.
func (p nodePath) bridge(h *netlink.Handle, port string) error {
	name := p.link(farBridge)
	// It differs from the first bridge's: a bridge keeps packets for its own address.
	a := p.addr.As4()
	if err := addBridge(h, name, net.HardwareAddr{2, 't', 'a', 'r', a[2], a[3]}); err != nil {
		return err
	}
	return enslave(h, port, name)
}

// enslave makes a link a port of a bridge.
func enslave(h *netlink.Handle, port, bridge string) error {
	link, err := h.LinkByName(port)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", port, err)
	}
	master, err := h.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", bridge, err)
	}
	if err := h.LinkSetMaster(link, master); err != nil {
		return fmt.Errorf("network: cannot make %s a port of %s: %w", port, bridge, err)
	}
	return up(h, port)
}

// wire joins the bridges by a veth pair.
func (p nodePath) wire(h *netlink.Handle) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = p.link(farEnd)
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: p.link(nearEnd)}); err != nil {
		return fmt.Errorf("network: cannot make veth %s: %w; modprobe veth", attrs.Name, err)
	}
	return p.join(h)
}

// join makes both ends ports of their bridges.
func (p nodePath) join(h *netlink.Handle) error {
	return errors.Join(enslave(h, p.link(farEnd), p.link(farBridge)), enslave(h, p.link(nearEnd), bridgeLink))
}

// tunnel joins the bridges by VXLAN. Both ends are links of the bridge's namespace. A link's packets
// are sent from the namespace in which it was made: the far end is made in one of its own and moved.
func (p nodePath) tunnel() error {
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
	err = within(nsPath(bridgeName), func(h *netlink.Handle) error {
		attrs := netlink.NewLinkAttrs()
		const mtu = defaultMTU + vxlanOverhead
		attrs.Name, attrs.MTU = p.link(underlay), mtu
		pair := &netlink.Veth{LinkAttrs: attrs, PeerName: underlay, PeerNamespace: netlink.NsFd(int(other.Fd())), PeerMTU: mtu}
		if err := h.LinkAdd(pair); err != nil {
			return fmt.Errorf("network: cannot make veth %s: %w; modprobe veth", attrs.Name, err)
		}
		if err := pointTo(h, attrs.Name, near(), p.far()); err != nil {
			return err
		}
		return p.addVXLAN(h, nearEnd, attrs.Name, near(), p.far())
	})
	if err != nil {
		return err
	}
	err = within(nsPath(p.namespace()), func(h *netlink.Handle) error {
		if err := pointTo(h, underlay, p.far(), near()); err != nil {
			return err
		}
		if err := p.addVXLAN(h, farEnd, underlay, p.far(), near()); err != nil {
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

// pointTo sets a link up, with an address and the one at its other end.
func pointTo(h *netlink.Handle, name string, own, other netip.Addr) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", name, err)
	}
	one := func(a netip.Addr) *net.IPNet { return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)} }
	if err := h.AddrAdd(link, &netlink.Addr{IPNet: one(own), Peer: one(other)}); err != nil {
		return fmt.Errorf("network: cannot set the address %s on %s: %w", own, name, err)
	}
	return up(h, name)
}

// addVXLAN makes an end of the tunnel.
func (p nodePath) addVXLAN(h *netlink.Handle, what, over string, own, other netip.Addr) error {
	link, err := h.LinkByName(over)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", over, err)
	}
	return addVXLAN(h, p.link(what), p.id(), link.Attrs().Index, own, other)
}

func addVXLAN(h *netlink.Handle, name string, id, over int, own, other netip.Addr) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, defaultMTU
	err := h.LinkAdd(&netlink.Vxlan{
		LinkAttrs: attrs, VxlanId: id, VtepDevIndex: over, SrcAddr: own.AsSlice(), Group: other.AsSlice(), Port: vxlanPort, Learning: true,
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("network: this kernel has no VXLAN: %w; modprobe vxlan", err)
	}
	if err != nil {
		return fmt.Errorf("network: cannot make the VXLAN link %s: %w", name, err)
	}
	return nil
}

// remove removes the path. The sandbox's port is left without a bridge.
func (p nodePath) remove() error {
	err := within(nsPath(bridgeName), func(h *netlink.Handle) error {
		var errs []error
		for _, what := range []string{farEnd, nearEnd, underlay, farBridge} {
			errs = append(errs, removeLink(h, p.link(what)))
		}
		return errors.Join(errs...)
	})
	if errors.Is(err, os.ErrNotExist) {
		err = nil // the bridge was removed, and its links with it
	}
	return errors.Join(err, Remove(Prefix+"-"+p.namespace()))
}
