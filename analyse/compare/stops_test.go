package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/analyse/stat"
)

// TestSimulatedStops holds the promise for two results that stopped by precision where trials repeat to 1 to
// 3 %, so that some rows stop early by chance. Each row is by itself, with no neighbour to learn from.
// Without borrowed, 7.7 % of the intervals at a scatter of 1.5 % missed the truth, and 6.6 % at 2 %.
func TestSimulatedStops(t *testing.T) {
	const rows = 6000
	rule := stat.NewRule(0.95, 0.015, 0.03, []int{3, 4, 6, 8, 12, 16}, 0)
	c := comparing{confidence: 0.95}
	for _, scatter := range []float64{0.01, 0.015, 0.02, 0.03} {
		r := rand.New(rand.NewPCG(20261126, math.Float64bits(scatter)))
		missed, found, best, short := 0, 0, 0.0, 0
		for i := range rows {
			change := math.Log1p(0.05) * float64(i%2) // every second row changes by 5 %
			a, b := stopped(r, &rule, 0, scatter), stopped(r, &rule, change, scatter)
			short += count(a.short || b.short)
			x := c.change(a, b)
			missed += count(change < math.Log(x.Lo) || change > math.Log(x.Hi))
			if change > 0 {
				found += count(x.Lo > 1)
				se := scatter * math.Sqrt(2/float64(a.n)+2/float64(b.n))
				best += 0.5 * math.Erfc((1.96-change/se)/math.Sqrt2)
			}
		}
		share := float64(missed) / rows
		t.Logf("scatter of %.3g %%: %.2f %% missed, %.1f %% found, at best %.1f; %.0f %% with a side that stopped early", 100*scatter, 100*share,
			200*float64(found)/rows, 200*best/rows, 100*float64(short)/rows)
		if chance := 3 * math.Sqrt(0.05*0.95/rows); share > 0.05+chance {
			t.Errorf("scatter of %.3g %%: %.2f %% of the intervals miss the truth, want 5 (chance reaches %.2f)", 100*scatter, 100*share, 5+100*chance)
		}
		if float64(found) < 0.95*best {
			t.Errorf("scatter of %.3g %%: %d changes are found, and %.0f by who knows the scatter", 100*scatter, found, best)
		}
	}
}

// stopped measures a row until it is precise, as plan does.
func stopped(r *rand.Rand, rule *stat.Rule, effect, scatter float64) part {
	var pairs []stat.Pair
	for _, look := range rule.Looks {
		for len(pairs) < look {
			pairs = append(pairs, stat.Pair{Base: math.Exp(scatter * r.NormFloat64()), Other: math.Exp(effect + scatter*r.NormFloat64())})
		}
		if rule.Enough(stat.Summarise(pairs), stat.Prior{}) {
			break
		}
	}
	s := stat.Summarise(pairs)
	e := rule.Estimate(s, stat.Prior{})
	return part{mean: s.Mean, se: e.SE, df: e.DF, n: e.N, short: rule.Short(e)}
}
