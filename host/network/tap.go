package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/sandbox"
)

const (
	tunDevice = "/dev/net/tun"
	maxQueues = 256 // MAX_TAP_QUEUES of drivers/net/tun.c
)

// TapLink is a virtual machine's port of the bridge: a tap device. It exists as long as one
// of its descriptors is open, here or in the machine's process. A kill -9 of both leaves
// nothing.
type TapLink struct {
	Name  string           // of the device in the bridge's namespace
	Files []*os.File       // its queues, for QEMU's fds=; with virtio-net headers
	MAC   net.HardwareAddr // the guest's
	Addr  netip.Prefix     // the guest's
	MTU   int              // the guest's, bytes

	closing sync.Once
	err     error
}

// Tap replaces the veth pair that Attach made for n with a tap device
// (docs/design/0015-tap-on-the-bridge.md). The guest has the pair's address and hardware
// address, which the bridge knows already. Detach removes the device in any state. After
// Close, and after other processes have closed the device, Tap works again for the same n.
func Tap(n sandbox.Network, queues int) (*TapLink, error) {
	name, ours := strings.CutPrefix(n.Path, nsPath(""))
	if !ours || checkName(name) != nil {
		return nil, fmt.Errorf("network: a tap needs a sandbox that is attached to the bridge, not %q", n.Path)
	}
	t := &TapLink{Name: linkName(name), Addr: n.Addr}
	// The device is made in the namespace in which it is opened.
	err := within(nsPath(bridgeName), func(h *netlink.Handle) (err error) {
		if t.MAC, err = known(h, n.Addr.Addr()); err != nil {
			return err
		}
		if err := removePair(h, t.Name); err != nil {
			return err
		}
		return t.open(h, queues)
	})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// known returns the hardware address that introduce added.
func known(h *netlink.Handle, addr netip.Addr) (net.HardwareAddr, error) {
	bridge, err := h.LinkByName(bridgeLink)
	if err != nil {
		return nil, fmt.Errorf("network: link %s: %w", bridgeLink, err)
	}
	neighbours, err := h.NeighList(bridge.Attrs().Index, unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("network: neighbours of %s: %w", bridgeLink, err)
	}
	for _, n := range neighbours {
		if a, ok := netip.AddrFromSlice(n.IP); ok && a.Unmap() == addr && n.State == unix.NUD_PERMANENT {
			return n.HardwareAddr, nil
		}
	}
	return nil, fmt.Errorf("network: %s is not attached to the bridge", addr)
}

// removePair removes both ends of the veth pair. It is not an error if an earlier tap has
// removed it, unless that tap still exists.
func removePair(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err == nil && link.Type() != "veth" {
		return inUse(name)
	}
	return removeLink(h, name)
}

// open makes the device. Offloads and MTU have the kernel's defaults; QEMU sets the offloads
// that its guest supports.
func (t *TapLink) open(h *netlink.Handle, queues int) error {
	if queues < 1 || queues > maxQueues {
		return fmt.Errorf("network: a tap must have 1 to %d queues, not %d", maxQueues, queues)
	}
	for i := range queues {
		var flags uint16 = unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR
		if queues > 1 {
			flags |= unix.IFF_MULTI_QUEUE
		}
		if i == 0 {
			flags |= unix.IFF_TUN_EXCL // otherwise it may become a queue of an existing device
		}
		f, err := openQueue(t.Name, flags)
		if err != nil {
			return err
		}
		t.Files = append(t.Files, f)
	}
	link, err := h.LinkByName(t.Name)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", t.Name, err)
	}
	t.MTU = link.Attrs().MTU
	bridge, err := h.LinkByName(bridgeLink)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", bridgeLink, err)
	}
	if err := h.LinkSetMaster(link, bridge); err != nil {
		return fmt.Errorf("network: cannot make %s a port of %s: %w", t.Name, bridgeLink, err)
	}
	return up(h, t.Name)
}

// openQueue opens one queue (Documentation/networking/tuntap.rst). It is not
// made by os.OpenFile: Go's poller must not see it before it is a device.
func openQueue(name string, flags uint16) (*os.File, error) {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, tunError(err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(flags)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		_ = unix.Close(fd)
		if errors.Is(err, unix.EBUSY) {
			return nil, inUse(name)
		}
		return nil, fmt.Errorf("network: cannot make tap %s: %w", name, tunError(err))
	}
	return os.NewFile(uintptr(fd), tunDevice), nil
}

// tunError says what to do about an error of the tun driver.
func tunError(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("network: %s: %w; load the kernel module tun: modprobe tun. In a container start it with --device %s", tunDevice, err, tunDevice)
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return fmt.Errorf("network: %s: %w; load the kernel module tun: modprobe tun", tunDevice, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("network: %s: %w; run as root (CAP_NET_ADMIN); a container's device rules must allow c 10:200", tunDevice, err)
	}
	return fmt.Errorf("network: %s: %w", tunDevice, err)
}

// inUse is the error for a device that exists already.
func inUse(name string) error {
	who := "a process that is ending"
	if pid, comm := holder("/proc", name); pid != "" {
		who = fmt.Sprintf("process %s (%s)", pid, comm)
	}
	return fmt.Errorf("network: tap %s is in use by %s: %w; stop that process, or run tare clean", name, who, unix.EBUSY)
}

// holder finds a process that has a tap open: /proc/PID/fdinfo/N has a line
//
//	iff:	tare-a
//
// (tun_chr_show_fdinfo of drivers/net/tun.c).
func holder(proc, name string) (pid, comm string) {
	infos, _ := filepath.Glob(filepath.Join(proc, "[0-9]*/fdinfo/[0-9]*"))
	for _, info := range infos {
		dir := filepath.Dir(filepath.Dir(info))
		if target, err := os.Readlink(filepath.Join(dir, "fd", filepath.Base(info))); err != nil || target != tunDevice {
			continue
		}
		raw, err := os.ReadFile(info) //nolint:gosec // of /proc
		if err != nil || !strings.Contains(string(raw)+"\n", "iff:\t"+name+"\n") {
			continue
		}
		c, _ := os.ReadFile(filepath.Join(dir, "comm")) //nolint:gosec // of /proc
		return filepath.Base(dir), strings.TrimSpace(string(c))
	}
	return "", ""
}

// Close closes this process's descriptors. A machine keeps its own. It is idempotent.
func (t *TapLink) Close() error {
	t.closing.Do(func() {
		for _, f := range t.Files {
			t.err = errors.Join(t.err, f.Close())
		}
	})
	return t.err
}
