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

// TestTwoLevels: both components come out right on average, and the interval of what turns make up
// holds the truth as often as it says.
func TestTwoLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const groups, size, draws = 6, 3, 4000
	between, within := 0.5, 1.0
	truth := within / (size*between + within)
	var sumB, sumW float64
	hits := 0
	for range draws {
		g := make([][]float64, groups)
		for i := range g {
			m := math.Sqrt(between) * r.NormFloat64()
			for range size {
				g[i] = append(g[i], m+math.Sqrt(within)*r.NormFloat64())
			}
		}
		l, ok := TwoLevels(g, 0.8)
		if !ok {
			t.Fatal("nothing is said")
		}
		sumB, sumW = sumB+l.Between/draws, sumW+l.Within/draws
		if l.Part.Lo <= truth && truth <= l.Part.Hi {
			hits++
		}
	}
	// A negative component counts as none, so the mean of between is a little high.
	if math.Abs(sumW-within) > 0.03 || sumB < between-0.03 || sumB > between+0.1 {
		t.Errorf("components %.3f and %.3f, want %g and %g", sumB, sumW, between, within)
	}
	if f := float64(hits) / draws; math.Abs(f-0.8) > 0.02 {
		t.Errorf("the interval holds the truth in %.3f", f)
	}
	if _, ok := TwoLevels([][]float64{{1, 2}, {3, 4}}, 0.8); ok {
		t.Error("two groups are enough")
	}
	if l, ok := TwoLevels([][]float64{{1, 1}, {2, 2}, {3, 3}}, 0.8); !ok || l.Within != 0 || l.Between != 1 || l.Part.Hi != 0 {
		t.Errorf("groups without scatter: %+v, %v", l, ok)
	}
}
