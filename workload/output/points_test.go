package output

import (
	"math"
	"slices"
	"testing"
	"time"

	"tare/record"
)

// TestPoints: a series ends with the load, and points that are out of order or cut make no series.
func TestPoints(t *testing.T) {
	p := &Points{T: []float64{0.5, 1, 1.004, 1.5}, V: []float64{4, 3, 2, 1}}
	for end, want := range map[float64]int{0.4: 0, 1: 3, math.Inf(1): 4} {
		s, ok := p.Series("rate", record.PerSecond, end, "end", "client")
		if ok != (want > 0) || !slices.Equal(s.V, p.V[:want]) || len(s.T) != want || want > 0 && s.T[0] != 500*time.Millisecond {
			t.Errorf("up to %g: %+v, %v; want %d points", end, s, ok, want)
		}
		if s.Name != "rate" || s.Unit != record.PerSecond || s.Labels != record.MakeLabels("end", "client", record.LabelResponse, "rate") {
			t.Errorf("%+v", s)
		}
	}
	for _, bad := range []*Points{nil, {}, {T: []float64{1}}, {T: []float64{2, 1}, V: []float64{1, 1}}, {T: []float64{-1}, V: []float64{1}}, {T: []float64{2e6}, V: []float64{1}}} {
		if s, ok := bad.Series("rate", record.PerSecond, math.Inf(1)); ok {
			t.Errorf("%+v makes %+v", bad, s)
		}
	}
}
