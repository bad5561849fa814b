// Package cpucost computes the CPU time of a unit of work in each sandbox: CPU seconds a
// gigabyte, request or operation, including the sandbox's helper threads on the host, and
// the same for the baseline.
//
// The data path: 1. of each good trial the CPU rates of the endpoints that are
// sandboxed in the stratum are added up, by role (Reader, while trials are
// loaded); 2. divided by the trial's rate of work they are CPU seconds a unit; 3. the values
// of treatment and baseline in the same block become pairs, from which package stat
// computes ratios.
//
// The same ends count in the baseline as in the sandboxes: those that are sandboxed there.
// Work of the host that it charges to nobody (softirqs, the other endpoint's half of a local
// network) does not count on either side, and neither do tare's agent and threads (role
// harness).
package cpucost

import (
	"tare/analyse/stat"
	"tare/record"
)

// Cost is the CPU cost of a unit of work in one treatment of a stratum.
type Cost struct {
	record.CellKey
	Response  record.Response `json:"response"`         // the rate that counts work
	Unit      string          `json:"unit"`             // of work: GB, request, event
	Endpoints []string        `json:"ends"`             // roles of the workload whose CPU is counted, here and in the baseline
	Source    string          `json:"source,omitempty"` // of the CPU figures: FromRoles or FromCgroup

	Trials int     `json:"trials"`          // good trials that have both
	Cores  float64 `json:"cores,omitempty"` // CPU seconds a second: geometric mean
	Rate   float64 `json:"rate,omitempty"`  // of the response: geometric mean
	Value  float64 `json:"value,omitempty"` // CPU seconds a unit of work: geometric mean
	Roles  []Role  `json:"roles,omitempty"` // by thread role, the largest first; they add up to Cores and Value

	Estimate stat.Estimate `json:"estimate"` // ratio of Value to the baseline's, within blocks; zero for the baseline itself
	Verdict  stat.Verdict  `json:"verdict,omitempty"`
	Missing  string        `json:"missing,omitempty"` // why there is no value, or no ratio
}

// Sources of a study's figures; the first that it has is used. The roles of an endpoint add up to
// its cgroups without tare's agent.
const (
	FromRoles  = "roles"  // collector proc: cpu_time by endpoint and role
	FromCgroup = "cgroup" // collector cgroup: cgroup_cpu by endpoint
)

// Role is the part of one thread role (record.ThreadRole).
type Role struct {
	Role  string  `json:"role"`
	Part  float64 `json:"part"`  // of the CPU, over the trials together
	Cores float64 `json:"cores"` // Part of Cost.Cores
	Value float64 `json:"value"` // Part of Cost.Value
}
