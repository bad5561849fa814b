package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"

	"tare/record"
	"tare/sandbox"
)

// Path puts a sandbox on a node of its own, as it were: its port becomes one of a second bridge,
// which a veth pair (record.PathWire) or a tunnel (tunnels) joins to the
// first. Call Path once, after the start of the sandbox and after Delay. Detach ends it.
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
	case b.nodes[name] != nil:
		return fmt.Errorf("network: %s has a path already", name)
	}
	port := linkName(name)
	if b.detours[name] != nil {
		port = detourName(name)
	}
	if b.nodes == nil {
		b.nodes = map[string]*nodePath{}
	}
	p := &nodePath{name: name, addr: n.Addr.Addr()}
	b.nodes[name] = p // from here on there is something to remove
	t, tunnelled := tunnels()[path]
	switch {
	case path == record.PathWire:
		err = within(nsPath(bridgeName), func(h *netlink.Handle) error { return errors.Join(p.bridge(h, port), p.wire(h)) })
	case tunnelled:
		if err = within(nsPath(bridgeName), func(h *netlink.Handle) error { return p.bridge(h, port) }); err == nil {
			err = p.tunnel(t)
		}
	default:
		err = fmt.Errorf("network: path %q must be %s", path, strings.Join(Paths(), ", "))
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
	p := b.nodes[name]
	delete(b.nodes, name)
	b.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.remove()
}

// nodePath is what joins the second bridge of a sandbox to the first.
type nodePath struct {
	name      string
	addr      netip.Addr // of the sandbox
	encrypted encryption // of its tunnel; nil: none
}

// near is the tunnel's address at the first bridge, in the other half of the range for benchmarks.
func near() netip.Addr { return netip.AddrFrom4([4]byte{198, 19, 0, 1}) }

// far is that at the second: the sandbox's, in the same half as near.
func (p *nodePath) far() netip.Addr {
	a := p.addr.As4()
	a[1] = near().As4()[1]
	return netip.AddrFrom4(a)
}

// id tells the tunnels of several sandboxes apart.
func (p *nodePath) id() int {
	a := p.addr.As4()
	return int(a[2])<<8 | int(a[3])
}

// link is the name of one of its links in the bridge's namespace.
func (p *nodePath) link(what string) string {
	sum := sha256.Sum256([]byte(what + " " + p.name))
	return (Prefix + hex.EncodeToString(sum[:]))[:maxLink]
}

// Links of a path, in the bridge's namespace.
const (
	farBridge = "bridge" // the second
	farEnd    = "far"    // port of the second bridge
	nearEnd   = "near"   // port of the first
	underlay  = "under"  // carries the tunnel's packets; the same name at its other end
	wgEnd     = "wg"     // of WireGuard, over the underlay
)

// namespace is where the tunnel has its far end.
func (p *nodePath) namespace() string { return p.name + ".node" }

// bridge makes the second bridge, with the sandbox's port.
func (p *nodePath) bridge(h *netlink.Handle, port string) error {
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
func (p *nodePath) wire(h *netlink.Handle) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = p.link(farEnd)
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: p.link(nearEnd)}); err != nil {
		return fmt.Errorf("network: cannot make veth %s: %w; modprobe veth", attrs.Name, err)
	}
	return p.join(h)
}

// join makes both ends ports of their bridges.
func (p *nodePath) join(h *netlink.Handle) error {
	return errors.Join(enslave(h, p.link(farEnd), p.link(farBridge)), enslave(h, p.link(nearEnd), bridgeLink))
}

// remove removes the path. The sandbox's port is left without a bridge.
func (p *nodePath) remove() error {
	err := within(nsPath(bridgeName), func(h *netlink.Handle) error {
		var errs []error
		for _, what := range []string{farEnd, nearEnd, wgEnd, underlay, farBridge} {
			errs = append(errs, removeLink(h, p.link(what)))
		}
		if p.encrypted != nil {
			errs = append(errs, p.encrypted.stop(p.ends(nearSide)))
		}
		return errors.Join(errs...)
	})
	if errors.Is(err, os.ErrNotExist) {
		err = nil // the bridge was removed, and its links with it
	}
	return errors.Join(err, Remove(Prefix+"-"+p.namespace()))
}
