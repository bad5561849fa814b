package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// Delay delays every packet to and from a sandbox, each way. It takes the sandbox's port
// from the bridge, and this process forwards the packets after the delay
// (docs/design/0016-delay-by-a-detour.md). Call it once, after the start of the sandbox.
// Detach ends it.
func (b *Bridge) Delay(n sandbox.Network, delay time.Duration) error {
	name, err := attached(n)
	if err != nil {
		return err
	}
	if delay <= 0 || delay > MostDelay {
		return fmt.Errorf("network: a link's delay must be more than 0 and at most %v, not %v", MostDelay, delay)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.lock == nil:
		return fmt.Errorf("network: cannot delay %s: the bridge is closed", name)
	case b.detours[name] != nil:
		return fmt.Errorf("network: %s is delayed already", name)
	}
	var d *detour
	err = within(nsPath(bridgeName), func(h *netlink.Handle) (err error) {
		d, err = newDetour(h, linkName(name), detourName(name), delay)
		return err
	})
	if err != nil {
		return err
	}
	if b.detours == nil {
		b.detours = map[string]*detour{}
	}
	b.detours[name] = d
	return nil
}

// straighten ends a sandbox's detour, if it has one.
func (b *Bridge) straighten(name string) error {
	b.mu.Lock()
	d := b.detours[name]
	delete(b.detours, name)
	b.mu.Unlock()
	if d == nil {
		return nil
	}
	return d.close()
}

// detourName is the name of the tap that replaces a sandbox's port at the bridge.
func detourName(name string) string {
	sum := sha256.Sum256([]byte("detour " + name))
	return (Prefix + hex.EncodeToString(sum[:]))[:maxLink]
}

// detour is a path through this process between a port and the bridge. Packets at both ends
// have the header of virtio_net (include/uapi/linux/virtio_net.h), so that a large packet
// (GSO) of a sender stays in one piece.
type detour struct {
	port int      // packet socket on the sandbox's port
	tap  *TapLink // in its place on the bridge
	quit int      // eventfd; readable: end
	done chan error
}

// waiting is the socket buffer, in bytes, for packets that arrive while the detour's thread
// waits for a processor.
const waiting = 16 << 20

// newDetour must be called in the bridge's namespace; its descriptors belong there.
func newDetour(h *netlink.Handle, port, tap string, delay time.Duration) (_ *detour, err error) {
	d := &detour{port: -1, quit: -1, tap: &TapLink{Name: tap}, done: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.release())
		}
	}()
	link, err := h.LinkByName(port)
	if err != nil {
		return nil, fmt.Errorf("network: link %s: %w", port, err)
	}
	if d.port, err = packetSocket(link.Attrs().Index); err != nil {
		return nil, fmt.Errorf("network: cannot open a packet socket on %s: %w; the kernel needs CONFIG_PACKET", port, err)
	}
	if d.quit, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("network: eventfd: %w", err)
	}
	// Outside of the bridge, the port is an interface of the namespace, and would answer ARP
	// requests for the bridge's address.
	if err := h.LinkSetARPOff(link); err != nil {
		return nil, fmt.Errorf("network: cannot switch off ARP on %s: %w", port, err)
	}
	if err := h.LinkSetNoMaster(link); err != nil {
		return nil, fmt.Errorf("network: cannot take %s from the bridge: %w", port, err)
	}
	if err := d.tap.open(h, 1); err != nil {
		return nil, err
	}
	if err := unix.IoctlSetInt(int(d.tap.Files[0].Fd()), unix.TUNSETOFFLOAD, offloads); err != nil {
		return nil, fmt.Errorf("network: cannot set the offloads of %s: %w", tap, err)
	}
	go func() { d.done <- d.carry(delay) }()
	return d, nil
}

// offloads lets packets pass unsplit and without checksums: TUN_F_CSUM, TSO4, TSO6, TSO_ECN
// of include/uapi/linux/if_tun.h.
const offloads = 0x01 | 0x02 | 0x04 | 0x08

// packetSocket opens a socket that receives and sends packets on a link (packet(7)).
func packetSocket(index int) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	set := func(level, option, value int) {
		if err == nil {
			err = unix.SetsockoptInt(fd, level, option, value)
		}
	}
	set(unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1)
	set(unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	set(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, waiting)
	set(unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, waiting)
	if err == nil { // from here on, packets arrive
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: allProtocols, Ifindex: index})
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// allProtocols is ETH_P_ALL in network order.
const allProtocols = unix.ETH_P_ALL << 8

// close ends the detour. Packets in flight are lost.
func (d *detour) close() error {
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	if _, err := unix.Write(d.quit, one); err != nil {
		return fmt.Errorf("network: cannot stop a delayed link: %w", err)
	}
	return errors.Join(<-d.done, d.release())
}

func (d *detour) release() error {
	err := d.tap.Close()
	for _, fd := range []int{d.port, d.quit} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
