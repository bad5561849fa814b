package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/record"
)

// scene is a simulated study: strata whose treatments share a baseline, stopped
// as plan stops them: all looks at the end of a pass, a stratum when each of its
// treatments may stop.
type scene struct {
	name               string
	strata, treatments int
	noise              func(*rand.Rand) float64 // log standard deviation of a stratum
	effect             float64                  // log of the true ratio
	looks              []int
	fixed              int
}

type tally struct{ comparisons, different, covered, blocks int }

func (sc scene) play(r *rand.Rand, rule Rule, t *tally) {
	type stratum struct {
		sd    float64
		pairs [][]Pair
		done  bool
	}
	ss := make([]stratum, sc.strata)
	for i := range ss {
		ss[i] = stratum{sd: sc.noise(r), pairs: make([][]Pair, sc.treatments)}
	}
	last := sc.fixed
	if last == 0 {
		last = sc.looks[len(sc.looks)-1]
	}
	next := 0
	for block := 1; block <= last; block++ {
		for i := range ss {
			if ss[i].done {
				continue
			}
			drift := r.NormFloat64() * 0.3 // shared by the block: pairs must take it off
			base := math.Exp(drift + ss[i].sd*r.NormFloat64())
			for k := range ss[i].pairs {
				other := math.Exp(drift + sc.effect + ss[i].sd*r.NormFloat64())
				ss[i].pairs[k] = append(ss[i].pairs[k], Pair{base, other})
			}
		}
		end := block == last
		if !end && (sc.fixed > 0 || block != sc.looks[next]) {
			continue
		}
		next++
		var s2, df []float64
		sums := make([][]Summary, len(ss))
		for i := range ss {
			for _, p := range ss[i].pairs {
				s := Summarise(p)
				sums[i] = append(sums[i], s)
				s2, df = append(s2, s.Var), append(df, float64(s.N-1))
			}
		}
		prior := Moderate(s2, df)
		for i := range ss {
			stop := true
			for _, s := range sums[i] {
				_, _, st := rule.Judge(rule.Estimate(s, prior), record.Lower)
				stop = stop && st
			}
			ss[i].done = ss[i].done || stop
			if !end {
				continue
			}
			t.blocks += sums[i][0].N
			for _, s := range sums[i] {
				e := rule.Estimate(s, prior)
				v, _, _ := rule.Judge(e, record.Lower)
				t.comparisons++
				if v == Faster || v == Slower {
					t.different++
				}
				if math.Log(e.Lo) <= sc.effect && sc.effect <= math.Log(e.Hi) {
					t.covered++
				}
			}
		}
	}
}

// TestSimulatedStudies holds the promises of Rule: over all looks, A against A is
// called different in at most about one comparison of twenty, and the interval
// printed in the end covers the truth in at least 93 of 100.
func TestSimulatedStudies(t *testing.T) {
	looks := []int{3, 4, 6, 8, 12, 16}
	same := func(sd float64) func(*rand.Rand) float64 { return func(*rand.Rand) float64 { return sd } }
	// Real studies mix system calls that repeat to 0.5 % with storage that
	// scatters by 20 %.
	mixed := func(r *rand.Rand) float64 { return math.Exp(math.Log(0.04) + r.NormFloat64()) }
	for _, sc := range []scene{
		{"quiet", 6, 4, same(0.01), 0, looks, 0},
		{"noisy", 6, 4, same(0.10), 0, looks, 0},
		{"mixed", 6, 4, mixed, 0, looks, 0},
		{"mixed, few", 3, 2, mixed, 0, looks, 0},
		{"one stratum", 1, 4, mixed, 0, looks, 0},
		{"alone", 1, 1, mixed, 0, looks, 0},
		{"mixed, 4 % slower", 6, 4, mixed, 0.04, looks, 0},
		{"mixed, 20 % slower", 6, 4, mixed, 0.18, looks, 0},
		{"mixed, twice", 6, 4, mixed, math.Log(2), looks, 0},
		// One treatment a stratum: no neighbour holds a stratum back from
		// stopping at a chance result, which makes these the hardest.
		{"mixed, 6 pairs", 6, 1, mixed, 0, looks, 0},
		{"mixed, 12 pairs", 12, 1, mixed, 0, looks, 0},
		{"mixed, fixed 5", 6, 4, mixed, 0, nil, 5},
		{"mixed, looks to 6", 6, 4, mixed, 0, []int{3, 4, 6}, 0},
	} {
		t.Run(sc.name, func(t *testing.T) {
			const seed = 20261120
			r := rand.New(rand.NewPCG(seed, 1))
			var c tally
			rule := NewRule(0.95, 0.05, 0.03, sc.looks, sc.fixed)
			for c.comparisons < 4000 {
				sc.play(r, rule, &c)
			}
			n := float64(c.comparisons)
			wrong, cover := float64(c.different)/n, float64(c.covered)/n
			t.Logf("seed %d: %d comparisons, %.2f %% called different, %.2f %% covered, %.1f blocks each", seed,
				c.comparisons, 100*wrong, 100*cover, float64(c.blocks)*float64(sc.treatments)/n)
			if sc.effect == 0 && wrong > 0.055 {
				t.Errorf("A against A called different in %.2f %%, want <= 5 %%", 100*wrong)
			}
			if cover < 0.93 {
				t.Errorf("intervals cover the truth in %.2f %%, want >= 93 %%", 100*cover)
			}
		})
	}
}
