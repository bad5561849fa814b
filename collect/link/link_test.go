package link_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"tare/collect"
	"tare/collect/collecttest"
	"tare/collect/link"
	"tare/host/network"
	"tare/host/state/statetest"
	"tare/sandbox"
)

func TestMain(m *testing.M) { os.Exit(collecttest.Main(m, link.New())) }

// bridge is one with two sandboxes attached.
func bridge(t *testing.T) (b *network.Bridge, server, client sandbox.Network) {
	t.Helper()
	statetest.HostLock(t)
	if err := network.Check(); err != nil {
		t.Skip("no bridge on this host: ", err)
	}
	statetest.Unchanged(t)
	b, err := network.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if server, err = b.Attach("link-server"); err != nil {
		t.Fatal(err)
	}
	if client, err = b.Attach("link-client"); err != nil {
		t.Fatal(err)
	}
	return b, server, client
}

func TestContract(t *testing.T) {
	b, server, _ := bridge(t)
	if err := b.Rate(server, 1e6); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]collect.Collector{"here": link.New(), "elsewhere": collecttest.Elsewhere(link.New(), 50*time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			collecttest.Run(t, collecttest.Subject{Collector: c, Scopes: func(*testing.T, int) []sandbox.LocalScope {
				return []sandbox.LocalScope{{Scope: sandbox.Scope{Endpoint: "server"}, Network: server}}
			}})
		})
	}
}

// flood has the client send n datagrams of 1000 bytes; the kernel may drop them at the server.
// Datagrams that wait at the server still count against the sender's socket buffer, which on
// Linux 6.1 holds 92 of them. So each socket sends only a few, and none has to wait.
func flood(t *testing.T, server, client sandbox.Network, n int) {
	t.Helper()
	const each = 50
	err := network.Enter(client.Path, func() error {
		for ; n > 0; n -= each {
			if err := burst(server, min(n, each)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// burst sends n datagrams from a socket of their own.
func burst(server sandbox.Network, n int) error {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(server.Addr.Addr(), 9)))
	if err != nil {
		return err
	}
	for range n {
		// Nobody listens; an ICMP message may say so.
		_, _ = c.Write(make([]byte, 1000))
	}
	return c.Close()
}

// TestFigures: what the client sends, the server receives; a rate is told where it was set,
// and what it holds up waits or is dropped.
func TestFigures(t *testing.T) {
	b, server, client := bridge(t)
	read := collecttest.Figures(t, link.New(), sandbox.LocalScope{Scope: sandbox.Scope{Endpoint: "server"}, Network: server}, sandbox.LocalScope{Scope: sandbox.Scope{Endpoint: "client"}, Network: client})
	// The first finds out where the server is, which takes a moment.
	for begin := time.Now(); read()["link_received{end=server}"] < 1000; time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("nothing comes through")
		}
		flood(t, server, client, 1)
	}
	before := read()
	if _, there := before["link_rate{end=server}"]; there {
		t.Error("a port that nothing holds has a rate")
	}
	const n = 200
	flood(t, server, client, n)
	after := read()
	for _, key := range []string{"link_received{end=server}", "link_sent{end=client}"} {
		if d := after[key] - before[key]; d < n*1000 || d > 2*n*1000 {
			t.Errorf("%s rose by %v, want about %d", key, d, n*1042)
		}
	}
	if d := after["link_received{end=client}"] - before["link_received{end=client}"]; d > n*600 {
		t.Errorf("the client received %v bytes", d)
	}
	if err := b.Rate(server, 10_000); err != nil {
		t.Fatal(err)
	}
	flood(t, server, client, 1000)
	held := read()
	if held["link_rate{end=server}"] != 10_000 {
		t.Errorf("the rate is %v", held["link_rate{end=server}"])
	}
	if held["link_backlog{end=server}"] < 100_000 || held["link_drops{end=server}"]-after["link_drops{end=server}"] < 100 {
		t.Errorf("a flood of 1 MB into 10 kB/s: %v", held)
	}
	if held["link_backlog{end=client}"] != 0 {
		t.Errorf("the client's own port: %v", held)
	}
	// A port that has gone stays at its last figures.
	if err := b.Detach("link-server"); err != nil {
		t.Fatal(err)
	}
	if gone := read(); gone["link_received{end=server}"] < held["link_received{end=server}"] {
		t.Errorf("a port that has gone: %v", gone)
	}
}
