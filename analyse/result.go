package analyse

import (
	"time"

	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/analyse/merit"
	"tare/analyse/published"
	"tare/analyse/stat"
	"tare/analyse/structural"
	"tare/analyse/summary"
	"tare/plan"
	"tare/record"
)

// Result is the analysis of one study, ready to be printed or exported. All of
// it is in the study's order, and nothing in it is NaN or infinite, so that
// encoding/json takes it.
type Result struct {
	Study      string        `json:"study"`
	Compare    string        `json:"compare"`  // the compared factor
	Baseline   string        `json:"baseline"` // its level
	Treatments []Treatment   `json:"treatments"`
	Common     []Common      `json:"common,omitempty"` // nested levels that tell no treatments apart
	Compared   []Comparison  `json:"comparisons"`
	Trials     int           `json:"trials"` // attempts on record
	Failed     int           `json:"failed"` // of them, those that count system calls left out
	Failures   []FailedTrial `json:"failures,omitempty"`
	Skips      []record.Skip `json:"skips,omitempty"`
	Warnings   []Warning     `json:"warnings,omitempty"`
	Overheads  []Overhead    `json:"overheads,omitempty"`
	Confidence float64       `json:"confidence"`       // that all intervals of a comparison, at all looks, cover the truth
	Level      float64       `json:"level"`            // nominal, of each single interval
	Margin     float64       `json:"margin"`           // ratios from 1/(1+margin) to 1+margin are equivalent
	Reason     string        `json:"reason,omitempty"` // why the study is finished; "" while it is not
	Finished   bool          `json:"finished"`
	Gaps       Gaps          `json:"gaps,omitzero"`
	Left       plan.Progress `json:"left"` // what is left when it is not

	Nodes []Node `json:"nodes,omitempty"` // that trials ran on, sorted by name; nil when there is one
	// BetweenNodes says how much the nodes differ in each comparison's first response; nil when there is one node.
	BetweenNodes []NodeShare `json:"between_nodes,omitempty"`

	Sentinel *Sentinel `json:"sentinel,omitempty"` // nil when the study has none
	Epochs   []Epoch   `json:"epochs,omitempty"`   // node by node; two or more of each that changed, nil while none did

	// Structural says, where system calls were to be counted, how much of each cost
	// they explain: one entry for each treatment of such a stratum.
	Structural []structural.Share `json:"structural,omitempty"`

	Discoveries *Discoveries `json:"discoveries,omitempty"` // nil when no row has a p-value

	Placements []Placement `json:"ends,omitempty"` // where each endpoint of the workloads ran, by stratum

	// Certificates say what both sides of each comparison shared, where their trials tell; sorted.
	Certificates []Certificate `json:"certificates,omitempty"`

	Published *published.Table `json:"published,omitempty"` // beside published figures; nil when the study asks for none

	Accelerators []Accelerator `json:"accelerators,omitempty"` // of the levels of the factor sandbox that are virtual machines

	Tables []summary.Table `json:"tables,omitempty"` // summary tables, as the study asks for them
	// Figures are tables of figures of merit, likewise.
	Figures []merit.Table `json:"figures,omitempty"`

	Tuned []Tuned `json:"tuned,omitempty"` // the level to set, by stratum, where the study looks for one

	CPUCosts []cpucost.Cost `json:"cpu_costs,omitempty"` // CPU time a unit of work costs, by stratum and treatment

	Quotas []cpucost.Quota `json:"quotas,omitempty"` // CPU by role against the quota, by stratum, treatment and end, where there is one

	Boots []Boot `json:"boots,omitempty"` // steps of the sandboxes' starts, by treatment, of kinds that tell them

	LoadSteps []LoadStep `json:"load_steps,omitempty"` // of loads that grow within a trial

	Others    []Others    `json:"others,omitempty"`    // what else used the machines' processors, by treatment
	Following []Following `json:"following,omitempty"` // comparisons whose ratio follows that

	// Causes say what bounds each cell; Advice what to set, the most worthwhile first.
	Causes []cause.Finding `json:"causes,omitempty"`
	Advice []advice.Item   `json:"advice,omitempty"`

	// Modelled: the figures are a model's, not a machine's (`tare run --on model`).
	Modelled bool `json:"modelled,omitempty"`
	// OnCluster: the trials ran on a Kubernetes cluster (`tare run --on k8s`).
	OnCluster bool `json:"on_cluster,omitempty"`
	// Imported: another tool measured, so nothing can be measured again (`tare import`).
	Imported bool `json:"imported,omitempty"`
	// Flags are the flags that selected the site of the first run; "" if the results do not have them (store.Meta).
	Flags string `json:"flags,omitempty"`

	Superseded []Superseded `json:"superseded,omitempty"` // good trials that do not count, because their block ran again
}

