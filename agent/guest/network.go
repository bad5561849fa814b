package guest

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// network brings up lo, and eth0 if the setup has an address. The driver uses as many queues
// as there are processors at boot, at most those of the device, so there is nothing to set.
func network(s Setup) error {
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
	if !s.Address.IsValid() {
		return nil
	}
	eth, err := waitLink(h, "eth0", deviceWithin)
	if err != nil {
		return err
	}
	if err := identify(h, eth, s.MAC); err != nil {
		return err
	}
	if s.MTU > 0 {
		if err := h.LinkSetMTU(eth, s.MTU); err != nil {
			return fmt.Errorf("cannot set the MTU of eth0 to %d: %w", s.MTU, err)
		}
	}
	addr, err := netlink.ParseAddr(s.Address.String())
	if err != nil {
		return err
	}
	if err := h.AddrReplace(eth, addr); err != nil {
		return fmt.Errorf("cannot give eth0 the address %s: %w", s.Address, err)
	}
	if err := h.LinkSetUp(eth); err != nil {
		return fmt.Errorf("cannot bring up eth0: %w", err)
	}
	return nil
}

// identify sets the hardware address of a link, unless it has it: the card of a machine from
// a snapshot has the saved machine's.
func identify(h *netlink.Handle, link netlink.Link, mac string) error {
	if mac == "" || mac == link.Attrs().HardwareAddr.String() {
		return nil
	}
	addr, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	if err := h.LinkSetHardwareAddr(link, addr); err != nil {
		return fmt.Errorf("cannot give %s the hardware address %s: %w", link.Attrs().Name, mac, err)
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
				err = errors.New("the virtual machine lacks a network device, or its kernel lacks virtio_net")
			}
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
}
