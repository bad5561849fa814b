package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"tare/analyse/compare"
	"tare/record"
	"tare/study"
)

// comparisons is the section in which a case is two results of a study.
const comparisons = "comparisons"

// comparisonsSection plays each study twice, with other noise. Between the two, nothing
// changes in every second pair. In the others the costs of half of the cells do.
func comparisonsSection(ctx context.Context, l *lab, w io.Writer) ([]figure, error) {
	var units []unit
	for _, s := range []shape{
		{workloads: 1, points: 1, treats: 1},
		{workloads: 9, points: 1, treats: 1},
		{workloads: 16, points: 1, treats: 1},
		{workloads: 8, points: 5, treats: 1},
		{workloads: 10, points: 30, treats: 1},
		{workloads: 9, points: 1, treats: 4},
	} {
		for _, r := range []rule{ownRule(), fixed("8")} {
			for _, m := range machines() {
				all := s.strata() == 16 && r.stop == "" || m.name == "iid" || m.even == 0.02 && r.stop == ""
				if m.loud > 0 && s.workloads < 2 || !l.long && (!all || m.busy) {
					continue
				}
				units = append(units, unit{section: comparisons, shape: s, rule: r, machine: m, studies: l.enough(s) / 2, promised: true})
			}
		}
	}
	return l.table(ctx, w, "Two results of a study, in per cent: what changed of each cost (changed: q <= 5 %; best: a test that knows the scatter of both), and the gate `worse than 5%`", units, []column{
		{"covered", covered, coverage(), percent, false},
		{"noisiest", coveredNoisy, coverage(), percent, false},
		{"quietest", coveredQuiet, coverage(), percent, false},
		{"A/A rows called", equalCalled, atMost(0.05), percent, false},
		{"A/A pairs with a change", studiesFound, atMost(0.05), percent, false},
		{"false changes", falseFound, atMost(0.05), percent, false},
		{"5 %", power5, none(), percent, false},
		{"of best", power5Of, atLeast(0.90), percent, true},
		{"10 %", power10, none(), percent, false},
		{"of best", power10Of, atLeast(0.90), percent, true},
		{"A/A gates broken", gateBroken, atMost(0.05), percent, false},
		{"rows that the gate judges", gateJudges, none(), percent, false},
		{"10 % worse and held", gateMissed, atMost(0.20), percent, false},
		{"width", width, none(), times, false},
		{"blocks", blocks, none(), plain, false},
	})
}

// changed is the same world in another session: other noise, and other costs.
func (w *world) changed(s shape, seed uint64, aa bool) (*world, [][]float64) {
	out := *w
	out.aa, out.common, out.truth = aa, nil, nil
	by := effects{aa: aa}.draw(fork(seed, 6), s)
	for i := range w.truth {
		row := make([]float64, len(w.truth[i]))
		for k := range row {
			row[k] = w.truth[i][k] + by[i][k]
		}
		out.truth = append(out.truth, row)
	}
	out.begin(seed^1<<63, s)
	return &out, by
}

// compare runs a study in two sessions of a machine, and compares the results.
func (p *player) compare(w *world, seed uint64, i int) (*score, error) {
	aa := i%2 == 1
	other, truth := w.changed(p.shape, seed, aa)
	var sides [2]compare.Folder
	n := 0
	for i, of := range []*world{w, other} {
		st, trials, err := p.run(of, seed+uint64(i))
		if err != nil {
			return nil, err
		}
		sides[i], n = compare.Folder{Name: string(rune('A' + i)), Study: st, Trials: trials}, n+len(trials)
	}
	res, err := compare.Compare(sides[:1], sides[1:], compare.Options{Describe: func(study.Workload) []record.Response { return responses()[:len(p.shape.names())] }})
	if err != nil {
		return nil, err
	}
	g := gated{res: res}
	judges := i%judged < 2
	if err := g.check(judges); err != nil {
		return nil, err
	}
	out := &played{aa: aa, trials: n, cells: len(p.at)}
	counts := [3]sum{}
	for i := range res.Rows {
		r, c := &res.Rows[i], res.Rows[i].Cost
		if r.Baseline || c == nil {
			continue
		}
		at := p.at[r.Cell.Key()]
		x := playedRow{stratum: at.stratum, treatment: at.cell - 1, truth: truth[at.stratum][at.cell-1], verdict: c.Verdict,
			noisy: w.noisy[at.stratum], ratio: logOf(c.Ratio), lo: logOf(c.Lo), hi: logOf(c.Hi), q: math.NaN(), shrunk: math.NaN()}
		if c.Q != nil {
			x.q = *c.Q
		}
		// Together they are the variance of the difference: as if both sides had as many blocks.
		x.pair = w.pair(at.stratum, at.cell-1) * math.Sqrt2
		x.n = int(math.Round(2 / (1/float64(r.A.Cost.N) + 1/float64(r.B.Cost.N))))
		out.rows = append(out.rows, x)
		if !judges {
			continue
		}
		counts[1].of++
		if !g.doubted[i] {
			counts[1].hits++
			if isSize(x.truth, 0.10) && x.truth > 0 {
				counts[2].of++
				if !g.broken[i] {
					counts[2].hits++
				}
			}
		}
	}
	if aa {
		counts[0].of = 1
		if len(g.broken) > 0 {
			counts[0].hits = 1
		}
	}
	s := judge(out)
	for i, q := range []quantity{gateBroken, gateJudges, gateMissed} {
		s.add(q, counts[i].hits, counts[i].of)
	}
	return s, nil
}

// gated is what a gate says of the rows.
type gated struct {
	res             *compare.Result
	broken, doubted map[int]bool
}

// wantedPower is what `tare compare` asks of a gate unless told otherwise.
const wantedPower = 0.8

// judged is one pair of this many in which the gate says what it can judge, which takes long. The
// first two of them are a pair with changes and one without.
const judged = 10

func (g *gated) check(judges bool) error {
	gate, err := compare.NewGate("gate", "worse than 5%")
	if err != nil {
		return fmt.Errorf("read the gate: %w", err)
	}
	gates := []*compare.Gate{gate}
	breaches, err := g.res.Check(gates)
	if err != nil {
		return err
	}
	g.broken, g.doubted = map[int]bool{}, map[int]bool{}
	for _, b := range breaches {
		g.broken[b.Row] = true
	}
	if !judges {
		return nil
	}
	doubts, err := g.res.Unjudged(gates, breaches, wantedPower)
	if err != nil {
		return err
	}
	for _, d := range doubts {
		g.doubted[d.Row] = true
	}
	return nil
}
