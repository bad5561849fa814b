package words

import (
	"fmt"
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/cpucost"
	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
)

// QuotasAbout explains the table.
const QuotasAbout = "Averages over the good trials, in the measured time. CPU: everything that the sandbox runs on the host for this side, without tare's agent, and its part of the quota. " +
	"Throttled: the share of the quota's periods in which it was used up. Held back: the time lost to this, summed over processors."

// CountedEndpoints names the roles of the workloads whose CPU is counted.
func CountedEndpoints(r *analyse.Result) string {
	var all []string
	for i := range r.CPUCosts {
		all = ordered.Add(all, strings.Join(r.CPUCosts[i].Endpoints, " and "))
	}
	if len(all) == 1 && all[0] == "main" { // its role has no name of its own
		return "the workload"
	}
	if len(all) > 3 {
		return "the isolated sides"
	}
	return "the isolated sides (" + strings.Join(all, "; ") + ")"
}

// CPUCosts says of each treatment what the same work costs: the median over the
// strata, and the dearest with its cores and whose they are.
func CPUCosts(r *analyse.Result) []string {
	base := make(map[string]*cpucost.Cost)
	for i := range r.CPUCosts {
		if c := &r.CPUCosts[i]; c.Baseline {
			base[c.Stratum] = c
		}
	}
	var out []string
	vary := varying(r)
	for _, t := range r.Treatments {
		var ratios []float64
		var worst *cpucost.Cost
		for i := range r.CPUCosts {
			c := &r.CPUCosts[i]
			if c.Treatment != t.Key || c.Baseline || !(c.Estimate.Ratio > 0) || base[c.Stratum] == nil {
				continue
			}
			ratios = append(ratios, c.Estimate.Ratio)
			if worst == nil || c.Estimate.Ratio > worst.Estimate.Ratio {
				worst = c
			}
		}
		if worst == nil {
			continue
		}
		s := named(r, Treatment(r, t.Cell)) + ": "
		if len(ratios) > 1 {
			s += fmt.Sprintf("median of %d variants %s the CPU time per unit of work, most ", len(ratios), Times(stat.Median(ratios)))
		}
		out = append(out, s+costOf(r, worst, base[worst.Stratum], vary))
	}
	return out
}

// costOf says one: its ratio, cores against cores, the work's ratio, and roles.
func costOf(r *analyse.Result, c, base *cpucost.Cost, vary map[string][]string) string {
	s := Times(c.Estimate.Ratio)
	if e := &c.Estimate; e.HasInterval() {
		s += fmt.Sprintf(" (%s to %s)", Ratio(e.Lo), Ratio(e.Hi))
	}
	where := c.Workload
	for _, l := range c.Shared {
		if slices.Contains(vary[c.Workload], l.Factor) && l.Factor != "workload" {
			where += " " + l.Factor + "=" + r.LevelName(l)
		}
	}
	s += fmt.Sprintf(" in %s: %s against %s for %s × the %s", where, Value(c.Cores, record.Cores), strings.TrimSuffix(Value(base.Cores, record.Cores), " cores"),
		Ratio(c.Rate/base.Rate), c.Response.Name)
	var roles []string
	for _, x := range c.Roles {
		if x.Part >= 0.005 {
			roles = append(roles, fmt.Sprintf("%s %.0f %%", x.Role, 100*x.Part))
		}
	}
	if len(roles) > 1 {
		s += "; " + strings.Join(roles, ", ")
	}
	return s + "."
}
