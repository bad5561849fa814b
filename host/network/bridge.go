// Package network connects sandboxes by a bridge that the host does not see.
//
// The data path: 1. Open makes the namespace /run/netns/tare-bridge with the
// bridge tare0 in it; 2. Attach makes a namespace /run/netns/tare-NAME whose
// eth0 is a veth pair to that bridge, with an address of 198.18.0.0/16, the
// range for benchmarks (RFC 2544 section 12, RFC 6890); 3. the sandbox is
// started in that namespace, or, for a virtual machine, Tap replaces the pair with
// a tap device; 4. Rate and Delay slow its link, and Path puts a second bridge before it, if a
// study asks for it; 5. Detach and Close remove everything. Socket connects to the sandboxes from the bridge itself,
// 198.18.0.1.
//
// The bridge has its own namespace, so that the host's firewall does not filter its
// packets, and tools that watch the host's interfaces do not touch it
// (docs/design/0003-bridge-in-its-own-namespace.md). The namespaces are bound to files
// as `ip netns` does it, so that
//
//	ip netns exec tare-NAME ip addr
//
// shows what a sandbox sees. Offloads and MTU have the kernel's defaults.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/internal/rootless"
	"tare/sandbox"
)

const (
	// Prefix begins the name of each namespace and link that tare makes.
	Prefix = "tare"

	bridgeLink = "tare0"
	bridgeName = "bridge"
	subnet     = "198.18.0.0/16"
)

// Dir is where named network namespaces are, as for `ip netns`; in a user namespace, a folder of
// the user's.
func Dir() string {
	if rootless.Is() {
		return filepath.Join(rootless.RunDir(), "netns")
	}
	return "/run/netns"
}

// Bridge is the bridge and the namespaces attached to it. It is safe for
// concurrent use.
type Bridge struct {
	lock    *os.File
	sockets chan chan made // asks the bridge's thread for a socket
	closed  chan struct{}  // ends that thread
	done    chan struct{}  // closed when it has ended; nil before it was started

	mu      sync.Mutex
	used    map[netip.Addr]string       // address to name
	next    netip.Addr                  // where the search for a free address begins
	further map[netip.Addr]netip.Prefix // ranges of Further, by the sandbox's own address

	detours map[string]*detour   // of delayed sandboxes, by name
	nodes   map[string]*nodePath // of sandboxes behind a bridge of their own
}

// Open makes the bridge. One process at a time has it, until it closes the bridge or dies.
// Open replaces what a dead process left. It needs root, of the machine or of a user namespace.
func Open(ctx context.Context) (*Bridge, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lock, err := takeLock(filepath.Join(rootless.RunDir(), "bridge.lock"))
	if err != nil {
		return nil, err
	}
	b := &Bridge{lock: lock, used: map[netip.Addr]string{}, sockets: make(chan chan made), closed: make(chan struct{})}
	if err := b.make(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// takeLock holds a lock until this process ends. It is separate from the host's lock, so
// that a Bridge in use is not taken for a leftover even if the host's lock was not taken.
func takeLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as the rest of /run; what is private in it has its own mode
		return nil, fmt.Errorf("network: %w; run as root", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600) //nolint:gosec // a constant path but in tests
	if err != nil {
		return nil, fmt.Errorf("network: %w; run as root", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("network: another process uses the bridge %s%s: %w; wait until it ends", Prefix+"-", bridgeName, err)
	}
	return f, nil
}

func (b *Bridge) make() error {
	prefix := netip.MustParsePrefix(subnet)
	b.next = prefix.Addr().Next() // .0.0 is the network's address, .0.1 the bridge's
	if err := Remove(Prefix + "-" + bridgeName); err != nil {
		return err
	}
	if err := Create(nsPath(bridgeName)); err != nil {
		return err
	}
	err := within(nsPath(bridgeName), func(h *netlink.Handle) error {
		if err := addBridge(h, bridgeLink, bridgeMAC()); err != nil {
			return err
		}
		// With an address, the harness can connect to servers in the sandboxes.
		return address(h, bridgeLink, netip.PrefixFrom(b.next, prefix.Bits()))
	})
	if err != nil {
		return err
	}
	b.done = make(chan struct{})
	return b.serveSockets()
}

// bridgeMAC is the bridge's hardware address, a locally administered one.
func bridgeMAC() net.HardwareAddr { return net.HardwareAddr{2, 't', 'a', 'r', 'e', 0} }

// addBridge makes a bridge and sets it up. Spanning tree is off, so that a new
// port forwards at once instead of after 30 s of listening. Its hardware address is
// fixed. Otherwise it would be the lowest of its ports', and would change as they come and go,
// while the sandboxes remember the old one.
func addBridge(h *netlink.Handle, name string, mac net.HardwareAddr) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = name, mac
	link := &netlink.Bridge{LinkAttrs: attrs}
	if err := h.LinkAdd(link); err != nil {
		return fmt.Errorf("network: cannot make bridge %s: %w; modprobe bridge", name, err)
	}
	return up(h, name)
}

// up sets a link up without an IPv6 link-local address, whose duplicate address detection
// and router solicitations would add traffic.
func up(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", name, err)
	}
	if name != "lo" {
		// Kernels without IPv6 refuse this setting and do not need it.
		_ = h.LinkSetIP6AddrGenMode(link, int(nl6AddrGenModeNone))
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("network: setting %s up: %w", name, err)
	}
	return nil
}

