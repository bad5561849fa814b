package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBetween: the interval of the share between groups holds the truth as often as it says, for
// groups of one size and of several.
func TestBetween(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	const runs = 2000
	for _, c := range []struct {
		share float64
		sizes []int
	}{
		{0, []int{6, 6, 6, 6}},
		{0.5, []int{4, 4, 4, 4, 4, 4}},
		{0.5, []int{3, 4, 5, 4, 5, 3}},
		{0.8, []int{5, 5, 5}},
	} {
		covered, mean := 0, 0.0
		for range runs {
			var groups [][]float64
			for _, n := range c.sizes {
				g, at := make([]float64, n), math.Sqrt(c.share)*r.NormFloat64()
				for i := range g {
					g[i] = at + math.Sqrt(1-c.share)*r.NormFloat64()
				}
				groups = append(groups, g)
			}
			s, ok := Between(groups, 0.95)
			if !ok || s.Lo > s.Share || s.Hi < s.Share {
				t.Fatalf("%+v, %v", s, ok)
			}
			if s.Lo <= c.share && c.share <= s.Hi {
				covered++
			}
			mean += s.Share / runs
		}
		t.Logf("%+v: %d covered, mean %.2f", c, covered, mean)
		if covered < 0.935*runs || mean < c.share-0.2 || mean > c.share+0.2 {
			t.Errorf("%+v: %d of %d intervals hold the share, whose mean is %.2f", c, covered, runs, mean)
		}
	}
}

// TestBetweenBounds: constants and too few groups.
func TestBetweenBounds(t *testing.T) {
	if s, ok := Between([][]float64{{1, 1, 1}, {2, 2}, {3, 3}}, 0.95); !ok || s != (Share{1, 1, 1}) {
		t.Errorf("constants apart: %+v, %v", s, ok)
	}
	if s, ok := Between([][]float64{{1, 2}, {1, 2}, {}, {1, 2}}, 0.95); !ok || s.Share != 0 || s.Lo != 0 {
		t.Errorf("equal groups: %+v, %v", s, ok)
	}
	for _, g := range [][][]float64{nil, {{1, 2, 3}, {4, 5, 7}}, {{1}, {2}, {3}}, {{1, 1}, {1, 1}, {1, 1}}} {
		if s, ok := Between(g, 0.95); ok {
			t.Errorf("%v: %+v", g, s)
		}
	}
}
