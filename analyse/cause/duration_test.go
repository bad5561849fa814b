package cause

import "testing"

// TestDuration: times have three digits and a unit that fits.
func TestDuration(t *testing.T) {
	for v, want := range map[float64]string{0.013: "13.0 ms", 1.25: "1.25 s", 104e-6: "104 µs", 60.4e-6: "60.4 µs", 0.9999: "1.00 s", 0.00012: "120 µs", 0.5e-6: "0.5 µs", 99.96e-6: "100 µs"} {
		if got := duration(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}
