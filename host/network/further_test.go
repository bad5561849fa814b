package network_test

import (
	"net/netip"
	"strings"
	"testing"

	"tare/sandbox"
)

// TestFurther: a sandbox answers on all of its further addresses, no two sandboxes have one in common, and Detach gives
// them back.
func TestFurther(t *testing.T) {
	b := open(t)
	one, two, three := attach(t, b, "test-one"), attach(t, b, "test-two"), attach(t, b, "test-three")
	further := func(n sandbox.Network, count int) netip.Prefix {
		t.Helper()
		p, err := b.Further(n, count)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, second := further(one, 1000), further(two, 1024)
	if first.Bits() != 22 || second.Bits() != 22 || first.Overlaps(second) {
		t.Errorf("ranges %s and %s", first, second)
	}
	last := first.Addr().As4()
	last[2], last[3] = last[2]+3, 255
	for _, addr := range []netip.Addr{first.Addr(), netip.AddrFrom4(last)} {
		echo(t, sandbox.Network{Path: one.Path, Addr: netip.PrefixFrom(addr, 32)}, three)
	}
	echo(t, one, three) // it still has its own
	for _, n := range []int{1 << 15, 1 << 14} {
		// The last half of the pool has its broadcast address, and the first is taken.
		if p, err := b.Further(three, n); err == nil || !strings.Contains(err.Error(), "use fewer neighbours") {
			t.Errorf("%d addresses: %s, %v", n, p, err)
		}
	}
	if err := b.Detach("test-one"); err != nil {
		t.Fatal(err)
	}
	if again := further(three, 1000); again != first {
		t.Errorf("%s, want %s, which is free", again, first)
	}
}
