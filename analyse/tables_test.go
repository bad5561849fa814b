package analyse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// gridStudy compares process, runc and vm, the last with boot-time processors of
// its own, over connections, sizes and CPU limits.
func gridStudy(blocks int) *study.Study {
	st := &study.Study{Name: "grid", Seed: 5, Compare: "sandbox", Baseline: "process", Traits: native(),
		Factors: []study.Factor{{Name: "workload", Levels: []string{"stream"}}, {Name: "cpu-limit", Levels: []string{"none", "1"}},
			{Name: "connections", Levels: []string{"1", "4", "16"}}, {Name: "size", Levels: []string{"64", "4096"}},
			{Name: "sandbox", Levels: []string{"process", "runc", "vm"}}, {Name: "vcpus", Levels: []string{"1", "2"}}},
		Workloads: []study.Workload{{Label: "stream", Kind: "net", Responses: []string{"throughput", "p50"}}},
		Stop:      study.Stop{Fixed: blocks, Confidence: 0.95, Margin: 0.03},
		Tables:    []study.Table{{Name: "t", Response: "throughput", Rows: []string{"sandbox", "vcpus"}, Columns: "cpu-limit"}}}
	for _, limit := range st.Factors[1].Levels {
		for _, n := range st.Factors[2].Levels {
			for _, size := range st.Factors[3].Levels {
				shared := record.Cell{{Factor: "workload", Value: "stream"}, {Factor: "cpu-limit", Value: limit}, {Factor: "connections", Value: n}, {Factor: "size", Value: size}}
				s := study.Stratum{Key: shared.Key(), Shared: shared}
				for _, box := range []string{"process", "runc", "vm/1", "vm/2"} {
					box, vcpus, nested := strings.Cut(box, "/")
					c := append(slices.Clone(shared), record.Level{Factor: "sandbox", Value: box})
					if nested {
						c = append(c, record.Level{Factor: "vcpus", Value: vcpus})
					}
					s.Cells = append(s.Cells, c)
				}
				st.Strata = append(st.Strata, s)
			}
		}
	}
	return st
}

// gridOutcome gives every cell a level of its own and every block a drift of its
// own; change may alter the value.
func gridOutcome(change func(n plan.Next, v float64) float64) func(plan.Next) record.Trial {
	return func(n plan.Next) record.Trial {
		r := rand.New(rand.NewPCG(uint64(n.Block), uint64(n.Stratum)<<8|uint64(len(n.Cell.Key()))))
		v := 1e9 * math.Exp(0.1*float64(n.Stratum)+0.05*float64(n.Block)+0.02*r.NormFloat64())
		box, _ := n.Cell.Get("sandbox")
		v *= map[string]float64{"process": 1, "runc": 0.9, "vm": 0.4}[box]
		if change != nil {
			v = change(n, v)
		}
		t := record.Trial{Seq: n.Stratum*1000 + n.Block, Block: n.Block, Attempt: 1, Cell: n.Cell, Status: record.OK,
			Samples: []record.Sample{{Name: "throughput", Unit: record.BytesPerSecond, Value: v}, {Name: "p50", Unit: record.Second, Value: 1 / v}}}
		if math.IsNaN(v) {
			t.Status, t.Samples, t.Failure = record.Failed, nil, &record.Failure{Phase: "run", Kind: "died", Reason: "the guest panicked"}
		}
		return t
	}
}

func gridTables(st *study.Study, change func(plan.Next, float64) float64) (*Result, []record.Trial) {
	trials := play(st, nil, gridOutcome(change))
	return Analyse(st, trials, nil, Describe(describe)), trials
}

func rowNames(t *summary.Table) []string {
	var out []string
	for _, r := range t.Rows {
		name := r.Cell.Key()
		if r.Mean {
			name += " mean"
		}
		if r.Baseline {
			name += " baseline"
		}
		out = append(out, name)
	}
	return out
}

