package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HostLinks names the links of ours, tare*, in this process's own namespace.
// In a sound run there are none; a tap device can be.
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

// RemoveHostLink removes one link of this process's own namespace. It is
// idempotent, and leaves alone what tare never makes, such as a real card that
// bears the name.
func RemoveHostLink(name string) error {
	if !strings.HasPrefix(name, Prefix) {
		return fmt.Errorf("network: %q is not the name of a link of ours", name)
	}
	return own(func(h *netlink.Handle) error {
		link, err := h.LinkByName(name)
		if err == nil && !slices.Contains([]string{"veth", "bridge", "tuntap", "tun", "dummy"}, link.Type()) {
			return fmt.Errorf("network: link %s is of type %s, which tare never makes; it is left alone", name, link.Type())
		}
		return removeLink(h, name)
	})
}

func own(f func(*netlink.Handle) error) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("network: netlink: %w", err)
	}
	defer h.Close()
	return f(h)
}