// Treatment is a column of the results: what distinguishes a cell within its
// stratum, the compared factor first.
type Treatment struct {
	Key      string      `json:"key"`
	Cell     record.Cell `json:"cell"`
	Baseline bool        `json:"baseline"`
}

// Comparison is one response of one treatment in one stratum, compared with the
// baseline's. The baseline itself is listed too, with Baseline set, its Level,
// and no ratio or verdict.
type Comparison struct {
	Workload  string          `json:"workload"` // its label in the study
	Kind      string          `json:"kind"`
	Stratum   string          `json:"stratum"` // Stratum.Key
	Shared    record.Cell     `json:"shared"`
	Treatment string          `json:"treatment"` // Treatment.Key
	Cell      record.Cell     `json:"cell"`      // the whole cell
	Baseline  bool            `json:"baseline,omitempty"`
	Response  record.Response `json:"response"`
	First     bool            `json:"first,omitempty"` // the response that stopping looks at
	Level     Level           `json:"level"`           // over all good trials of this cell
	Base      Level           `json:"base"`            // over all good trials of the baseline
	Estimate  stat.Estimate   `json:"estimate"`        // over the blocks that have both
	Verdict   stat.Verdict    `json:"verdict,omitempty"`
	Why       string          `json:"why,omitempty"`     // the verdict
	Needs     *Shortage       `json:"needs,omitempty"`   // nil unless the row ended undecided
	P         *float64        `json:"p,omitempty"`       // p-value against a ratio of 1, all looks allowed for (stat.Rule.P); nil without an interval
	Q         *float64        `json:"q,omitempty"`       // false discovery rate at which the row just counts among all rows with a P
	Ending    *plan.Ending    `json:"ending,omitempty"`  // why measuring stopped; nil while it goes on
	Skipped   string          `json:"skipped,omitempty"` // why this host cannot run the cell
	GaveUp    string          `json:"gave_up,omitempty"` // why the cell was given up
	Failed    int             `json:"failed,omitempty"`  // trials that failed, interrupted ones left out
	Failures  []Reason        `json:"failures,omitempty"`
	Steady    *Steadiness     `json:"steady,omitempty"`  // within the trials; nil when no series follows the response
	Scatter   *Scatter        `json:"scatter,omitempty"` // from start to start and from turn to turn; nil without turns
}

// Level sums up the good trials of a cell, the last good attempt of each block.
type Level struct {
	N          int         `json:"n"`
	Missing    int         `json:"missing,omitempty"`     // good trials without a usable value of the response
	BelowNoise int         `json:"below_noise,omitempty"` // of Missing: on record, but with a warning record.BelowNoise
	Unit       record.Unit `json:"unit,omitempty"`
	Typical    float64     `json:"typical"` // geometric mean when all values are positive, else the median
	Median     float64     `json:"median"`
	Min        float64     `json:"min"`
	Max        float64     `json:"max"`
	AtLeast    bool        `json:"at_least,omitempty"` // Typical is a lower bound, because pods or claims came late in half of the trials or more
}