// nl6AddrGenModeNone is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
const nl6AddrGenModeNone = 1

// Attach makes the namespace of a sandbox, with lo and eth0 up, and connects it to the
// bridge with a unique address. The name must be new, and has letters, digits and, after the
// first character, . _ -.
func (b *Bridge) Attach(name string) (sandbox.Network, error) {
	if err := checkName(name); err != nil {
		return sandbox.Network{}, err
	}
	addr, err := b.reserve(name)
	if err != nil {
		return sandbox.Network{}, err
	}
	path := nsPath(name)
	if err := Create(path); err != nil {
		b.free(name)
		return sandbox.Network{}, err
	}
	prefix := netip.PrefixFrom(addr, netip.MustParsePrefix(subnet).Bits())
	if err := connect(path, name, prefix); err != nil {
		return sandbox.Network{}, errors.Join(err, b.Detach(name))
	}
	return sandbox.Network{Path: path, Addr: prefix}, nil
}

// connect makes the veth pair across the two namespaces.
func connect(path, name string, prefix netip.Prefix) error {
	inside, err := os.Open(path) //nolint:gosec // a namespace file that Attach made
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	defer func() { _ = inside.Close() }()
	err = within(nsPath(bridgeName), func(h *netlink.Handle) error {
		return addVeth(h, linkName(name), bridgeLink, int(inside.Fd()))
	})
	if err != nil {
		return err
	}
	var mac net.HardwareAddr
	err = within(path, func(h *netlink.Handle) (err error) {
		mac, err = configure(h, prefix)
		return err
	})
	if err != nil {
		return err
	}
	return within(nsPath(bridgeName), func(h *netlink.Handle) error {
		return introduce(h, prefix.Addr(), mac)
	})
}

// introduce adds a permanent neighbour entry for an address to the bridge's namespace.
// Otherwise the first packet to a sandbox starts an ARP request. If nothing answers yet, as
// before gVisor's network stack is up, the next request comes a second later (arp(7),
// retrans_time_ms). Runtimes with their own network stack give it the interface's hardware
// address.
func introduce(h *netlink.Handle, addr netip.Addr, mac net.HardwareAddr) error {
	link, err := h.LinkByName(bridgeLink)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", bridgeLink, err)
	}
	err = h.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_INET, State: unix.NUD_PERMANENT,
		IP: addr.AsSlice(), HardwareAddr: mac,
	})
	if err != nil {
		return fmt.Errorf("network: cannot add a neighbour entry for %s: %w", addr, err)
	}
	return nil
}

// forget removes the entry. A missing entry is not an error.
func forget(h *netlink.Handle, addr netip.Addr) error {
	link, err := h.LinkByName(bridgeLink)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", bridgeLink, err)
	}
	err = h.NeighDel(&netlink.Neigh{LinkIndex: link.Attrs().Index, Family: unix.AF_INET, IP: addr.AsSlice()})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("network: cannot remove the neighbour entry for %s: %w", addr, err)
	}
	return nil
}

// addVeth makes a veth pair: one end is a port of the bridge, the other is eth0 in the
// namespace behind fd.
func addVeth(h *netlink.Handle, name, bridge string, fd int) error {
	master, err := h.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", bridge, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	attrs.MasterIndex = master.Attrs().Index
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(fd)}
	if err := h.LinkAdd(pair); err != nil {
		return fmt.Errorf("network: cannot make veth %s: %w; modprobe veth", name, err)
	}
	return up(h, name)
}

