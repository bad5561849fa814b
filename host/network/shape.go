package network

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/sandbox"
)

// Bounds of a Link.
const (
	// LeastRate still carries a few large packets a second.
	LeastRate = 8_000
	// MostDelay is a second, several times round the earth.
	MostDelay = time.Second
)

// Rate holds what goes towards a sandbox to that many bytes a second, as tc's tbf does
// (tc-tbf(8)). It is called when the sandbox has started: a machine's tap replaces the port
// that Attach made. Both ways of a link between two sandboxes are held by calling it for both.
func (b *Bridge) Rate(n sandbox.Network, bytes int64) error {
	name, err := attached(n)
	if err != nil {
		return err
	}
	if bytes < LeastRate {
		return fmt.Errorf("network: a link carries %d bytes a second at least, not %d", LeastRate, bytes)
	}
	return within(nsPath(bridgeName), func(h *netlink.Handle) error { return hold(h, linkName(name), bytes) })
}

// burst is what may go at once, and room what may wait. The first must hold the largest
// packet that a sender hands down in one piece, 64 KiB and its headers, which would be taken
// apart otherwise, at a cost that a link does not have; the second is 50 ms of the rate, as a
// router of the field has.
const burst = 128 << 10

func room(rate int64) int64 { return max(rate/20, 2*burst) }

func hold(h *netlink.Handle, name string, rate int64) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("network: link %s: %w", name, err)
	}
	err = h.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(rate),                                    //nolint:gosec // not negative, as Rate has checked
		Limit:      uint32(min(room(rate), math.MaxUint32)),         //nolint:gosec // bounded here
		Buffer:     uint32(min(ticks(burst, rate), math.MaxUint32)), //nolint:gosec // bounded here
	})
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("network: this kernel cannot hold a link to a rate: %w; modprobe sch_tbf", err)
	}
	if err != nil {
		return fmt.Errorf("network: holding %s to %d bytes a second: %w", name, rate, err)
	}
	return nil
}

// ticks is the time that so many bytes take at a rate, in the unit of tc: 64 ns
// (PSCHED_SHIFT 6 of include/net/pkt_sched.h).
func ticks(bytes, rate int64) int64 {
	return int64(math.Ceil(float64(bytes) / float64(rate) * 1e9 / 64))
}

// CheckLink tries whether this host can make such a link, in a nameless namespace that is
// gone when it returns.
func CheckLink(l sandbox.Link) error {
	if l == (sandbox.Link{}) {
		return nil
	}
	return tried(func(h *netlink.Handle) error {
		name := Prefix + "1"
		port := &TapLink{Name: name}
		if err := port.open(h, 1); err != nil {
			return err
		}
		defer port.Close() //nolint:errcheck // only tried
		if l.Rate > 0 {
			if err := hold(h, name, l.Rate); err != nil {
				return err
			}
		}
		if l.Delay > 0 {
			d, err := newDetour(h, name, Prefix+"2", l.Delay)
			if err != nil {
				return err
			}
			return d.close()
		}
		return nil
	})
}
