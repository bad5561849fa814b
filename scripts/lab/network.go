package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/host/network"
)

// namespaceDir has the files of network namespaces, as `ip netns` has them.
const namespaceDir = "/run/netns"

// namespace is the file of a network namespace: of a node, or control.
func namespace(name string) string { return filepath.Join(namespaceDir, groupName+"-"+name) }

// makeNetwork makes a network namespace for the control plane and one for each node. A bridge
// in the first connects them. The host's own has no link, route or rule of it.
func makeNetwork() error {
	names := []string{control}
	for _, n := range nodes() {
		names = append(names, n.name)
	}
	for _, name := range names {
		if err := network.Create(namespace(name)); err != nil {
			return err
		}
		err := network.Enter(namespace(name), func() error {
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(lo)
		})
		if err != nil {
			return err
		}
	}
	if err := network.Enter(namespace(control), makeBridge); err != nil {
		return fmt.Errorf("cannot make the bridge of the nodes: %w", err)
	}
	for _, n := range nodes() {
		if err := connect(n); err != nil {
			return fmt.Errorf("cannot connect %s: %w", n.name, err)
		}
	}
	return nil
}

const bridgeName = "nodes"

func makeBridge() error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return err
	}
	// Pods find the API server at its service's address.
	if err := errors.Join(giveAddress(bridgeName, controlAddress+"/24"), giveAddress(bridgeName, firstService+"/32")); err != nil {
		return err
	}
	for _, n := range nodes() {
		if err := route(n.pods, n.address); err != nil {
			return err
		}
	}
	return nil
}

// connect gives a node its eth0, on the bridge, and the routes to the other nodes' pods.
func connect(n node) error {
	file, err := os.Open(namespace(n.name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	err = network.Enter(namespace(control), func() error {
		bridge, err := netlink.LinkByName(bridgeName)
		if err != nil {
			return err
		}
		pair := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: n.name, MasterIndex: bridge.Attrs().Index},
			PeerName:  "eth0", PeerNamespace: netlink.NsFd(file.Fd()),
		}
		if err := netlink.LinkAdd(pair); err != nil {
			return err
		}
		return netlink.LinkSetUp(pair)
	})
	if err != nil {
		return err
	}
	return network.Enter(namespace(n.name), func() error {
		if err := giveAddress("eth0", n.address+"/24"); err != nil {
			return err
		}
		// Of this network namespace alone: pods of other nodes reach those of this one.
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
			return err
		}
		if err := route(firstService+"/32", controlAddress); err != nil {
			return err
		}
		for _, other := range nodes() {
			if other.name == n.name {
				continue
			}
			if err := route(other.pods, other.address); err != nil {
				return err
			}
		}
		return nil
	})
}

func giveAddress(link, address string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(l, a); err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

func route(to, via string) error {
	_, dst, err := net.ParseCIDR(to)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: dst, Gw: net.ParseIP(via)})
}

// leftNamespaces are the files of the lab's namespaces that are there.
func leftNamespaces() ([]string, error) {
	entries, err := os.ReadDir(namespaceDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), groupName+"-") {
			out = append(out, filepath.Join(namespaceDir, e.Name()))
		}
	}
	return out, err
}

// removeNetwork removes the namespaces. Their links go with them.
func removeNetwork() error {
	files, err := leftNamespaces()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := unix.Unmount(f, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("cannot unmount the network namespace %s: %w", f, err)
		}
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return nil
}
