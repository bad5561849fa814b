// Package cpucost says what CPU time a unit of work costs in each sandbox: CPU
// seconds a gigabyte, a request, an operation, with all the helpers that a sandbox
// has on the host, beside the baseline's.
//
// The data path: 1. of each good trial the CPU rates of the ends that are
// sandboxed in the stratum are added up, by role (Reader, while trials are
// loaded); 2. divided by the trial's rate of work they are CPU seconds a unit; 3.
// the values of treatment and baseline in the same block become pairs, and package
// stat sums them up as it does any ratio.
//
// Counted are the same ends in the baseline as in the sandboxes: those that are in
// the sandbox there. Whatever else the host does for them and charges to nobody
// (softirqs, the other end's half of a local network) is not counted on either
// side, and tare's own agent and threads (role harness) are left out.
package cpucost

import (
	"tare/analyse/stat"
	"tare/record"
)

// Cost is what a unit of work costs in one treatment of a stratum.
type Cost struct {
	Workload  string          `json:"workload"`
	Stratum   string          `json:"stratum"`
	Shared    record.Cell     `json:"shared"`
	Treatment string          `json:"treatment"`
	Cell      record.Cell     `json:"cell"`
	Baseline  bool            `json:"baseline,omitempty"`
	Response  record.Response `json:"response"`         // the rate that work is counted by
	Unit      string          `json:"unit"`             // of work: GB, request, event
	Ends      []string        `json:"ends"`             // roles of the workload whose CPU is counted, here and in the baseline
	Source    string          `json:"source,omitempty"` // of the CPU figures: FromRoles or FromCgroup

	Trials int     `json:"trials"`          // good ones that have both
	Cores  float64 `json:"cores,omitempty"` // CPU seconds a second: geometric mean
	Rate   float64 `json:"rate,omitempty"`  // of the response: geometric mean
	Value  float64 `json:"value,omitempty"` // CPU seconds a unit of work: geometric mean
	Roles  []Role  `json:"roles,omitempty"` // whose threads they were, the most first; they add up to Cores and Value

	Estimate stat.Estimate `json:"estimate"` // of Value to the baseline's, within blocks; not of the baseline itself
	Verdict  stat.Verdict  `json:"verdict,omitempty"`
	Missing  string        `json:"missing,omitempty"` // why there is no value, or no ratio
}

// Where the figures of a study come from, the first that it has. The roles of an
// end add up to its cgroups, less tare's own agent.
const (
	FromRoles  = "roles"  // collector proc: cpu_time by end and role
	FromCgroup = "cgroup" // collector cgroup: cgroup_cpu by end
)

// Role is one role's part of the CPU: vcpu, vhost, virtiofsd, vmm, sentry, gofer,
// workload. The role unattributed is charged to the end's cgroups, and no thread
// is known that it was.
type Role struct {
	Role  string  `json:"role"`
	Part  float64 `json:"part"`  // of the CPU, over the trials together
	Cores float64 `json:"cores"` // Part of Cost.Cores
	Value float64 `json:"value"` // Part of Cost.Value
}