// Reason is one way in which a cell's trials failed, and how often.
type Reason struct {
	Phase string `json:"phase"`
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Count int    `json:"count"`
}

// Gaps are the blocks in which all trials of some cell failed: such a block ran, but has no figure of the cell.
type Gaps struct {
	Blocks int    `json:"blocks"`
	Of     int    `json:"of"`
	Reason string `json:"reason"` // of the first failure in them
}

// FailedTrial is one trial that failed.
type FailedTrial struct {
	Seq     int            `json:"seq"`
	Block   int            `json:"block"`
	Attempt int            `json:"attempt"`
	Cell    record.Cell    `json:"cell"`
	Failure record.Failure `json:"failure"`
}

// Warning is a doubt, with the trials that it was raised in.
type Warning struct {
	Code   string   `json:"code"`
	Text   string   `json:"text"`
	Trials int      `json:"trials,omitempty"` // how many raised it; 0: the analysis itself did
	Cells  []string `json:"cells,omitempty"`  // Cell.Key of each, once
}

// Overhead is what measuring in one sandbox costs in addition to the workload:
// medians over its good trials.
type Overhead struct {
	Sandbox    string          `json:"sandbox"` // level of the compared factor
	Trials     int             `json:"trials"`
	Trial      time.Duration   `json:"trial"`            // a whole trial
	Starts     int             `json:"starts,omitempty"` // sandboxes of this kind started in those trials
	Start      time.Duration   `json:"start,omitempty"`  // of one, until a command can be run in it
	Stop       time.Duration   `json:"stop,omitempty"`   // of one, until nothing is left of it
	Life       time.Duration   `json:"life,omitempty"`   // of one whose program does nothing, from the call until nothing is left of it
	Phases     []PhaseTime     `json:"phases,omitempty"`
	Noop       time.Duration   `json:"noop,omitempty"` // a whole trial of the noop workload: the harness's own cost
	NoopTrials int             `json:"noop_trials,omitempty"`
	Collectors []CollectorCost `json:"collectors,omitempty"`     // on the host
	Idle       *float64        `json:"idle,omitempty"`           // cores that it used between its turns, while others were measured; nil without turns
	Agent      *float64        `json:"agent_in_guest,omitempty"` // CPU of tare's agent in a guest, as the guest counts it: cores; nil without guests
}

// Idles reports whether a sandbox used so much between its turns that it matters.
func (o *Overhead) Idles() bool { return o.Idle != nil && *o.Idle > record.IdleMost }

// PhaseTime is the median duration of a phase, such as start or stop.
type PhaseTime struct {
	Name   string        `json:"name"`
	Trials int           `json:"trials"`
	Median time.Duration `json:"median"`
	// Lo and Hi are the 95 % interval of the median, of the steps of a start; 0 with fewer than 6 starts.
	Lo time.Duration `json:"lo,omitempty"`
	Hi time.Duration `json:"hi,omitempty"`
	// Fine is how fine the time of a step is known; 0: nobody says. Poll is how often the kubelet looks whether it has ended.
	Fine time.Duration `json:"fine,omitempty"`
	Poll time.Duration `json:"poll,omitempty"`
}

// CollectorCost is the median CPU that a collector itself used.
type CollectorCost struct {
	Name  string  `json:"name"`
	Cores float64 `json:"cores"`
}

// Rows groups Compared by stratum and response, in order: a row of the table
// each. The slices are parts of Compared.
func (r *Result) Rows() [][]Comparison {
	var out [][]Comparison
	for i := 0; i < len(r.Compared); {
		j := i + 1
		for j < len(r.Compared) && r.Compared[j].Stratum == r.Compared[i].Stratum &&
			r.Compared[j].Response.Name == r.Compared[i].Response.Name {
			j++
		}
		out = append(out, r.Compared[i:j:j])
		i = j
	}
	return out
}
