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

// looksPoints counts how many A/A comparisons have been called different at any
// look so far, when each look has its own 95 % and when all share it.
func looksPoints(studies int, seed uint64) []point {
	sc := scenery{name: "looks", noise: 0.02, strata: 12, treats: 1}
	r := rand.New(rand.NewPCG(seed, seedOf(sc.name)))
	rules := []struct {
		name string
		rule stat.Rule
	}{
		{"95 % at each look", stat.NewRule(0.95, 0, 0, nil, 16)},
		{"95 % over all looks", stat.NewRule(0.95, 0, 0, figureLooks, 0)},
	}
	rates := make([][]rate, len(rules))
	for i := range rates {
		rates[i] = make([]rate, len(figureLooks))
	}
	for range studies {
		p, _ := whole(&sc, r, 0)
		called := make([]map[int]bool, len(rules))
		for k, look := range figureLooks {
			sums, prior := p.summarise(look)
			for i := range rules {
				if called[i] == nil {
					called[i] = make(map[int]bool)
				}
				for id, s := range sums {
					if e := rules[i].rule.Estimate(s, prior); e.Lo > 1 || e.Hi < 1 {
						called[i][id] = true
					}
				}
				rates[i][k].add(len(called[i]), len(sums))
			}
		}
	}
	var out []point
	for i := range rules {
		for k, look := range figureLooks {
			out = append(out, share("", rules[i].name, float64(look), &rates[i][k]))
		}
	}
	return out
}

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

// moderatedPoints compares intervals at a plain 95 %: of each comparison by
// itself, of those that learn from the 23 others, and of one who is told the
// true scatter.
func moderatedPoints(studies int, seed uint64) []point {
	const width, cover = "half-width of the interval", "intervals that cover the truth"
	sc := scenery{name: "moderated", noise: 0.02, spread: 0.25, strata: 6, treats: 4}
	r := rand.New(rand.NewPCG(seed, seedOf(sc.name)))
	names := []string{"by itself", "moderated", "scatter known"}
	type mean struct{ sum, squares, n float64 }
	widths, covers := map[string]*[6]mean{}, map[string]*[6]rate{}
	for _, n := range names {
		widths[n], covers[n] = new([6]mean), new([6]rate)
	}
	for range studies {
		p, m := whole(&sc, r, 0)
		for k, n := range figureLooks {
			sums, prior := p.summarise(n)
			for _, name := range names {
				w, hits := 0.0, 0
				for id, s := range sums {
					pr := prior
					switch name {
					case "by itself":
						pr = stat.Prior{}
					case "scatter known":
						sd := m.sd[p.cells[id].stratum]
						pr = stat.Prior{DF: math.Inf(1), Var: 2 * sd * sd, Cap: math.Inf(1)}
					}
					e := s.Estimate(pr, 0.95)
					w += math.Log(e.HalfWidth()) / float64(len(sums))
					if e.Lo <= 1 && 1 <= e.Hi {
						hits++
					}
				}
				x := &widths[name][k]
				x.sum, x.squares, x.n = x.sum+w, x.squares+w*w, x.n+1
				covers[name][k].add(hits, len(sums))
			}
		}
	}
	var out []point
	for _, name := range names {
		for k, n := range figureLooks {
			w := widths[name][k]
			m := w.sum / w.n
			se := math.Sqrt((w.squares/w.n - m*m) / w.n)
			out = append(out, point{width, name, float64(n), 100 * math.Exp(m), 100 * math.Exp(m) * se},
				share(cover, name, float64(n), &covers[name][k]))
		}
	}
	return out
}

// discoveryPoints counts A/A studies in which anything is called different, as
// studies have more comparisons.
func discoveryPoints(studies int, seed uint64) []point {
	names := []string{"any verdict", "BH, plain p", "BH, p with looks"}
	var out []point
	for _, strata := range []int{1, 2, 4, 8, 16, 32} {
		c, _ := discoveries(studies, seed, strata, 0)
		for i := range c {
			out = append(out, share("", names[i], float64(strata), &c[i]))
		}
	}
	return out
}

// discoveries counts the A/A studies of so many strata, by looks or of so many
// blocks, that have a verdict faster or slower; a discovery by p-values without
// allowance for looks; one with it. And how many comparisons are called different.
func discoveries(studies int, seed uint64, strata, fixed int) (c [3]rate, called rate) {
	sc := scenery{name: "discoveries", noise: 0.02, spread: 0.5, strata: strata, treats: 1}
	r := rand.New(rand.NewPCG(seed, seedOf(sc.name)+uint64(strata)))
	for range studies {
		st := makeStudy(strata, 2)
		st.Seed, st.Stop.Fixed = r.Uint64(), fixed
		p, _ := sc.start(r, alike(&sc, 0)).follow(st)
		sums, prior := p.summarise(p.last)
		var plain, looks []float64
		var found [3]int
		different := 0
		for i := range p.strata {
			e := p.rule.Estimate(sums[p.strata[i].cells[1]], prior)
			if v, _, _ := p.rule.Judge(e, record.Lower); v == stat.Slower || v == stat.Faster {
				found[0] = 1
				different++
			}
			plain, looks = append(plain, e.P()), append(looks, p.rule.P(e))
		}
		for i, p := range [][]float64{plain, looks} {
			for _, q := range stat.BenjaminiHochberg(p) {
				if q <= 0.05 {
					found[1+i] = 1
				}
			}
		}
		for i := range c {
			c[i].add(found[i], 1)
		}
		called.add(different, strata)
	}
	return c, called
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
					sums, prior := p.summarise(n)
					fixed, slower := stat.NewRule(0.95, 0, 0.01, nil, n), 0
					for _, s := range sums {
						if v, _, _ := fixed.Judge(fixed.Estimate(s, prior), record.Lower); v == stat.Slower {
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
