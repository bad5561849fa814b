package network

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// wireGuard has the keys of both sides (https://www.wireguard.com/papers/wireguard.pdf).
type wireGuard struct {
	keys [2]wgtypes.Key
	port int // UDP port of the near side, where each sandbox needs its own
}

const wgPort = 51820 // of the far side

func newWireGuard() (encryption, error) {
	var w wireGuard
	var errs [2]error
	for i := range w.keys {
		w.keys[i], errs[i] = wgtypes.GeneratePrivateKey()
	}
	return &w, errors.Join(errs[:]...)
}

// inside is the address of a side in WireGuard's own network, from the range for carriers (RFC 6598): 100.64.x.y for 198.19.x.y.
func (w *wireGuard) inside(outside netip.Addr) netip.Addr {
	a := outside.As4()
	return netip.AddrFrom4([4]byte{100, 64, a[2], a[3]})
}

func (w *wireGuard) start(h *netlink.Handle, e end, side int) (end, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = e.wg, defaultMTU+tunnelOverhead
	if err := added("WireGuard", "wireguard", e.wg, h.LinkAdd(&netlink.Wireguard{LinkAttrs: attrs})); err != nil {
		return e, err
	}
	in := end{e.id, e.wg, e.wg, w.inside(e.own), w.inside(e.other)}
	c, err := wgctrl.New()
	if err != nil {
		return e, fmt.Errorf("network: cannot configure WireGuard: %w", err)
	}
	defer c.Close() //nolint:errcheck // only a socket
	port, to := wgPort, w.port
	if side == nearSide {
		port, to = 0, wgPort // any that is free
	}
	peer := wgtypes.PeerConfig{
		PublicKey: w.keys[1-side].PublicKey(), Endpoint: &net.UDPAddr{IP: e.other.AsSlice(), Port: to}, ReplaceAllowedIPs: true, AllowedIPs: []net.IPNet{*one(in.other)},
	}
	err = c.ConfigureDevice(e.wg, wgtypes.Config{PrivateKey: &w.keys[side], ListenPort: &port, Peers: []wgtypes.PeerConfig{peer}})
	if err == nil {
		err = pointTo(h, in.over, in.own, in.other)
	}
	if err != nil {
		return e, fmt.Errorf("network: cannot configure the WireGuard link %s: %w", e.wg, err)
	}
	if side == nearSide { // the port is known once the link is up
		d, err := c.Device(e.wg)
		if err != nil {
			return e, fmt.Errorf("network: cannot read the port of the WireGuard link %s: %w", e.wg, err)
		}
		w.port = d.ListenPort
	}
	return in, nil
}

func (w *wireGuard) stop(end) error { return nil } // its link goes with the path

// ipsec encrypts with ESP in transport mode (RFC 4303) by AES-GCM of 128 bits (RFC 4106), with keys for each direction that both sides know: no daemon
// negotiates them.
type ipsec struct {
	keys [2][aeadKey]byte // by the side that sends
}

const (
	aeadKey  = 16 + 4 // bytes of the key and of the salt
	aeadTag  = 128    // bits of the integrity check value
	firstSPI = 0x1000 // smaller ones are reserved (RFC 4303, 2.1)
)

func newIPsec() (encryption, error) {
	var s ipsec
	for i := range s.keys {
		_, _ = rand.Read(s.keys[i][:]) // it never fails
	}
	return &s, nil
}

// states are those of the packets that the near side sends, and of those that the far side sends.
func (s *ipsec) states(e end, side int) [2]*netlink.XfrmState {
	var out [2]*netlink.XfrmState
	for from := range out {
		src, dst := e.own, e.other
		if from != side {
			src, dst = dst, src
		}
		out[from] = &netlink.XfrmState{
			Src: src.AsSlice(), Dst: dst.AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TRANSPORT,
			Spi: firstSPI + 2*e.id + from, ReplayWindow: 32,
			Aead: &netlink.XfrmStateAlgo{Name: "rfc4106(gcm(aes))", Key: s.keys[from][:], ICVLen: aeadTag},
		}
	}
	return out
}

// policies are those of the packets that a side sends, and of those that it receives.
func (s *ipsec) policies(e end, side int) []*netlink.XfrmPolicy {
	var out []*netlink.XfrmPolicy
	host := net.CIDRMask(32, 32)
	for from, state := range s.states(e, side) {
		p := &netlink.XfrmPolicy{
			Src: &net.IPNet{IP: state.Src, Mask: host}, Dst: &net.IPNet{IP: state.Dst, Mask: host}, Dir: netlink.XFRM_DIR_IN,
			Tmpls: []netlink.XfrmPolicyTmpl{{Src: state.Src, Dst: state.Dst, Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TRANSPORT}},
		}
		if from == side {
			p.Dir = netlink.XFRM_DIR_OUT
		}
		out = append(out, p)
	}
	return out
}

// xfrm runs f with a socket for IPsec in the namespace of the calling thread.
func xfrm(f func(*netlink.Handle) error) error {
	h, err := netlink.NewHandle(unix.NETLINK_XFRM)
	if err != nil {
		return fmt.Errorf("network: this kernel has no IPsec: %w; modprobe xfrm_user", err)
	}
	defer h.Close()
	return f(h)
}

func (s *ipsec) start(_ *netlink.Handle, e end, side int) (end, error) {
	return e, xfrm(func(h *netlink.Handle) error {
		for _, state := range s.states(e, side) {
			if err := h.XfrmStateAdd(state); err != nil {
				return fmt.Errorf("network: this kernel has no IPsec with ESP and AES-GCM: %w; modprobe -a esp4 gcm aes", err)
			}
		}
		for _, p := range s.policies(e, side) {
			if err := h.XfrmPolicyAdd(p); err != nil {
				return fmt.Errorf("network: cannot set an IPsec policy: %w", err)
			}
		}
		return nil
	})
}

func (s *ipsec) stop(e end) error {
	return xfrm(func(h *netlink.Handle) error {
		var errs []error
		for _, p := range s.policies(e, nearSide) {
			errs = append(errs, gone(h.XfrmPolicyDel(p)))
		}
		for _, state := range s.states(e, nearSide) {
			errs = append(errs, gone(h.XfrmStateDel(state)))
		}
		return errors.Join(errs...)
	})
}

// gone returns the error of a removal, or nil if what it should remove did not exist: a path whose setup failed has only a part of its state.
func gone(err error) error {
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return fmt.Errorf("network: cannot remove the IPsec state: %w", err)
}
