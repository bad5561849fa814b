package analyse

import (
	"slices"

	"tare/analyse/cpucost"
	"tare/record"
	"tare/study"
)

// CPU gives the CPU figures that were taken out of the trials, so that they need
// not be kept as samples: results are large, and an analysis is to stay small.
func CPU(r *cpucost.Reader) Option { return func(a *analysis) { a.cpu = r } }

// cpuCosts says what CPU a unit of work costs, in the strata that have a rate of
// work.
func (a *analysis) cpuCosts(r *Result) []cpucost.Cost {
	endpoints := r.sandboxedEndpoints()
	var strata []cpucost.Stratum
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		w := a.study.WorkloadOf(i)
		rate, ok := cpucost.RateOf(a.rates(w, s))
		if !ok {
			continue
		}
		if len(endpoints[s.Key]) == 0 {
			endpoints[s.Key] = a.isolated(s)
		}
		x := cpucost.Stratum{Cost: cpucost.Cost{CellKey: record.CellKey{Workload: w.Label, Stratum: s.Key, Shared: s.Shared}, Response: rate, Endpoints: endpoints[s.Key]}}
		x.Cells = a.cpuCells(i)
		strata = append(strata, x)
	}
	return cpucost.Build(a.rule, a.cpuReader(), strata)
}

// quotas says what the endpoints used of their CPU quotas, in all strata.
func (a *analysis) quotas() []cpucost.Quota {
	var strata []cpucost.Stratum
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		strata = append(strata, cpucost.Stratum{Cost: cpucost.Cost{CellKey: record.CellKey{Workload: a.study.WorkloadOf(i).Label, Stratum: s.Key, Shared: s.Shared}}, Cells: a.cpuCells(i)})
	}
	return cpucost.Quotas(a.cpuReader(), strata)
}

func (a *analysis) cpuCells(stratum int) []cpucost.Cell {
	s := &a.study.Strata[stratum]
	var out []cpucost.Cell
	for j, c := range s.Cells {
		if study.Alone(c) {
			continue // it has no load, whose CPU time this is
		}
		out = append(out, cpucost.Cell{Treatment: a.study.Treatment(stratum, c).Key(), Cell: c, Baseline: j == s.Baseline, Trials: a.counting[c.Key()]})
	}
	return out
}

func (a *analysis) cpuReader() *cpucost.Reader {
	if a.cpu == nil {
		a.cpu = new(cpucost.Reader)
		for _, t := range a.trials {
			a.cpu.Read(t)
		}
	}
	return a.cpu
}

// rates are the responses that work may be counted by: those compared, then the
// others that the workload has. The unit of one that nobody described is its
// samples'.
func (a *analysis) rates(w study.Workload, s *study.Stratum) []record.Response {
	out := a.responses(w)
	for i := range out {
		if out[i].Unit != "" {
			continue
		}
		for _, c := range s.Cells {
			for _, t := range a.counting[c.Key()] {
				if u := unitOf(t, out[i].Name); u != "" {
					out[i].Unit = u
				}
			}
		}
	}
	return a.described(out, w)
}

// described adds to some responses the others that a workload describes.
func (a *analysis) described(to []record.Response, w study.Workload) []record.Response {
	if a.describe == nil {
		return to
	}
	for _, r := range a.describe(w) {
		if !slices.ContainsFunc(to, func(o record.Response) bool { return o.Name == r.Name }) {
			to = append(to, r)
		}
	}
	return to
}

// isolated are the endpoints in question of a stratum all of whose sandboxes are native,
// such as one that compares processors: those that would be isolated.
func (a *analysis) isolated(s *study.Stratum) []string {
	for _, c := range s.Cells {
		all := a.placed(c)
		var out []string
		for _, e := range all {
			if study.Isolated(study.IsolateOf(c), e.Role, len(all)) {
				out = append(out, e.Role)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// sandboxedEndpoints are the roles that are in a sandbox, by stratum.
func (r *Result) sandboxedEndpoints() map[string][]string {
	endpoints := make(map[string][]string)
	for _, e := range r.Placements {
		for _, endpoint := range e.Roles {
			if endpoint.Sandboxed {
				endpoints[e.Stratum] = append(endpoints[e.Stratum], endpoint.Role)
			}
		}
	}
	return endpoints
}
