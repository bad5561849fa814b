package guest

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// network brings up lo, and eth0 with the address if there is one. The driver
// uses as many queues as there are processors at boot, at most as many as the
// device offers: nothing is to be set.
func network(address netip.Prefix, mtu int) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("cannot bring up lo: %w", err)
	}
	if !address.IsValid() {
		return nil
	}
	eth, err := waitLink(h, "eth0", deviceWithin)
	if err != nil {
		return err
	}
	if mtu > 0 {
		if err := h.LinkSetMTU(eth, mtu); err != nil {
			return fmt.Errorf("cannot set the MTU of eth0 to %d: %w", mtu, err)
		}
	}
	addr, err := netlink.ParseAddr(address.String())
	if err != nil {
		return err
	}
	if err := h.AddrReplace(eth, addr); err != nil {
		return fmt.Errorf("cannot give eth0 the address %s: %w", address, err)
	}
	if err := h.LinkSetUp(eth); err != nil {
		return fmt.Errorf("cannot bring up eth0: %w", err)
	}
	return nil
}

func waitLink(h *netlink.Handle, name string, within time.Duration) (netlink.Link, error) {
	for deadline := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		link, err := h.LinkByName(name)
		if err == nil {
			return link, nil
		}
		if time.Now().After(deadline) {
			if gone := (netlink.LinkNotFoundError{}); errors.As(err, &gone) {
				err = errors.New("the machine has no network device, or the kernel no virtio_net")
			}
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
}
