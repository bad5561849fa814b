package network

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/record"
	"tare/sandbox"
)

// Bounds of a Link.
const (
	// LeastRate still carries a few large packets a second.
	LeastRate = 8_000
	// MostDelay is a second, several times round the earth.
	MostDelay = time.Second
)

// Rate limits the traffic towards a sandbox to so many bytes a second, with tc-tbf(8). Call
// it after the start of the sandbox, because a machine's tap replaces the port that Attach
// made. To limit both ways of a link between two sandboxes, call it for both.
func (b *Bridge) Rate(n sandbox.Network, bytes int64) error {
	name, err := attached(n)
	if err != nil {
		return err
	}
	if bytes < LeastRate {
		return fmt.Errorf("network: a link's rate must be at least %d bytes a second, not %d", LeastRate, bytes)
	}
	return within(nsPath(bridgeName), func(h *netlink.Handle) error { return hold(h, linkName(name), bytes) })
}

// burst is how many bytes may pass at once, and room how many may wait. burst must hold the
// largest packet of a sender, 64 KiB and its headers: otherwise the kernel would split it,
// at a cost that a real link does not have. room is 50 ms of the rate, as in a typical
// router.
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
		return fmt.Errorf("network: this kernel cannot limit the rate of a link: %w; modprobe sch_tbf", err)
	}
	if err != nil {
		return fmt.Errorf("network: cannot limit %s to %d bytes a second: %w", name, rate, err)
	}
	return nil
}

// ticks is the time that so many bytes take at a rate, in the unit of tc: 64 ns
// (PSCHED_SHIFT 6 of include/net/pkt_sched.h).
func ticks(bytes, rate int64) int64 {
	return int64(math.Ceil(float64(bytes) / float64(rate) * 1e9 / 64))
}

// CheckLink tries in a temporary, unnamed namespace whether this host can make such a link.
func CheckLink(l sandbox.Link) error {
	switch {
	case l == (sandbox.Link{}):
		return nil
	case l.Path == record.PathNodes:
		return fmt.Errorf("link-path %s: this host is one node; measure on a cluster (--on k8s), or choose one of %s", l.Path, strings.Join(Paths(), ", "))
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
		if t, is := tunnels()[l.Path]; is {
			if err := checkTunnel(h, t, name); err != nil {
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
