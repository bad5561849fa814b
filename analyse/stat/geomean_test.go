package stat

import "testing"

// TestGeoMeanOfEqualValues: the mean of one block is that block's value, to the last digit.
func TestGeoMeanOfEqualValues(t *testing.T) {
	for _, v := range []float64{1e8, 154.3, 3, 1e-9, 5e-324, 1.7976931348623157e308} {
		for _, list := range [][]float64{{v}, {v, v, v}} {
			if got := GeoMean(list); got != v {
				t.Errorf("GeoMean(%v) = %v", list, got)
			}
		}
		if s := Summarise([]Pair{{Base: v, Other: v}}); s.Base != v || s.Value != v {
			t.Errorf("of one pair of %v: %v and %v", v, s.Base, s.Value)
		}
	}
}
