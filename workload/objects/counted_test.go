package objects

import "testing"

// TestCounted: one thing has no plural.
func TestCounted(t *testing.T) {
	if a, b := counted(1, "node"), counted(2, "node"); a != "1 node" || b != "2 nodes" {
		t.Errorf("%q, %q", a, b)
	}
}
