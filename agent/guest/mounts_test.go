package guest

import "testing"

// TestTmpSize: half of the memory, but a small machine keeps what it needs itself.
func TestTmpSize(t *testing.T) {
	for memory, want := range map[uint64]uint64{
		0: 16 << 20, 180 << 20: 16 << 20, 230 << 20: 38 << 20, 384 << 20: 192 << 20, 2 << 30: 1 << 30,
	} {
		if got := tmpSize(memory); got != want {
			t.Errorf("of %d MiB: %d MiB, want %d", memory>>20, got>>20, want>>20)
		}
	}
}
