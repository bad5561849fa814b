package analyse

import (
	"math"
	"strings"
	"testing"

	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/analyse/tune"
	"tare/record"
	"tare/study"
)

// TestAdviseMeasures: gains are ratios over the blocks that both cells have, also where
// the cells are of different strata, and a value below noise makes none.
func TestAdviseMeasures(t *testing.T) {
	cell := func(sandbox, limit string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: sandbox}, {Factor: "cpu-limit", Value: limit}}
	}
	st := &study.Study{Compare: "sandbox", Baseline: "process", Traits: native(), Workloads: []study.Workload{{Label: "w", Kind: "net"}},
		Factors: []study.Factor{{Name: "sandbox", Levels: []string{"process", "runc"}}, {Name: "cpu-limit", Levels: []string{"none", "1"}}}}
	a := &analysis{study: st, rule: stat.NewRule(0.95, 0.05, 0.03, nil, 4), counting: make(map[string]map[int]*record.Trial), byCell: make(map[string][]*record.Trial)}
	for _, limit := range []string{"none", "1"} {
		shared := cell("process", limit).Without("sandbox")
		st.Strata = append(st.Strata, study.Stratum{Key: shared.Key(), Shared: shared, Cells: []record.Cell{cell("process", limit), cell("runc", limit)}})
		for _, c := range st.Strata[len(st.Strata)-1].Cells {
			trials := make(map[int]*record.Trial)
			for block := 1; block <= 5; block++ {
				v := 100 * (1 + 0.01*float64(block%3))
				if limit == "1" {
					v /= 2 + 0.01*float64(block%2)
				}
				if limit == "1" && block == 5 {
					continue // not tried there
				}
				trials[block] = &record.Trial{Block: block, Cell: c, Status: record.OK, Samples: []record.Sample{{Name: "throughput", Unit: record.BytesPerSecond, Value: v}}}
				a.byCell[c.Key()] = append(a.byCell[c.Key()], trials[block])
			}
			a.counting[c.Key()] = trials
		}
	}
	half := 0.5
	r := &Result{Causes: []cause.Finding{{CellKey: record.CellKey{Workload: "w", Stratum: st.Strata[1].Key, Treatment: "sandbox=runc", Cell: cell("runc", "1")}, Ratio: &half, Costs: true,
		Cause: cause.Quota, Response: record.Response{Name: "throughput", Better: record.Higher}}}}
	items := a.advise(r)
	if len(items) != 1 || items[0].Gain == nil {
		t.Fatalf("%+v", items)
	}
	if g := items[0].Gain; g.Pairs != 4 || math.Abs(g.Ratio-2.005) > 0.001 || g.To.Key() != cell("runc", "none").Key() || !(g.Lo > 1.9 && g.Hi < 2.1) {
		t.Errorf("%+v", g)
	}
	trials := a.counting[cell("runc", "none").Key()]
	trials[1].Warnings = []record.Warning{{Code: record.BelowNoise + "throughput"}}
	if items := a.advise(r); items[0].Gain != nil || !strings.Contains(items[0].Unproven, "below noise") {
		t.Errorf("below noise, and yet %+v: %s", items[0].Gain, items[0].Unproven)
	}
}

// TestAdviseSearch: a search that found its answer, of a stratum or of a mix, left out levels on purpose; one that goes on
// has undecided cells.
func TestAdviseSearch(t *testing.T) {
	ratio := 0.5
	st := &study.Study{Compare: "sandbox", Baseline: "process", Traits: native(), Workloads: []study.Workload{{Label: "w", Kind: "net"}}}
	a := &analysis{study: st, rule: stat.NewRule(0.95, 0.05, 0.03, nil, 4)}
	for _, c := range []struct {
		name  string
		tuned Tuned
		items int
	}{
		{"found", Tuned{Stratum: "workload=w", Stage: tune.Found}, 0},
		{"found for a mix", Tuned{Workload: MixName, Stage: tune.Found, Mix: []TunedPart{{Stratum: "workload=w"}}}, 0},
		{"narrowing", Tuned{Stratum: "workload=w", Stage: tune.Narrowing}, 1},
		{"narrowing for a mix", Tuned{Workload: MixName, Stage: tune.Narrowing, Mix: []TunedPart{{Stratum: "workload=w"}}}, 1},
		{"found elsewhere", Tuned{Stratum: "workload=other", Stage: tune.Found}, 1},
	} {
		r := &Result{Tuned: []Tuned{c.tuned}, Causes: []cause.Finding{{CellKey: record.CellKey{Workload: "w", Stratum: "workload=w", Treatment: "sandbox=runc",
			Cell: record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: "runc"}}}, Ratio: &ratio, Undecided: true, Trials: 1,
			Cause: cause.Untold, Response: record.Response{Name: "throughput", Better: record.Higher}}}}
		if items := a.advise(r); len(items) != c.items {
			t.Errorf("%s: %d items, want %d: %+v", c.name, len(items), c.items, items)
		}
	}
}
