package plan

import (
	"math"
	"math/rand/v2"

	"tare/analyse/stat"
	"tare/record"
)

// driftPoints is one machine: sixteen trials of a thing, that drift, once as
// eight A and then eight B, once in blocks. Of the machines that the seed draws
// it is the first on which A A A B B B finds a difference.
func driftPoints(_ int, seed uint64) []point {
	sc := scenery{name: "drift", rho: 0.95, drift: 0.05, noise: 0.02, strata: 1, treats: 1}
	r := rand.New(rand.NewPCG(seed, seedOf(sc.name)))
	for {
		m := sc.start(r, [][]float64{{0}})
		var s score
		e := m.inOrder(&s)[0].e
		if e.Lo <= 1 && 1 <= e.Hi {
			continue
		}
		var out []point
		at := func(place int) float64 { return 100 * (m.value(0, 0, place)/math.Exp(m.level[0]) - 1) }
		draw := func(panel string, who func(place int) string, e stat.Estimate) {
			for i := range 2 * orderly {
				out = append(out, point{panel, "the machine", float64(i + 1), 100 * math.Expm1(m.common[i]), 0})
			}
			for i := range 2 * orderly {
				out = append(out, point{panel, who(i), float64(i + 1), at(i), 0})
			}
			out = append(out, point{panel, "ratio", 0, e.Ratio, 0}, point{panel, "lo", 0, e.Lo, 0}, point{panel, "hi", 0, e.Hi, 0})
		}
		draw("A A A B B B", func(i int) string { return [2]string{"A", "B"}[i/orderly] }, e)
		pairs, who := make([]stat.Pair, orderly), make([]string, 2*orderly)
		for b := range pairs {
			first := r.IntN(2)
			who[2*b], who[2*b+1] = [2]string{"A", "B"}[first], [2]string{"B", "A"}[first]
			pairs[b] = stat.Pair{Base: m.value(0, 0, 2*b+first), Other: m.value(0, 1, 2*b+1-first)}
		}
		draw("in blocks", func(i int) string { return who[i] }, stat.Compare(pairs, 0.95))
		return out
	}
}

// orderPoints is what three ways of measuring are worth as the machine drifts
// more and more slowly: the same drift of 5 %, of a longer and longer memory.
func orderPoints(studies int, seed uint64) []point {
	const cover, called = "intervals that cover the truth", "equal things called different"
	var out []point
	for _, rho := range []float64{0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95} {
		sc := scenery{name: "order", rho: rho, drift: 0.05, noise: 0.02, spread: 0.5, strata: 6, treats: 4}
		got := simulate(&sc, studies, seed+uint64(1000*rho))
		for _, s := range []struct {
			name string
			of   [2]score
		}{{"default rule", got.looks}, {"fixed: 8, in blocks", got.fixed}, {"A A A B B B", got.order}} {
			all := merged(s.of)
			out = append(out, share(cover, s.name, rho, &all.covered), share(called, s.name, rho, &s.of[1].called))
		}
	}
	return out
}

var figureLooks = []int{3, 4, 6, 8, 12, 16}

// whole follows a study of sixteen blocks on a machine of the scenery, on which
// every treatment has the same true effect (a logarithm).
func whole(sc *scenery, r *rand.Rand, effect float64) (*Plan, *machine) {
	st := makeStudy(sc.strata, sc.treats+1)
	st.Seed, st.Stop.Fixed = r.Uint64(), 16
	m := sc.start(r, alike(sc, effect))
	p, _ := m.follow(st)
	return p, m
}

func alike(sc *scenery, effect float64) [][]float64 {
	out := make([][]float64, sc.strata)
	for i := range out {
		for range sc.treats {
			out[i] = append(out[i], effect)
		}
	}
	return out
}

// powerPoints counts slowdowns that are called slower: after so many blocks with
// a margin of 1 %, and by the default rule, whose x is the blocks that it spent.
func powerPoints(studies int, seed uint64) []point {
	var out []point
	for _, noise := range []struct {
		panel string
		sd    float64
	}{{"trials repeat to 1 %", 0.01}, {"trials repeat to 2 %", 0.02}, {"trials repeat to 5 %", 0.05}} {
		for _, slow := range []struct {
			name string
			by   float64
		}{{"2 % slower", 0.02}, {"5 % slower", 0.05}, {"10 % slower", 0.1}} {
			sc := scenery{name: "power", rho: 0.95, drift: 0.02, noise: noise.sd, strata: 6, treats: 4}
			r := rand.New(rand.NewPCG(seed, seedOf(noise.panel+slow.name)))
			byBlocks := make([]rate, len(figureLooks))
			var rule score
			for range studies {
				p, _ := whole(&sc, r, math.Log1p(slow.by))
				for k, n := range figureLooks {
					sums, priors := p.summarise(n)
					fixed, slower := stat.NewRule(0.95, 0, 0.01, nil, n), 0
					for id, s := range sums {
						if v, _ := fixed.Judge(fixed.Estimate(s, priors[id]), record.Lower); v == stat.Slower {
							slower++
						}
					}
					byBlocks[k].add(slower, len(sums))
				}
				st := makeStudy(sc.strata, sc.treats+1)
				st.Seed = r.Uint64()
				sc.start(r, alike(&sc, math.Log1p(slow.by))).play(st, &rule)
			}
			for k, n := range figureLooks {
				out = append(out, share(noise.panel, slow.name, float64(n), &byBlocks[k]))
			}
			out = append(out, share(noise.panel, slow.name+", default rule", rule.trials/rule.cells, &rule.slower))
		}
	}
	return out
}
