package main

import (
	"fmt"
	"math"
	"time"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// player plays studies of one design. It is not changed after newPlayer.
type player struct {
	shape shape
	study *study.Study
	at    map[string]place // by Cell.Key
}

// place is where a cell is: its stratum, and its index there with the baseline as 0.
type place struct{ stratum, cell int }

func newPlayer(s shape, r rule) (*player, error) {
	st, err := s.study(r)
	if err != nil {
		return nil, fmt.Errorf("the simulated study %s, %s is not a study: %w", s, r.name, err)
	}
	p := &player{shape: s, study: st, at: map[string]place{}}
	for i := range st.Strata {
		t := &st.Strata[i]
		k := 0
		for j, c := range t.Cells {
			if j == t.Baseline {
				p.at[c.Key()] = place{i, 0}
				continue
			}
			k++
			p.at[c.Key()] = place{i, k}
		}
		if t.Baseline < 0 || k != s.treatments() {
			return nil, fmt.Errorf("the simulated study %s, %s has %d treatments in a stratum, want %d", s, r.name, k, s.treatments())
		}
	}
	return p, nil
}

// played is what a study came to, beside the truth.
type played struct {
	aa     bool
	rows   []playedRow
	tables []playedTable
	trials int
	cells  int
	// In a study with turns, the seconds that it took, and those of 16 fixed blocks of everything in two turns.
	took, whole float64
}

// playedRow is one comparison.
type playedRow struct {
	stratum, treatment int
	truth, pair        float64 // ln of the true ratio; true standard deviation of ln ratio in a block
	n                  int
	ratio, lo, hi      float64 // ln; NaN where there is none
	shrunk             float64 // ln of the bias-corrected ratio; NaN where there is none
	verdict            stat.Verdict
	q                  float64 // NaN where there is none
	noisy              bool    // of the loud workload
	margin             float64
}

func (r *playedRow) called() bool {
	switch r.verdict {
	case stat.Faster, stat.Slower, stat.Higher, stat.Lower:
		return true
	}
	return false
}

// said reports whether the row has a verdict that is true, or one that is not; neither if it is
// undecided. Equivalent is true within the margin.
func (r *playedRow) said() (right, wrong bool) {
	switch {
	case r.called():
		right = r.truth != 0 && (r.ratio > 0) == (r.truth > 0)
		return right, !right
	case r.verdict == stat.Equivalent:
		right = math.Abs(r.truth) <= math.Log1p(r.margin)
		return right, !right
	}
	return false, false
}

// playedTable is one cell of a table of geometric means.
type playedTable struct {
	strata        int  // that it is over
	mean          bool // over several rows, too
	truth, lo, hi float64
	best          float64 // half-width of the interval that knows the scatter
	called        bool
}

// run runs a study in a world to its end, as the program does.
func (p *player) run(w *world, seed uint64) (*study.Study, []record.Trial, error) {
	st := *p.study
	st.Seed = seed
	pl := plan.New(&st, nil, nil)
	var trials []record.Trial
	for {
		n, ok := pl.Next()
		if !ok {
			break
		}
		c, known := p.at[n.Cell.Key()]
		if !known {
			return nil, nil, fmt.Errorf("the plan asks for the cell %s, which the study does not have", n.Cell)
		}
		t := record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Duration: time.Second,
			Samples: make([]record.Sample, 0, 2)}
		if w.m.turns != nil {
			turned(&t, w, c, n.Turns, len(trials)+1)
			pl.Done(&t)
			trials = append(trials, t)
			continue
		}
		for k, name := range p.shape.names() {
			t.Samples = append(t.Samples, record.Sample{Name: name, Unit: record.Second,
				Value: w.value(c.stratum+k*p.shape.strata(), c.cell, n.Block, len(trials)+1)})
		}
		pl.Done(&t)
		trials = append(trials, t)
	}
	return &st, trials, nil
}

// turned fills a trial of so many turns in.
func turned(t *record.Trial, w *world, c place, turns, at int) {
	x := w.m.turns
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	t.Duration = seconds(x.starts[c.cell] + float64(turns)*x.turn)
	ln := 0.0
	for i, v := range w.values(c.stratum, c.cell, t.Block, at, turns) {
		t.Phases = append(t.Phases, record.Phase{Name: "run", Duration: seconds(x.turn)})
		t.Samples = append(t.Samples, record.Sample{Name: response, Unit: record.Second, Value: v, Labels: record.MakeLabels(record.LabelTurn, fmt.Sprint(i+1))})
		ln += math.Log(v) / float64(turns)
	}
	t.Samples = append(t.Samples, record.Sample{Name: response, Unit: record.Second, Value: math.Exp(ln)})
}

