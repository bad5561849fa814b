package analyse

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/analyse/stat"
	"tare/analyse/structural"
	"tare/ordered"
	"tare/param"
	"tare/record"
	"tare/study"
)

// Causes sets the reader of the samples from which causes are found, and the function
// that completes the parameters of a workload with defaults. If params is nil, only the
// parameters that the study names are used.
func Causes(r *cause.Reader, params func(study.Workload) param.Values) Option {
	return func(a *analysis) { a.causeReader, a.params = r, params }
}

// causes says what bounds each cell. It wants all else of the result that it joins:
// comparisons, ends, structural shares, CPU costs.
func (a *analysis) causes(r *Result) []cause.Finding {
	if a.causeReader == nil {
		a.causeReader = new(cause.Reader)
		for _, t := range a.trials {
			a.causeReader.Read(t)
		}
	}
	type at struct{ stratum, treatment string }
	first := make(map[at]*Comparison)
	for i := range r.Compared {
		if c := &r.Compared[i]; c.First {
			first[at{c.Stratum, c.Treatment}] = c
		}
	}
	costs := make(map[at]*cpucost.Cost)
	base := make(map[string]*cpucost.Cost)
	for i := range r.CPUCosts {
		c := &r.CPUCosts[i]
		costs[at{c.Stratum, c.Treatment}] = c
		if c.Baseline {
			base[c.Stratum] = c
		}
	}
	shares := make(map[at]*structural.Share)
	for i := range r.Structural {
		s := &r.Structural[i]
		shares[at{s.Stratum, s.Treatment}] = s
	}
	endpoints := r.sandboxedEndpoints()
	strata := make([]cause.Stratum, 0, len(a.study.Strata))
	past := a.imported()
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		if slices.ContainsFunc(s.Cells, study.Alone) {
			continue // the readings belong to the load, but the ratios to its victim
		}
		w := a.study.WorkloadOf(i)
		x := cause.Stratum{Finding: cause.Finding{CellKey: record.CellKey{Workload: w.Label, Stratum: s.Key, Shared: s.Shared}}, Endpoints: endpoints[s.Key], Past: past, Cluster: r.OnCluster}
		if len(x.Endpoints) == 0 {
			x.Endpoints = a.isolated(s)
		}
		x.Tiers = a.tiers(s)
		x.Responses = a.rates(w, s)
		for j, c := range s.Cells {
			own := a.study.WorkloadIn(i, c)
			x.Responses = a.described(x.Responses, own)
			k := at{s.Key, a.study.Treatment(i, c).Key()}
			cell := cause.Cell{Trials: a.counting[c.Key()], Pinned: pinned(c, a.counting[c.Key()], x.Endpoints), Emulated: emulated(a.counting[c.Key()], x.Endpoints), Load: a.load(own), Copies: copiesIn(c)}
			cell.Finding = cause.Finding{CellKey: record.CellKey{Treatment: k.treatment, Cell: c, Baseline: j == s.Baseline}}
			m := first[k]
			cell.Undecided = j != s.Baseline && (m == nil || !m.Verdict.Decided())
			if m != nil {
				x.Response = m.Response
				if !m.Baseline && m.Outcome() == HasRatio {
					cell.Ratio, cell.Costs = &m.Estimate.Ratio, m.Verdict == stat.Slower
				}
			}
			cell.Calls = callsOf(shares[k])
			if j != s.Baseline {
				cell.Price = priceOf(costs[k], base[s.Key])
			}
			x.Cells = append(x.Cells, cell)
		}
		strata = append(strata, x)
	}
	return cause.Build(a.rule.Level(), a.causeReader, strata)
}

// tiers are what the load of a stratum passes through, as the facts of its trials name it; nil if there is nothing.
func (a *analysis) tiers(s *study.Stratum) *cause.Tiers {
	out, some := &cause.Tiers{}, false
	for _, c := range s.Cells {
		for _, t := range a.counting[c.Key()] {
			for _, fact := range slices.Sorted(maps.Keys(t.Facts)) {
				part, is := strings.CutSuffix(fact, record.FactOutside)
				if !is {
					continue
				}
				some = true
				if why, not := strings.CutPrefix(t.Facts[fact], record.NotRead); !not {
					out.Read = ordered.Add(out.Read, a.causeReader.Ends(t.Identity(), part)...)
				} else if part == record.EndController {
					out.Missing = why
				}
			}
		}
	}
	if !some {
		return nil
	}
	slices.Sort(out.Read)
	return out
}

// load is the number of operations that a workload has under way, as its parameters
// say.
func (a *analysis) load(w study.Workload) float64 {
	params := w.Params
	if a.params != nil {
		params = a.params(w)
	}
	return cause.LoadOf(func(name string) string { return params[name] })
}

// copiesIn is how many copies of the load a cell runs at once.
func copiesIn(c record.Cell) int {
	level, _ := c.Get(study.FactorCopies)
	n, _ := strconv.Atoi(level) // without the factor, one
	return max(1, n)
}

// emulated reports whether software emulated the processors of an end in all trials of a cell.
func emulated(trials map[int]*record.Trial, endpoints []string) bool {
	for _, t := range trials {
		if !slices.ContainsFunc(endpoints, func(e string) bool { return t.Facts[e+AcceleratorFact] == record.AcceleratorTCG }) {
			return false
		}
	}
	return len(trials) > 0
}

// pinned is the number of processors that the sandboxes of a cell may use; 0: any. The trials
// say it; of a model, which records no such fact, the cell does.
func pinned(c record.Cell, trials map[int]*record.Trial, endpoints []string) float64 {
	said, _ := c.Get(study.FactorCPUs)
	for _, t := range trials {
		for _, endpoint := range endpoints {
			said = cmp.Or(t.Facts[endpoint+record.FactCPUs], said)
		}
	}
	cpus, err := param.ParseCPUs(said)
	if err != nil {
		return 0 // any
	}
	return float64(len(cpus))
}

// callsOf are the system calls of a cell and what its sandbox adds to one, where the
// study measured both.
func callsOf(s *structural.Share) *cause.Calls {
	if s == nil || s.Missing != "" || !(s.Native+s.Extra.Value > 0) {
		return nil
	}
	return &cause.Calls{Each: s.Calls, Rate: 1 / (s.Native + s.Extra.Value), Cost: max(0, s.Cost.Value), Parallelism: s.Parallelism}
}

// priceOf is the CPU that a unit of work costs beside the baseline's.
func priceOf(c, base *cpucost.Cost) *cause.Price {
	if c == nil || base == nil || c.Missing != "" || !(c.Estimate.Ratio > 0) {
		return nil
	}
	return &cause.Price{Unit: c.Unit, Cores: c.Cores, Base: base.Cores, Ratio: c.Estimate.Ratio, Lo: c.Estimate.Lo, Hi: c.Estimate.Hi}
}
