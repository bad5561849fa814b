package cpucost

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/analyse/stat"
	"tare/record"
)

// Names of the samples that are read: rates over the measured window, in cores.
const (
	byRole  = record.CPUTime + record.RateSuffix
	byGroup = record.CgroupCPU + record.RateSuffix
)

// SampleNames lists the labelled samples that Build and Quotas read. A loader may leave out
// others.
func SampleNames() []string {
	return []string{byRole, byGroup, quotaMean, periodsRate, throttledPeriods, throttledTime}
}

// Stratum is the input of Build for one stratum.
type Stratum struct {
	Cost  // without the fields that Build fills in; Response is the rate
	Cells []Cell
}

// Cell is one treatment of a stratum.
type Cell struct {
	Treatment string
	Cell      record.Cell
	Baseline  bool
	Trials    map[int]*record.Trial // good trials that count, by block
}

// RateOf returns the response that counts work: the first that is a rate of operations or
// bytes. It returns false if there is no such response.
func RateOf(responses []record.Response) (record.Response, bool) {
	i := slices.IndexFunc(responses, func(r record.Response) bool {
		if strings.HasPrefix(r.Name, record.FirstPrefix) || strings.HasPrefix(r.Name, record.VictimPrefix) {
			return false // the CPU is that of all copies of the load
		}
		return r.Unit == record.BytesPerSecond || r.Unit == record.PerSecond && r.Operation != ""
	})
	if i < 0 {
		return record.Response{}, false
	}
	return responses[i], true
}

// unitOf returns the unit of work, and how many of the rate's operations it has.
func unitOf(r record.Response) (name string, scale float64) {
	if r.Unit == record.BytesPerSecond {
		return "GB", 1e9
	}
	return r.Operation, 1
}

// Build computes the costs of all strata, in their order. It leaves out treatments without a
// trial that has both CPU and rate. A stratum without a baseline has costs and no ratios.
func Build(rule stat.Rule, r *Reader, strata []Stratum) []Cost {
	if !r.any {
		return nil
	}
	var out []Cost
	var sums []stat.Summary       // parallel to out
	var variances []stat.Variance // likewise
	for i := range strata {
		s := &strata[i]
		base, compared := map[int]float64{}, false
		for j := range s.Cells {
			if s.Cells[j].Baseline {
				_, base = r.cost(s, &s.Cells[j])
				compared = true
			}
		}
		for j := range s.Cells {
			c, values := r.cost(s, &s.Cells[j])
			if c.Trials == 0 {
				continue
			}
			var sum stat.Summary
			if compared && !c.Baseline {
				sum = stat.Summarise(stat.Pairs(base, values))
				c.Missing = sum.Undefined
			}
			out, sums, variances = append(out, c), append(sums, sum), append(variances, stat.Of(sum, c.Workload))
		}
	}
	priors := stat.Moderate(variances)
	for i := range out {
		if c := &out[i]; !c.Baseline && (sums[i].N > 0 || c.Missing != "") {
			c.Estimate = rule.Estimate(sums[i], priors[i])
			c.Verdict, _ = rule.Judge(c.Estimate, record.Lower)
			c.Estimate.Bound = rule.Bound(c.Estimate, record.Lower, c.Verdict)
		}
	}
	return out
}

// cost reads one treatment. It returns its cost without the ratio, and the CPU seconds a unit
// of work by block.
func (r *Reader) cost(s *Stratum, cell *Cell) (Cost, map[int]float64) {
	c := s.Cost
	c.Treatment, c.Cell, c.Baseline, c.Source = cell.Treatment, cell.Cell, cell.Baseline, r.source()
	var scale float64
	c.Unit, scale = unitOf(c.Response)
	roles := make(map[string]float64)
	values := make(map[int]float64)
	var cores, rates, each []float64
	for _, block := range slices.Sorted(maps.Keys(cell.Trials)) {
		t := cell.Trials[block]
		rate, ok := t.Sample(c.Response.Name)
		if !ok || !(rate > 0) || math.IsInf(rate, 0) || t.BelowNoise(c.Response.Name) {
			continue
		}
		used, ok := r.cores(t, s.Endpoints, roles)
		if !ok {
			continue
		}
		v := used / rate * scale
		values[block] = v
		cores, rates, each = append(cores, used), append(rates, rate), append(each, v)
	}
	if c.Trials = len(each); c.Trials == 0 {
		return c, values
	}
	c.Cores, c.Rate, c.Value = typical(cores), typical(rates), typical(each)
	c.Roles = parts(roles, &c)
	return c, values
}

// typical returns the geometric mean, or the median if one value is zero.
func typical(v []float64) float64 {
	if m := stat.GeoMean(v); !math.IsNaN(m) {
		return m
	}
	return stat.Median(v)
}

// parts returns the roles' parts of a cost.
func parts(roles map[string]float64, c *Cost) []Role {
	sum := 0.0
	names := slices.Sorted(maps.Keys(roles))
	for _, n := range names {
		sum += roles[n]
	}
	if !(sum > 0) {
		return nil
	}
	var out []Role
	for _, n := range names {
		if p := roles[n] / sum; p > 0 {
			out = append(out, Role{Role: n, Part: p, Cores: p * c.Cores, Value: p * c.Value})
		}
	}
	slices.SortStableFunc(out, func(x, y Role) int { return cmp.Compare(y.Part, x.Part) })
	return out
}
