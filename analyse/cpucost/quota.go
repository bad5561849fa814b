package cpucost

import (
	"cmp"
	"maps"
	"slices"

	"tare/record"
)

// Names of the samples of a CPU limit in the measured window.
const (
	quotaMean        = record.CPUQuota + "_mean"                         // cores
	periodsRate      = record.CgroupPeriods + record.RateSuffix          // of enforcement, a second
	throttledPeriods = record.CgroupThrottledPeriods + record.RateSuffix // those in which the limit was reached
	throttledTime    = record.CgroupThrottledTime + record.RateSuffix    // seconds a second, summed over processors
)

// Quota is how much of its CPU quota one endpoint used in one treatment of a stratum, over the good
// trials that count. Cores is a geometric mean, as Cost.Cores is, so that both tables show the same
// figure, and the roles add up to it. The others are arithmetic means.
type Quota struct {
	record.CellKey
	Endpoint string `json:"end"` // role of the workload

	Trials    int     `json:"trials"` // good trials that have a quota
	Quota     float64 `json:"quota"`  // cores that the endpoint's cgroup may use
	Cores     float64 `json:"cores"`  // used, without tare's agent; 0 if no trial has a figure of it
	Source    string  `json:"source,omitempty"`
	Roles     []Role  `json:"roles,omitempty"`             // by thread role, the largest first; without Value
	Throttled float64 `json:"throttled_periods"`           // share of the quota's periods in which it was used up
	Time      float64 `json:"throttled_time"`              // held back, seconds a second, summed over processors: above 1 if several wait
	Unread    bool    `json:"throttling_unread,omitempty"` // throttling was not read: Throttled and Time are unknown, not zero
}

// Used returns the part of the quota that was used.
func (q *Quota) Used() float64 {
	if !(q.Quota > 0) {
		return 0
	}
	return q.Cores / q.Quota
}

// Quotas returns the quotas of all strata, in their order, and by the endpoints' names. It leaves
// out ends without a quota.
func Quotas(r *Reader, strata []Stratum) []Quota {
	var out []Quota
	for i := range strata {
		s := &strata[i]
		for j := range s.Cells {
			out = append(out, r.quotas(s, &s.Cells[j])...)
		}
	}
	return out
}

// endpointSum sums one endpoint's figures over trials.
type endpointSum struct {
	trials                          int
	quota, cores, periods, hits, at float64
	trial                           float64   // cores of the trial that is being read
	each                            []float64 // cores of each trial
	roles                           map[string]float64
}

func (r *Reader) quotas(s *Stratum, cell *Cell) []Quota {
	endpoints := make(map[string]*endpointSum)
	for _, block := range slices.Sorted(maps.Keys(cell.Trials)) {
		at := r.trials[cell.Trials[block].Identity()]
		of := r.figures[at.from:at.to]
		limited := make(map[string]*endpointSum)
		for _, f := range of {
			if k := &r.kinds[f.kind]; k.name == quotaMean && f.cores > 0 {
				if endpoints[k.endpoint] == nil {
					endpoints[k.endpoint] = &endpointSum{roles: map[string]float64{}}
				}
				limited[k.endpoint] = endpoints[k.endpoint]
				limited[k.endpoint].trials++
			}
		}
		for _, f := range of {
			k := &r.kinds[f.kind]
			e := limited[k.endpoint]
			if e == nil {
				continue
			}
			switch {
			case k.name == quotaMean:
				e.quota += f.cores
			case k.name == periodsRate:
				e.periods += f.cores
			case k.name == throttledPeriods:
				e.hits += f.cores
			case k.name == throttledTime:
				e.at += f.cores
			case k.group != r.roles:
				e.trial += f.cores
				if r.roles {
					e.roles[k.role] += f.cores
				}
			}
		}
		for _, e := range limited {
			if e.trial > 0 { // a short trial on another machine may have no figure
				e.cores += e.trial
				e.each = append(e.each, e.trial)
			}
			e.trial = 0
		}
	}
	var out []Quota
	for _, endpoint := range slices.Sorted(maps.Keys(endpoints)) {
		e := endpoints[endpoint]
		n := float64(e.trials)
		q := Quota{CellKey: record.CellKey{Workload: s.Workload, Stratum: s.Stratum, Shared: s.Shared, Treatment: cell.Treatment, Cell: cell.Cell, Baseline: cell.Baseline},
			Endpoint: endpoint, Trials: e.trials, Quota: e.quota / n, Source: r.source(), Time: e.at / n}
		if len(e.each) > 0 {
			q.Cores = typical(e.each)
		}
		q.Unread = e.periods == 0 && e.at == 0
		if e.periods > 0 {
			q.Throttled = min(1, e.hits/e.periods)
		}
		for role, cores := range e.roles {
			if e.cores > 0 && cores > 0 {
				q.Roles = append(q.Roles, Role{Role: role, Part: cores / e.cores, Cores: cores / e.cores * q.Cores})
			}
		}
		slices.SortFunc(q.Roles, func(x, y Role) int { return cmp.Or(cmp.Compare(y.Part, x.Part), cmp.Compare(x.Role, y.Role)) })
		out = append(out, q)
	}
	return out
}
