package analyse

import (
	"slices"

	"tare/analyse/advice"
	"tare/analyse/stat"
	"tare/analyse/tune"
	"tare/record"
	"tare/study"
)

// advise says what to set, from the causes and from what was measured. It is asked when
// Causes, CPUCosts and Quotas are there.
func (a *analysis) advise(r *Result) []advice.Item { return a.adviseOn(r, nil) }

// AdviceOn also stores, in to, the advice for some cells only: gains, targets and texts
// are computed from these.
func AdviceOn(cells func(record.Cell) bool, to *[]advice.Item) Option {
	return func(a *analysis) {
		a.advised = func(r *Result) { *to = a.adviseOn(r, cells) }
	}
}

func (a *analysis) adviseOn(r *Result, only func(record.Cell) bool) []advice.Item {
	strata := make(map[string]int, len(a.study.Strata))
	for i := range a.study.Strata {
		strata[a.study.Strata[i].Key] = i
	}
	answered, stopped := make(map[string]bool), make(map[string]bool)
	for i := range r.Tuned {
		t := &r.Tuned[i]
		answered[t.Stratum], stopped[t.Stratum] = t.Stage == tune.Found, t.Stopped
		for _, p := range t.Mix {
			answered[p.Stratum], stopped[p.Stratum] = t.Stage == tune.Found, t.Stopped
		}
	}
	needs := make(map[string]int)
	for i := range r.Compared {
		if c := &r.Compared[i]; c.First && c.Needs != nil {
			needs[c.Cell.Key()] = c.Needs.Blocks
		}
	}
	return advice.Build(advice.Input{
		Findings: r.Causes, Compare: a.study.Compare, Baseline: a.study.Baseline, Factors: a.study.Factors,
		Traits: a.kinds, Costs: r.CPUCosts, Quotas: r.Quotas, Rule: a.rule,
		Workload: func(stratum string) study.Workload {
			if i, ok := strata[stratum]; ok {
				return a.study.WorkloadOf(i)
			}
			return study.Workload{}
		},
		Responses: func(stratum string) []record.Response {
			if i, ok := strata[stratum]; ok {
				return a.responses(a.study.WorkloadOf(i))
			}
			return nil
		},
		Imported: a.imported(),
		Found:    func(stratum string) bool { return answered[stratum] },
		Stopped:  func(stratum string) bool { return stopped[stratum] },
		Measured: a.measured,
		Needs:    func(c record.Cell) int { return needs[c.Key()] },
		Only:     only,
		Modelled: r.Modelled,
		On:       r.On(),

		OnCluster: r.OnCluster,
		Mean:      a.gained,
	})
}

// toolFact names the tool that an imported trial is of.
const toolFact = "imported.tool"

// imported reports whether another tool measured: package imports puts its name into each
// trial's facts.
func (a *analysis) imported() bool {
	return slices.ContainsFunc(a.trials, func(t *record.Trial) bool { return t.Facts[toolFact] != "" })
}

// measured reports whether a cell has values of a response.
func (a *analysis) measured(c record.Cell, response string) bool {
	for _, t := range a.counting[c.Key()] {
		if v, ok := t.Sample(response); ok && !t.BelowNoise(response) && v-v == 0 {
			return true
		}
	}
	return false
}

// gained is mean for cells of different strata, whose trials pair up when they were made in
// the same pass. It is undefined where a value is below noise.
func (a *analysis) gained(base record.Cell, others []record.Cell, response string) stat.Summary {
	sum := a.mean(base, others, response)
	for _, c := range append([]record.Cell{base}, others...) {
		for _, t := range a.counting[c.Key()] {
			if t.BelowNoise(response) {
				sum.Undefined = response + " is below noise in " + c.String()
			}
		}
	}
	return sum
}
