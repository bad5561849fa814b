package network_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/sandbox"
)

const bridgePath = "/run/netns/tare-bridge"

func tap(t *testing.T, n sandbox.Network, queues int) *network.TapLink {
	t.Helper()
	begin := time.Now()
	link, err := network.Tap(n, queues)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	t.Logf("a tap of %d queues in %v", queues, time.Since(begin))
	return link
}

func openTaps(t *testing.T) *network.Bridge {
	t.Helper()
	b := open(t)
	if err := network.CheckTap(); err != nil {
		t.Skip("no taps on this host: ", err)
	}
	return b
}

// port tells whether the tap is a port of the bridge.
func port(t *testing.T, link *network.TapLink) bool {
	t.Helper()
	ports, err := network.Ports()
	if err != nil {
		t.Fatal(err)
	}
	p, there := ports[link.Name]
	return there && p.Type() == "tuntap"
}

// guest answers as a machine behind the tap would: who has its address (RFC 826),
// and UDP, by sending it back. It runs until the tap is closed or removed.
func guest(link *network.TapLink) {
	for _, queue := range link.Files {
		go func() {
			frame := make([]byte, 1<<16)
			for {
				n, err := queue.Read(frame)
				if err != nil {
					return
				}
				if out := answer(frame[:n], link); out != nil {
					_, _ = queue.Write(out)
				}
			}
		}()
	}
}

// answer makes the answer to a frame, or nil: a header of struct virtio_net_hdr,
// all zero, then Ethernet. Exchanging addresses and ports changes no checksum.
func answer(frame []byte, link *network.TapLink) []byte {
	const header = 10
	if len(frame) < header+42 {
		return nil
	}
	in, mac, addr := frame[header:], link.MAC, link.Addr.Addr().As4()
	out := bytes.Clone(frame)
	clear(out[:header])
	e := out[header:]
	copy(e[0:6], in[6:12])
	copy(e[6:12], mac)
	switch {
	case in[12] == 8 && in[13] == 6 && in[21] == 1 && bytes.Equal(in[38:42], addr[:]): // ARP, request
		e[21] = 2
		copy(e[22:28], mac)
		copy(e[28:32], in[38:42])
		copy(e[32:42], in[22:32])
		return out
	case in[12] == 8 && in[13] == 0 && in[23] == unix.IPPROTO_UDP && bytes.Equal(in[0:6], mac) && bytes.Equal(in[30:34], addr[:]):
		copy(e[26:30], in[30:34])
		copy(e[30:34], in[26:30])
		copy(e[34:36], in[36:38])
		copy(e[36:38], in[34:36])
		return out
	}
	return nil
}

// ask sends datagrams from a namespace, one after another, and waits for each to come back.
// It sends the first ones again: a new port accepts frames only after the kernel has noticed
// that its link is up, which takes long on a busy host.
func ask(path string, to netip.Addr) error {
	var c net.Conn
	err := network.Enter(path, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		c, err = connectFD(fd, netip.AddrPortFrom(to, 7))
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	buf := make([]byte, 64)
	for i := range 20 {
		want := fmt.Appendf(nil, "hello %d", i)
		got, end := "", time.Now().Add(patience)
		for got != string(want) {
			if _, err := c.Write(want); err != nil {
				return err
			}
			_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			n, err := c.Read(buf)
			if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end)) {
				return fmt.Errorf("%q did not come back: %w", want, err)
			}
			if got = string(buf[:n]); !strings.HasPrefix(got, "hello ") && n > 0 {
				return fmt.Errorf("%q came back as %q", want, got)
			}
		}
	}
	return nil
}

func TestGuestBehindTapTalks(t *testing.T) {
	b := openTaps(t)
	before, err := network.BridgeMAC()
	if err != nil {
		t.Fatal(err)
	}
	vm, client := attach(t, b, "test-vm-with-a-name-that-fits-no-link"), attach(t, b, "test-client")
	link := tap(t, vm, 4)
	if len(link.Files) != 4 || link.Addr != vm.Addr || link.MTU != 1500 || len(link.MAC) != 6 || !port(t, link) {
		t.Errorf("%+v", link)
	}
	guest(link)
	if err := ask(bridgePath, vm.Addr.Addr()); err != nil { // no ARP: the address is known there
		t.Error("from the bridge: ", err)
	}
	if err := ask(client.Path, vm.Addr.Addr()); err != nil {
		t.Error("from another sandbox: ", err)
	}
	if got, err := network.Learned(link.MAC.String()); err != nil || got != link.Name {
		t.Errorf("%s is behind %q, %v", link.MAC, got, err)
	}
	if after, err := network.BridgeMAC(); err != nil || after != before {
		t.Errorf("the bridge was %s and is %s, %v", before, after, err)
	}
	if links, err := network.HostLinks(); err != nil || len(links) > 0 {
		t.Errorf("the host sees %v, %v", links, err)
	}
}