// configure brings a sandbox's links up and returns eth0's hardware address.
func configure(h *netlink.Handle, prefix netip.Prefix) (net.HardwareAddr, error) {
	if err := up(h, "lo"); err != nil {
		return nil, err
	}
	if err := address(h, "eth0", prefix); err != nil {
		return nil, err
	}
	if err := up(h, "eth0"); err != nil {
		return nil, err
	}
	eth0, err := h.LinkByName("eth0")
	if err != nil {
		return nil, fmt.Errorf("network: link eth0: %w", err)
	}
	return eth0.Attrs().HardwareAddr, nil
}

// address gives a link its address.
func address(h *netlink.Handle, name string, prefix netip.Prefix) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", name, err)
	}
	addr, err := netlink.ParseAddr(prefix.String())
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if err := h.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("network: cannot set the address %s on %s: %w", prefix, name, err)
	}
	return nil
}

func (b *Bridge) reserve(name string) (netip.Addr, error) {
	prefix := netip.MustParsePrefix(subnet)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock == nil {
		return netip.Addr{}, fmt.Errorf("network: attaching %s: %w", name, os.ErrClosed)
	}
	for _, n := range b.used {
		if n == name {
			return netip.Addr{}, fmt.Errorf("network: %s is attached already; detach it first", name)
		}
	}
	// Addresses are used in turn, so that a stale neighbour entry does not point
	// at a new sandbox.
	pool := netip.MustParsePrefix(furtherPool)
	for range 1<<(32-pool.Bits()) - 2 {
		b.next = b.next.Next()
		if pool.Contains(b.next) { // which are for Further
			b.next = prefix.Addr().Next().Next()
		}
		if _, taken := b.used[b.next]; !taken {
			b.used[b.next] = name
			return b.next, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("network: all addresses of %s before %s are in use; detach some sandboxes", subnet, furtherPool)
}

func (b *Bridge) free(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a, n := range b.used {
		if n == name {
			delete(b.used, a)
			delete(b.further, a)
		}
	}
}

// Detach removes a sandbox's namespace and its link to the bridge. A process that is still
// in the namespace keeps it alive until it ends, without name or connection. Detach is
// idempotent, and ignores a name that was not attached here.
func (b *Bridge) Detach(name string) error {
	b.mu.Lock()
	var addr netip.Addr
	for a, n := range b.used {
		if n == name {
			addr = a
		}
	}
	b.mu.Unlock()
	if !addr.IsValid() {
		return nil
	}
	if err := errors.Join(b.straighten(name), b.leaveNode(name)); err != nil {
		return err
	}
	// Remove the pair first: the kernel destroys a namespace some time after its last user has
	// gone, and a link in it would exist until then.
	err := within(nsPath(bridgeName), func(h *netlink.Handle) error {
		return errors.Join(forget(h, addr), removeLink(h, linkName(name)))
	})
	if errors.Is(err, os.ErrNotExist) {
		err = nil // the bridge was removed, and its ports with it
	}
	if err = errors.Join(err, Remove(Prefix+"-"+name)); err != nil {
		return err
	}
	b.free(name)
	return nil
}

func removeLink(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if _, ok := errors.AsType[netlink.LinkNotFoundError](err); ok {
		return nil
	}
	if err != nil {
		return fmt.Errorf("network: link %s: %w", name, err)
	}
	if err := h.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("network: cannot remove link %s: %w", name, err)
	}
	return nil
}

// Close detaches everything and removes the bridge. It is idempotent.
func (b *Bridge) Close() error {
	b.mu.Lock()
	var names []string
	for _, n := range b.used {
		names = append(names, n)
	}
	lock := b.lock
	b.lock = nil
	b.mu.Unlock()
	if lock == nil {
		return nil
	}
	close(b.closed)
	if b.done != nil {
		<-b.done // a thread in the namespace would keep it alive
	}
	slices.Sort(names)
	var errs []error
	for _, n := range names {
		errs = append(errs, b.Detach(n))
	}
	errs = append(errs, Remove(Prefix+"-"+bridgeName))
	if rootless.Is() {
		_ = os.Remove(Dir()) // it is tare's alone; what stays in it was told
	}
	errs = append(errs, lock.Close())
	return errors.Join(errs...)
}
