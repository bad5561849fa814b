package network_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/record"
	"tare/sandbox"
)

// TestPath: streams come as they were sent over each path. Those of a tunnel go through it in whole
// packets of its kind, and in no others: what is encrypted is not sent in the clear too. Nothing of it is left when the sandbox goes.
func TestPath(t *testing.T) {
	carries := map[string]string{
		record.PathWire: "", record.PathVXLAN: "udp 4789", record.PathGeneve: "udp 6081", record.PathWireGuard: "udp 51820", record.PathIPsec: "proto 50",
	}
	if len(carries) != len(network.Paths()) {
		t.Fatalf("there are the paths %v", network.Paths())
	}
	for path, kind := range carries {
		t.Run(path, func(t *testing.T) {
			if err := network.CheckLink(sandbox.Link{Path: path}); errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOSYS) {
				t.Skip(err)
			}
			testPath(t, path, kind)
		})
	}
}

func testPath(t *testing.T, path, kind string) {
	b := open(t)
	server, client := attach(t, b, "path-server"), attach(t, b, "path-client")
	if err := b.Path(server, path); err != nil {
		t.Fatal(err)
	}
	const size = 2 << 20
	var kinds map[string]int
	if kind == "" {
		t.Logf("%v a round trip", shortest(t, server, client))
	} else {
		var err error
		kinds, err = network.Seen("path-server", func() { t.Logf("%v a round trip", shortest(t, server, client)) })
		if err != nil {
			t.Error(err)
		}
	}
	t.Logf("%.0f and %.0f MB/s", send(t, server, client, size)/1e6, send(t, client, server, size)/1e6)
	// What the tunnel carried, both ways, at its far end.
	bytes, err := network.Underlay("path-server")
	if kind != "" && (err != nil || bytes < 2*size) {
		t.Errorf("the tunnel carried %d bytes of %d: %v", bytes, 2*size, err)
	}
	if kind == "" && err == nil {
		t.Error("a wire has a tunnel")
	}
	checkKinds(t, kinds, kind)
	if err := b.Path(server, path); err == nil {
		t.Error("a second path of the same sandbox is taken")
	}
	if err := b.Detach("path-server"); err != nil {
		t.Fatal(err)
	}
	if ports, err := network.Ports(); err != nil || len(ports) != 1 {
		t.Errorf("%d ports are left, want the client's: %v, %v", len(ports), ports, err)
	}
	if left, err := network.Sealed(); err != nil || left > 0 {
		t.Errorf("%d states and policies of IPsec are left: %v", left, err)
	}
	// Its name can be used again.
	shortest(t, attach(t, b, "path-server"), client)
}

// checkKinds checks the packets that came to the tunnel's far end in 20 round trips.
func checkKinds(t *testing.T, kinds map[string]int, want string) {
	t.Helper()
	n := 0
	for kind, k := range kinds {
		if kind != want {
			t.Errorf("%d packets of the kind %s, want %s", k, kind, want)
		}
		n += k
	}
	if want != "" && n < 20 {
		t.Errorf("%d packets were seen, want at least 20: %v", n, kinds)
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
