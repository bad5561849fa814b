package network_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/host/state/statetest"
	"tare/sandbox"
)

func open(t testing.TB) *network.Bridge {
	t.Helper()
	statetest.HostLock(t)
	if err := network.Check(); err != nil {
		t.Skip("no bridge on this host: ", err)
	}
	// Twice: the first replaces and removes the bridge of a run that was killed.
	b, err := network.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	statetest.Unchanged(t)
	if b, err = network.Open(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func attach(t *testing.T, b *network.Bridge, name string) sandbox.Network {
	t.Helper()
	begin := time.Now()
	n, err := b.Attach(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("attached %s at %s in %v", name, n.Addr, time.Since(begin))
	return n
}

// echo lets one namespace talk to the other over TCP.
func echo(t *testing.T, server, client sandbox.Network) {
	t.Helper()
	ln := listen(t, server)
	go func() {
		if c, err := ln.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	c := dial(t, client, ln)
	_ = c.SetDeadline(time.Now().Add(patience))
	for range 100 {
		buf := make([]byte, len("hello"))
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "hello" {
			t.Fatalf("echoed %q, %v", buf, err)
		}
	}
	_ = c.Close()
	_ = ln.Close()
}

// patience is how long a test waits for something that must come. A busy host takes seconds.
const patience = 30 * time.Second

func TestTwoNamespacesTalk(t *testing.T) {
	b := open(t)
	server, client := attach(t, b, "test-server"), attach(t, b, "test-client-with-a-name-that-fits-no-link")
	if server.Addr == client.Addr || server.Addr.Bits() != 16 || !netip.MustParsePrefix("198.18.0.0/16").Contains(client.Addr.Addr()) {
		t.Errorf("addresses %s and %s", server.Addr, client.Addr)
	}
	begin := time.Now()
	echo(t, server, client)
	echo(t, client, server)
	t.Logf("two echoes in %v", time.Since(begin))
	// In itself a sandbox reaches its own address and lo.
	echo(t, server, server)

	if links, err := network.HostLinks(); err != nil || len(links) > 0 {
		t.Errorf("the host sees %v, %v", links, err)
	}
	if ip, err := exec.LookPath("ip"); err == nil {
		out, err := exec.Command(ip, "netns", "exec", "tare-test-server", ip, "-o", "addr").CombinedOutput()
		if err != nil || !strings.Contains(string(out), server.Addr.String()) || strings.Contains(string(out), "fe80:") {
			t.Errorf("ip netns exec: %v: %s", err, out)
		}
	}
}

func TestAttachRefuses(t *testing.T) {
	b := open(t)
	attach(t, b, "test-a")
	for _, name := range []string{"", "bridge", "test-a", "../x", "a/b", "a b", ".a", strings.Repeat("x", 201)} {
		if n, err := b.Attach(name); err == nil {
			t.Errorf("Attach(%q) = %v", name, n)
		}
	}
	if _, err := network.Open(context.Background()); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("a second Open: %v", err)
	}
}

func TestDetachAndClose(t *testing.T) {
	b := open(t)
	n := attach(t, b, "test-a")
	for range 2 {
		if err := b.Detach("test-a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(n.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s after Detach: %v", n.Path, err)
	}
	again := attach(t, b, "test-a")
	if again.Addr == n.Addr {
		t.Errorf("%s was given out again at once", n.Addr)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Attach("test-b"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Attach after Close: %v", err)
	}
	names, err := network.List()
	ours := func(name string) bool { return name == "tare-bridge" || strings.HasPrefix(name, "tare-test-") }
	if err != nil || slices.ContainsFunc(names, ours) { // others' may be left by a run that was killed
		t.Errorf("after Close: %v, %v", names, err)
	}
}

func TestProcessInsideDoesNotHinderClose(t *testing.T) {
	b := open(t)
	n := attach(t, b, "test-a")
	cmd := exec.Command("sleep", "60")
	if err := network.Enter(n.Path, cmd.Start); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestConcurrentAttach(t *testing.T) {
	b := open(t)
	var wg sync.WaitGroup
	addrs := make([]netip.Prefix, 12)
	begin := time.Now()
	for i := range addrs {
		wg.Go(func() {
			n, err := b.Attach("test-many-" + string(rune('a'+i)))
			if err != nil {
				t.Error(err)
			}
			addrs[i] = n.Addr
		})
	}
	wg.Wait()
	t.Logf("%d attached in %v", len(addrs), time.Since(begin))
	seen := map[netip.Prefix]bool{}
	for _, a := range addrs {
		if seen[a] {
			t.Errorf("%s twice", a)
		}
		seen[a] = true
	}
	begin = time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("closed in %v", time.Since(begin))
}

// TestNamespaceDoesNotLeak looks at the threads of this process: each must be
// in the namespace that the test began in.
func TestNamespaceDoesNotLeak(t *testing.T) {
	b := open(t)
	attach(t, b, "test-a")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	// A thread that is ending is still listed for a moment.
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		wrong := ""
		tasks, _ := filepath.Glob("/proc/self/task/*/ns/net")
		for _, task := range tasks {
			if got, err := os.Readlink(task); err == nil && got != want {
				wrong = task + " is in " + got
			}
		}
		if wrong == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s, want %s", wrong, want)
		}
	}
}

func TestLeftoverIsReplaced(t *testing.T) {
	b := open(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// What a killed run leaves: a file, here not even mounted.
	path := filepath.Join(network.Dir(), "tare-bridge")
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	b, err := network.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRemoveRefusesOthers(t *testing.T) {
	for _, name := range []string{"other", "tare", "tare-/../x", ""} {
		if err := network.Remove(name); err == nil {
			t.Errorf("Remove(%q) was done", name)
		}
	}
	for _, name := range []string{"lo", "eth0"} {
		if err := network.RemoveHostLink(name); err == nil {
			t.Errorf("RemoveHostLink(%q) was done", name)
		}
	}
}
