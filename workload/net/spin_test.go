package netload

import (
	"testing"
	"time"
)

// All connections together spin at most a quarter of a core, however many there
// are and however long a wait the user gives.
func TestSpinIsBounded(t *testing.T) {
	for _, c := range []struct {
		rate float64
		spin time.Duration
		want time.Duration
	}{
		{1000, 50 * time.Microsecond, 50 * time.Microsecond},
		{5000, 50 * time.Microsecond, 50 * time.Microsecond},
		{50000, 50 * time.Microsecond, 5 * time.Microsecond},
		{1000, 0, 0},
		{1000, time.Millisecond, 250 * time.Microsecond},
	} {
		cfg := &config{Mode: "rr", Protocol: "tcp", Connections: 4, Rate: c.rate, Spin: c.spin.Seconds()}
		b := &bench{cfg: cfg}
		for i := range cfg.Connections {
			b.workers = append(b.workers, &worker{cfg: cfg, index: i})
		}
		b.plan(0, 0)
		for _, w := range b.workers {
			if got := time.Duration(w.spin); got.Round(time.Nanosecond) != c.want {
				t.Errorf("%g/s with spin %v: a connection spins %v, want %v", c.rate, c.spin, got, c.want)
			}
		}
		if share := c.rate * float64(b.workers[0].spin) / 1e9; share > 0.25+1e-9 {
			t.Errorf("%g/s with spin %v: %.2f of a core", c.rate, c.spin, share)
		}
	}
}