func TestTapInUse(t *testing.T) {
	b := openTaps(t)
	n := attach(t, b, "test-a")
	first := tap(t, n, 2)
	_, err := network.Tap(n, 2)
	if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("a second tap: %v", err)
	}
	for range 2 {
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for late := time.Now().Add(patience); port(t, first); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) { // the kernel removes a tap after the close
			t.Fatal("the tap outlives its descriptors")
		}
	}
	again := tap(t, n, 1)
	if again.MAC.String() != first.MAC.String() || again.Addr != first.Addr {
		t.Errorf("%+v, then %+v", first, again)
	}
	guest(again)
	if err := ask(bridgePath, n.Addr.Addr()); err != nil {
		t.Error(err)
	}
}

func TestTapRefuses(t *testing.T) {
	b := openTaps(t)
	n := attach(t, b, "test-a")
	for _, queues := range []int{0, -1, 257} {
		if link, err := network.Tap(n, queues); err == nil {
			t.Errorf("a tap of %d queues: %+v", queues, link)
		}
	}
	for _, path := range []string{"", "/proc/self/ns/net", bridgePath, "/run/netns/tare-../x"} {
		if link, err := network.Tap(sandbox.Network{Path: path, Addr: n.Addr}, 1); err == nil {
			t.Errorf("a tap for %q: %+v", path, link)
		}
	}
	n.Addr = netip.MustParsePrefix("198.18.200.200/16")
	if link, err := network.Tap(n, 1); err == nil || !strings.Contains(err.Error(), "198.18.200.200") {
		t.Errorf("a tap for an address that nobody has: %+v, %v", link, err)
	}
}

// TestTapErrorsSayWhatToDo has the driver's errors; a real host gives them
// only when it lacks what this test needs.
func TestTapErrorsSayWhatToDo(t *testing.T) {
	for err, want := range map[error]string{
		unix.ENOENT: "modprobe tun", unix.ENODEV: "modprobe tun", unix.EPERM: "run as root", unix.EACCES: "run as root",
		unix.ENOMEM: "cannot allocate memory",
	} {
		if got := network.TunError(err); !errors.Is(got, err) || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// holding starts a process that has the tap's queues, as a machine has, and
// closes ours.
func holding(t *testing.T, link *network.TapLink) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = link.Files
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := link.Close(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestTapEndsWithTheMachine(t *testing.T) {
	b := openTaps(t)
	n := attach(t, b, "test-a")
	link := tap(t, n, 2)
	cmd := holding(t, link)
	if !port(t, link) {
		t.Error("the tap is gone, and another process has it open")
	}
	if _, err := network.Tap(n, 2); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d (sleep)", cmd.Process.Pid)) {
		t.Errorf("a second tap: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if port(t, link) {
		t.Error("the tap outlives the process that had it")
	}
}

// TestDetachTakesTheTapAway has the machine still alive, by all ways that lead there.
func TestDetachTakesTheTapAway(t *testing.T) {
	for name, remove := range map[string]func(b *network.Bridge) error{
		"detach":       func(b *network.Bridge) error { return b.Detach("test-a") },
		"close":        (*network.Bridge).Close,
		"clean":        func(*network.Bridge) error { return network.Remove("tare-test-a") },
		"clean bridge": func(*network.Bridge) error { return network.Remove("tare-bridge") },
	} {
		t.Run(name, func(t *testing.T) {
			b := openTaps(t)
			n := attach(t, b, "test-a")
			link := tap(t, n, 2)
			holding(t, link)
			if err := remove(b); err != nil {
				t.Fatal(err)
			}
			if err := b.Detach("test-a"); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(bridgePath); err == nil && port(t, link) {
				t.Error("the tap is left")
			}
			names, err := network.List()
			if err != nil || slices.Contains(names, "tare-test-a") {
				t.Errorf("left: %v, %v", names, err)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTapRemovedUnderneath: `tare clean` while the machine reads: it gets an
// error and does not wait for ever.
func TestTapRemovedUnderneath(t *testing.T) {
	b := openTaps(t)
	link := tap(t, attach(t, b, "test-a"), 1)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := link.Files[0].Read(make([]byte, 1<<16)); err != nil {
				ended <- err
				return
			}
		}
	}()
	if err := b.Detach("test-a"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, unix.EBADFD) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("a read of a tap that was removed still waits")
	}
	if err := link.Close(); err != nil {
		t.Error(err)
	}
}
