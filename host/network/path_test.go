package network_test

import (
	"testing"
	"time"

	"tare/host/network"
	"tare/record"
)

// TestPath: streams come as they were sent over each path, those of a tunnel go through it in whole
// packets, and nothing of it is left when the sandbox goes.
func TestPath(t *testing.T) {
	for path, tunnelled := range map[string]bool{record.PathWire: false, record.PathVXLAN: true} {
		t.Run(path, func(t *testing.T) {
			b := open(t)
			server, client := attach(t, b, "path-server"), attach(t, b, "path-client")
			if err := b.Path(server, path); err != nil {
				t.Fatal(err)
			}
			const size = 8 << 20
			t.Logf("%v a round trip", shortest(t, server, client))
			t.Logf("%.0f and %.0f MB/s", send(t, server, client, size)/1e6, send(t, client, server, size)/1e6)
			// What the tunnel carried, both ways, at its far end.
			bytes, err := network.Underlay("path-server")
			if tunnelled && (err != nil || bytes < 2*size) {
				t.Errorf("the tunnel carried %d bytes of %d: %v", bytes, 2*size, err)
			}
			if !tunnelled && err == nil {
				t.Error("a wire has a tunnel")
			}
			if err := b.Path(server, path); err == nil {
				t.Error("a second path of the same sandbox is taken")
			}
			if err := b.Detach("path-server"); err != nil {
				t.Fatal(err)
			}
			if ports, err := network.Ports(); err != nil || len(ports) != 1 {
				t.Errorf("%d ports are left, want the client's: %v, %v", len(ports), ports, err)
			}
			// Its name can be used again.
			shortest(t, attach(t, b, "path-server"), client)
		})
	}
}

// TestPathAndDelay: a tunnel to a distant node. Close removes both.
func TestPathAndDelay(t *testing.T) {
	const delay = 5 * time.Millisecond
	b := open(t)
	server, client := attach(t, b, "far-server"), attach(t, b, "far-client")
	if err := b.Delay(server, delay); err != nil {
		t.Fatal(err)
	}
	if err := b.Path(server, record.PathVXLAN); err != nil {
		t.Fatal(err)
	}
	if got := shortest(t, server, client); got < 2*delay {
		t.Errorf("a round trip took %v, less than two delays of %v", got, delay)
	}
	if bytes, err := network.Underlay("far-server"); err != nil || bytes == 0 {
		t.Errorf("the tunnel carried %d bytes: %v", bytes, err)
	}
	if err := b.Path(client, "pigeon"); err == nil {
		t.Error("a path that there is not is taken")
	}
}
