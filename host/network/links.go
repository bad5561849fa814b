package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HostLinks lists tare's links, tare*, in this process's namespace. An undisturbed run
// leaves no such link; a tap device can be one.
func HostLinks() ([]string, error) {
	var out []string
	err := own(func(h *netlink.Handle) error {
		links, err := h.LinkList()
		if err != nil {
			return fmt.Errorf("network: %w", err)
		}
		for _, l := range links {
			if strings.HasPrefix(l.Attrs().Name, Prefix) {
				out = append(out, l.Attrs().Name)
			}
		}
		return nil
	})
	return out, err
}

// RemoveHostLink removes one link of this process's namespace. It is idempotent, and keeps
// links of types that tare never makes, such as a real network card with such a name.
func RemoveHostLink(name string) error {
	if !strings.HasPrefix(name, Prefix) {
		return fmt.Errorf("network: %q is not the name of a link of tare", name)
	}
	return own(func(h *netlink.Handle) error {
		link, err := h.LinkByName(name)
		if err == nil && !slices.Contains([]string{"veth", "bridge", "tuntap", "tun", "dummy"}, link.Type()) {
			return fmt.Errorf("network: link %s has the type %s, which tare never creates; tare keeps it", name, link.Type())
		}
		return removeLink(h, name)
	})
}

// own runs f with a netlink socket in the namespace of the calling thread.
func own(f func(*netlink.Handle) error) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("network: netlink: %w", err)
	}
	defer h.Close()
	return f(h)
}