func TestTableShape(t *testing.T) {
	res, _ := gridTables(gridStudy(4), nil)
	if len(res.Tables) != 1 {
		t.Fatalf("%d tables", len(res.Tables))
	}
	tab := &res.Tables[0]
	want := []string{"sandbox=process baseline", "sandbox=runc", "sandbox=vm,vcpus=1", "sandbox=vm,vcpus=2", "sandbox=vm mean"}
	if d := cmp.Diff(want, rowNames(tab)); d != "" {
		t.Errorf("rows:\n%s", d)
	}
	if d := cmp.Diff([]summary.Column{{Level: "none", Combinations: 6}, {Level: "1", Combinations: 6}}, tab.Columns); d != "" {
		t.Errorf("columns:\n%s", d)
	}
	if d := cmp.Diff([]summary.Levels{{Factor: "connections", Levels: []string{"1", "4", "16"}}, {Factor: "size", Levels: []string{"64", "4096"}}}, tab.Over); d != "" {
		t.Errorf("over:\n%s", d)
	}
	for _, r := range tab.Rows {
		for j, c := range r.Cells {
			if c.Combinations != 6 || c.Fewer || !(c.Estimate.Value > 0) || !r.Baseline && !c.Estimate.HasInterval() {
				t.Errorf("%s, column %d: %+v", r.Cell, j, c)
			}
		}
	}
	// The mean row is the geometric mean of its rows, and so is its ratio.
	for j := range tab.Columns {
		a, b, m := tab.Rows[2].Cells[j].Estimate, tab.Rows[3].Cells[j].Estimate, tab.Rows[4].Cells[j].Estimate
		if math.Abs(m.Ratio/math.Sqrt(a.Ratio*b.Ratio)-1) > 1e-12 || math.Abs(m.Value/math.Sqrt(a.Value*b.Value)-1) > 1e-12 {
			t.Errorf("column %d: the mean of %+v and %+v is %+v", j, a, b, m)
		}
	}
}

// TestTableOrder: the order of trials changes nothing, to the last bit.
func TestTableOrder(t *testing.T) {
	st := gridStudy(4)
	res, trials := gridTables(st, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		rng.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
		again := Analyse(st, trials, nil, Describe(describe))
		if d := cmp.Diff(res.Tables, again.Tables); d != "" {
			t.Fatalf("shuffled trials:\n%s", d)
		}
	}
}

// TestTableFactor: a constant factor on all of one row moves its ratios by it, and
// nothing else.
func TestTableFactor(t *testing.T) {
	before, _ := gridTables(gridStudy(4), nil)
	after, _ := gridTables(gridStudy(4), func(n plan.Next, v float64) float64 {
		if box, _ := n.Cell.Get("sandbox"); box == "runc" {
			return v * 3
		}
		return v
	})
	for i, r := range before.Tables[0].Rows {
		for j := range r.Cells {
			x, y := r.Cells[j].Estimate, after.Tables[0].Rows[i].Cells[j].Estimate
			want := 1.0
			if r.Cell[0].Value == "runc" {
				want = 3
			}
			for _, p := range [][2]float64{{x.Ratio, y.Ratio}, {x.Lo, y.Lo}, {x.Hi, y.Hi}, {x.Value, y.Value}} {
				if p[0] > 0 && math.Abs(p[1]/p[0]/want-1) > 1e-9 {
					t.Errorf("%s, column %d: %g became %g, want a factor of %g", r.Cell, j, p[0], p[1], want)
				}
			}
		}
	}
}

// TestTableOfOneCell is the comparison itself.
func TestTableOfOneCell(t *testing.T) {
	st := gridStudy(4)
	st.Tables[0].Where = []study.Factor{{Name: "connections", Levels: []string{"4"}}, {Name: "size", Levels: []string{"64"}}, {Name: "vcpus", Levels: []string{"2"}}}
	res, _ := gridTables(st, nil)
	n := 0
	for _, r := range res.Tables[0].Rows {
		for j, c := range r.Cells {
			for i := range res.Compared {
				x := &res.Compared[i]
				limit, _ := x.Cell.Get("cpu-limit")
				conns, _ := x.Cell.Get("connections")
				size, _ := x.Cell.Get("size")
				vcpus, _ := x.Cell.Get("vcpus")
				own, _ := r.Cell.Get("vcpus")
				box, _ := x.Cell.Get("sandbox")
				if x.Response.Name != "throughput" || limit != res.Tables[0].Columns[j].Level || conns != "4" || size != "64" || box != r.Cell[0].Value || vcpus != own {
					continue
				}
				n++
				switch {
				case x.Baseline && math.Abs(c.Estimate.Value/x.Level.Typical-1) > 1e-12:
					t.Errorf("the baseline is %g, and its cell %g", x.Level.Typical, c.Estimate.Value)
				case !x.Baseline && !cmp.Equal(x.Estimate, c.Estimate), c.Verdict != x.Verdict:
					t.Errorf("%s: %s", x.Cell, cmp.Diff(x.Estimate, c.Estimate))
				}
			}
		}
	}
	if n != 6 || len(res.Tables[0].Rows) != 3 {
		t.Errorf("%d cells compared, rows %v", n, rowNames(&res.Tables[0]))
	}
}

