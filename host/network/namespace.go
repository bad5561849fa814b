package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/internal/rootless"
)

const (
	maxName = 200               // a file name has at most 255 bytes
	maxLink = unix.IFNAMSIZ - 1 // 15 characters and the ending zero
)

func nsPath(name string) string { return filepath.Join(Dir(), Prefix+"-"+name) }

// linkName is the name of the bridge's end of a sandbox's veth pair, or of its tap: the
// sandbox's name if it fits, else a hash of it.
func linkName(name string) string {
	if n := Prefix + "-" + name; len(n) <= maxLink {
		return n
	}
	sum := sha256.Sum256([]byte(name))
	// It has no '-', so it differs from every short name.
	return (Prefix + hex.EncodeToString(sum[:]))[:maxLink]
}

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("network: a name must have 1 to %d characters, not %d", maxName, len(name))
	}
	if name == bridgeName {
		return fmt.Errorf("network: the name %q is reserved for the bridge", name)
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("_.-", rune(c))) {
			return fmt.Errorf("network: name %q may contain letters, digits and, after the first character, . _ -", name)
		}
	}
	return nil
}

// onThread runs f on its own thread, which ends with f. So no other goroutine ever runs in
// the namespaces that f enters. (A thread ends with a goroutine that returns locked to it;
// runtime.LockOSThread.)
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// Go parks the process's first thread instead of ending it, so the namespace would
			// live on in it: /proc/PID/ns/net is that thread's. While this goroutine is locked to
			// it, another goroutine gets another thread.
			defer runtime.UnlockOSThread()
			done <- onThread(f)
			return
		}
		done <- f()
	}()
	return <-done
}

// Create makes a network namespace and binds it to a new file, as
// `ip netns add` does.
func Create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the mode that ip netns gives it
		return fmt.Errorf("network: %w; run as root", err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o400) //nolint:gosec // the name was checked
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("network: %s exists already: %w; a killed run leaves such names, and tare clean removes them", path, err)
	}
	if err != nil {
		return fmt.Errorf("network: %w; run as root", err)
	}
	_ = f.Close()
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network: cannot make a network namespace: %w; run as root (CAP_SYS_ADMIN)", err)
		}
		if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("network: cannot bind a network namespace to %s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

// within runs f with a netlink socket in the namespace behind path.
func within(path string, f func(*netlink.Handle) error) error {
	return Enter(path, func() error { return own(f) })
}

// Enter runs f on a thread that is in the network namespace behind path. What f
// opens stays in that namespace; goroutines that f starts are not in it.
func Enter(path string, f func() error) error {
	ns, err := os.Open(path) //nolint:gosec // reading the file gives nothing; setns checks that it is a namespace
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	defer func() { _ = ns.Close() }()
	return onThread(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network: cannot enter %s: %w; run as root", path, err)
		}
		return f()
	})
}

// List lists tare's network namespaces, the bridge's last: all files tare-* in /run/netns.
func List() ([]string, error) {
	entries, err := os.ReadDir(Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	var out []string
	bridge := false
	for _, e := range entries {
		switch n := e.Name(); {
		case n == Prefix+"-"+bridgeName:
			bridge = true
		case strings.HasPrefix(n, Prefix+"-"):
			out = append(out, n)
		}
	}
	if bridge {
		out = append(out, Prefix+"-"+bridgeName)
	}
	return out, nil
}

// Remove removes a namespace by the name that List gives: first tare's links in it, then
// its mounts, then its file. It is idempotent.
func Remove(name string) error {
	if !strings.HasPrefix(name, Prefix+"-") || strings.ContainsRune(name, '/') {
		return fmt.Errorf("network: %q is not the name of a namespace of tare", name)
	}
	path := filepath.Join(Dir(), name)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if host, err := isHost(path); err == nil && !host {
		// Ignore an error: the file may no longer be a namespace.
		_ = within(path, dropLinks)
	}
	// It may be bound more than once; EINVAL means that no mount is left.
	for range 16 {
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); errors.Is(err, unix.EINVAL) {
			break
		} else if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("network: cannot unmount %s: %w; run as root", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("network: %w; run as root", err)
	}
	return nil
}

// isHost reports whether the file is the namespace of this process or of process 1:
// somebody may have bound it to a name of tare's, and its links must stay.
func isHost(path string) (bool, error) {
	var file unix.Stat_t
	if err := unix.Stat(path, &file); err != nil {
		return false, err
	}
	first := "/proc/1/ns/net"
	if rootless.Is() {
		first = "/proc/self/ns/net" // the other cannot be read, and its links not be removed
	}
	for _, p := range []string{"/proc/self/ns/net", first} {
		var own unix.Stat_t
		if err := unix.Stat(p, &own); err != nil {
			return false, err
		}
		if own.Dev == file.Dev && own.Ino == file.Ino {
			return true, nil
		}
	}
	return false, nil
}

// dropLinks removes the veth pairs, taps and bridges of a namespace now; the kernel would
// do so later, when it destroys the namespace.
func dropLinks(h *netlink.Handle) error {
	links, err := h.LinkList()
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	var errs []error
	for _, l := range links {
		if t := l.Type(); t == "veth" || t == "tuntap" || t == "bridge" {
			errs = append(errs, h.LinkDel(l))
		}
	}
	return errors.Join(errs...)
}

// tried runs f beside a bridge in a temporary, unnamed namespace.
func tried(f func(*netlink.Handle) error) error {
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network: cannot make a network namespace: %w; run as root (CAP_SYS_ADMIN)", err)
		}
		return own(func(h *netlink.Handle) error {
			if err := addBridge(h, bridgeLink, bridgeMAC()); err != nil {
				return err
			}
			return f(h)
		})
	})
}

// Check tries in a temporary, unnamed namespace whether this host can make what a Bridge
// needs.
func Check() error {
	return tried(func(h *netlink.Handle) error {
		self, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return fmt.Errorf("network: %w", err)
		}
		defer func() { _ = self.Close() }()
		if err := addVeth(h, Prefix+"1", bridgeLink, int(self.Fd())); err != nil {
			return err
		}
		_, err = configure(h, netip.MustParsePrefix("198.18.0.2/16"))
		return err
	})
}
