package merit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tare/record"
)

// TestCoverage simulates studies whose truth is known. Blocks vary by 5 %, levels within a
// block by 3 %. docs/merit.md has the figures of more runs.
func TestCoverage(t *testing.T) {
	figures := func(truth []float64) ([]Figure, []float64) {
		f := []Figure{
			{Of: best},
			{Least: 1, Of: func(v []float64) float64 { return Gain(v, 0, record.Higher) + 1 }},
			{Level: true, Of: func(v []float64) float64 { return float64(Fewest(v, 0.9, record.Higher)) }},
		}
		var want []float64
		for _, x := range f {
			want = append(want, x.Of(truth))
		}
		return f, want
	}
	const runs = 120
	for name, truth := range map[string][]float64{
		"flat":       {1, 1, 1, 1, 1, 1},
		"saturating": {1, 1.4, 2.1, 2.4, 2.6, 2.6},
		"peaked":     {1, 2, 4, 3, 2, 1},
	} {
		f, want := figures(truth)
		for _, n := range []int{4, 10} {
			r := rand.New(rand.NewPCG(1, 2))
			held, wrong := make([]int, len(f)), 0
			for run := range runs {
				for i, e := range Compute(simulated(r, fmt.Sprint(run), truth, n), 0.95, f...) {
					if e.Lo-1e-9 <= want[i] && want[i] <= e.Hi+1e-9 {
						held[i]++
					} else if f[i].Level && e.Lo == e.Hi {
						wrong++
					}
				}
			}
			for i, what := range []string{"best", "gain", "fewest"} {
				if held[i] < runs*86/100 {
					t.Errorf("%s, %d blocks: the interval of %s has the truth in %d of %d", name, n, what, held[i], runs)
				}
			}
			if wrong > runs*3/100 {
				t.Errorf("%s, %d blocks: %d of %d are decided for a wrong level", name, n, wrong, runs)
			}
			t.Logf("%s, %d blocks: %v of %d, %d decided wrongly", name, n, held, runs, wrong)
		}
	}
}

func simulated(r *rand.Rand, name string, truth []float64, blocks int) []Level {
	levels := make([]Level, len(truth))
	for i := range levels {
		levels[i] = Level{Stratum: name, Values: make(map[int]float64)}
	}
	for b := range blocks {
		common := 0.05 * r.NormFloat64()
		for i := range levels {
			levels[i].Values[b] = truth[i] * math.Exp(common+0.03*r.NormFloat64())
		}
	}
	return levels
}