// TestTableOfFewer: what failed is left out of its row, the cell is marked, and
// the baseline beside it is over the same strata.
func TestTableOfFewer(t *testing.T) {
	res, _ := gridTables(gridStudy(4), func(n plan.Next, v float64) float64 {
		size, _ := n.Cell.Get("size")
		vcpus, _ := n.Cell.Get("vcpus")
		limit, _ := n.Cell.Get("cpu-limit")
		switch {
		case vcpus == "2" && size == "4096" && limit == "1", vcpus == "2" && limit == "none":
			return math.NaN()
		}
		return v
	})
	tab := &res.Tables[0]
	full, one, two, mean := tab.Rows[0], tab.Rows[2], tab.Rows[3], tab.Rows[4]
	if c := two.Cells[0]; c.Combinations != 0 || c.Why == "" {
		t.Errorf("of vcpus=2 without a limit all failed: %+v", c)
	}
	if c := two.Cells[1]; c.Combinations != 3 || !c.Fewer || c.Estimate.Base == full.Cells[1].Estimate.Value {
		t.Errorf("of vcpus=2 half failed: %+v", c)
	}
	if c := one.Cells[0]; c.Fewer || c.Combinations != 6 {
		t.Errorf("vcpus=1 is whole: %+v", c)
	}
	if c := mean.Cells[0]; c.Rows != 1 || !c.Fewer || c.Combinations != 6 || !cmp.Equal(c.Estimate, one.Cells[0].Estimate) {
		t.Errorf("the mean over one row of two: %+v", c)
	}
	if c := mean.Cells[1]; c.Rows != 2 || !c.Fewer || c.Combinations != 3 {
		t.Errorf("the mean over both rows where both are: %+v", c)
	}
}

// TestTableCoverage: the interval of a mean over strata holds the truth as often as
// it says, also that of the row over treatments which share the baseline's trials.
//
// scripts/truth plays up to 300 strata, and what real trials scatter by.
func TestTableCoverage(t *testing.T) {
	for _, c := range []struct {
		strata, rounds int
		stop           study.Stop
	}{
		{4, 1500, study.Stop{Fixed: 4, Confidence: 0.95, Margin: 0.03}},
		{12, 600, study.Stop{Fixed: 5, Confidence: 0.95, Margin: 0.03}},
	} {
		t.Run(fmt.Sprintf("%d strata, fixed %d", c.strata, c.stop.Fixed), func(t *testing.T) {
			t.Parallel()
			hit := map[string]int{}
			for round := range c.rounds {
				st := gridStudy(4)
				st.Strata, st.Stop, st.Tables[0].Columns = st.Strata[:c.strata], c.stop, ""
				r := rand.New(rand.NewPCG(uint64(round), 9))
				res, _ := gridTables(st, func(n plan.Next, _ float64) float64 { return math.Exp(0.02 * r.NormFloat64()) })
				for _, row := range res.Tables[0].Rows {
					e := row.Cells[0].Estimate
					if name := fmt.Sprint(row.Cell, row.Mean); !row.Baseline && e.Lo <= 1 && e.Hi >= 1 {
						hit[name]++
					}
				}
			}
			for name, n := range hit {
				lo, hi := 0.94, 0.97
				if strings.HasSuffix(name, "true") {
					hi = 0.985 // of a mean over rows: wider than need be, see Stratum.Prior
				}
				of := float64(c.rounds)
				chance := func(p float64) float64 { return 3 * math.Sqrt(p*(1-p)/of) }
				p := float64(n) / of
				t.Logf("%s: the interval holds 1 in %.1f %% of equal things", name, 100*p)
				if p < lo-chance(lo) || p > hi+chance(hi) {
					t.Errorf("%s: the interval holds 1 in %.1f %% of equal things, want %.0f to %.1f %%", name, 100*p, 100*lo, 100*hi)
				}
			}
			if len(hit) != 4 {
				t.Errorf("rows: %v", hit)
			}
		})
	}
}

func TestCombine(t *testing.T) {
	e := stat.Estimate{Ratio: 2, Lo: 1.8, Hi: 2.2, N: 4, SE: 0.03, DF: 3, Confidence: 0.95, Base: 1, Value: 2}
	if got := stat.Combine([]stat.Estimate{e}); !cmp.Equal(got, e) {
		t.Errorf("of one: %+v", got)
	}
	got := stat.Combine([]stat.Estimate{e, e, e, e})
	if math.Abs(got.SE-0.015) > 1e-12 || math.Abs(got.DF-12) > 1e-9 || math.Abs(got.Ratio-2) > 1e-12 || got.N != 16 {
		t.Errorf("of four alike: %+v", got)
	}
	if got := stat.Combine([]stat.Estimate{e, {Ratio: 8, N: 2}}); got.HasInterval() || math.Abs(got.Ratio-4) > 1e-12 {
		t.Errorf("without an interval of one: %+v", got)
	}
	for _, bad := range [][]stat.Estimate{nil, {e, {Undefined: "zero", N: 4}}} {
		if got := stat.Combine(bad); got.Undefined == "" || got.Ratio != 0 {
			t.Errorf("%v: %+v", bad, got)
		}
	}
}