// play runs a study in a world, and analyses it.
func (p *player) play(w *world, seed uint64) (*played, error) {
	st, trials, err := p.run(w, seed)
	if err != nil {
		return nil, err
	}
	res := analyse.Analyse(st, trials, nil, analyse.Describe(func(study.Workload) []record.Response { return responses()[:len(p.shape.names())] }))
	if !res.Finished {
		return nil, fmt.Errorf("the plan is at its end, and the analysis says that the study is not finished")
	}
	out := &played{aa: w.aa, trials: len(trials), cells: len(p.at)}
	if x := w.m.turns; x != nil {
		for i := range trials {
			out.took += trials[i].Duration.Seconds()
		}
		for _, at := range p.at {
			out.whole += 16 * (x.starts[at.cell] + 2*x.turn)
		}
	}
	out.rows = make([]playedRow, 0, p.shape.strata()*p.shape.treatments())
	for i := range res.Compared {
		if c := &res.Compared[i]; !c.Baseline {
			out.rows = append(out.rows, p.row(c, w))
		}
	}
	p.tables(out, res, w)
	return out, nil
}

func (p *player) row(c *analyse.Comparison, w *world) playedRow {
	at := p.at[c.Cell.Key()]
	if c.Response.Name == further {
		at.stratum += p.shape.strata()
	}
	e := &c.Estimate
	r := playedRow{stratum: at.stratum, treatment: at.cell - 1, truth: w.truth[at.stratum][at.cell-1],
		pair: w.pair(at.stratum, at.cell-1),
		n:    e.N, verdict: c.Verdict, noisy: w.noisy[at.stratum], q: math.NaN(), margin: p.study.Stop.Margin,
		ratio: logOf(e.Ratio), lo: math.NaN(), hi: math.NaN(), shrunk: logOf(e.Shrunk)}
	if e.HasInterval() {
		r.lo, r.hi = math.Log(e.Lo), math.Log(e.Hi)
	}
	if c.Q != nil {
		r.q = *c.Q
	}
	return r
}

func logOf(x float64) float64 {
	if x > 0 {
		return math.Log(x)
	}
	return math.NaN()
}

// tables notes the cells of the geometric-mean tables.
func (p *player) tables(out *played, res *analyse.Result, w *world) {
	n := map[[2]int]float64{}
	for i := range out.rows {
		r := &out.rows[i]
		n[[2]int{r.stratum, r.treatment}] = float64(r.n)
	}
	for ti := range res.Tables {
		t := &res.Tables[ti]
		for ri := range t.Rows {
			row := &t.Rows[ri]
			if row.Baseline {
				continue
			}
			for ci := range row.Cells {
				c := &row.Cells[ci]
				of := p.treatmentsOf(row.Cell)
				x := playedTable{mean: row.Mean, lo: math.NaN(), hi: math.NaN()}
				v := 0.0
				for i := range p.shape.strata() {
					if t.Column != "" && t.Columns[ci].Level != fmt.Sprintf("w%d", i/p.shape.points+1) {
						continue
					}
					x.strata++
					var blocks float64
					m := float64(len(of))
					for _, k := range of {
						x.truth += w.truth[i][k] / m
						blocks += n[[2]int{i, k}] / m
					}
					v += w.meanVariance(i, of) / blocks
				}
				x.truth /= float64(x.strata)
				x.best = best95 * math.Sqrt(v) / float64(x.strata)
				if e := &c.Estimate; e.HasInterval() {
					x.lo, x.hi = math.Log(e.Lo), math.Log(e.Hi)
				}
				x.called = c.Verdict == stat.Faster || c.Verdict == stat.Slower || c.Verdict == stat.Higher || c.Verdict == stat.Lower
				out.tables = append(out.tables, x)
			}
		}
	}
}

// treatmentsOf are the treatments that a table's row is over: all that have its levels.
func (p *player) treatmentsOf(row record.Cell) []int {
	var out []int
	for j, c := range p.study.Strata[0].Cells {
		if j == p.study.Strata[0].Baseline {
			continue
		}
		all := true
		for _, l := range row {
			if v, ok := c.Get(l.Factor); !ok || v != l.Value {
				all = false
			}
		}
		if all {
			out = append(out, p.at[c.Key()].cell-1)
		}
	}
	return out
}

// best95 is the 97.5 % quantile of the normal distribution.
const best95 = 1.959964
