// Package study turns the text of a study file into a Study: factors, levels,
// workloads, the stopping rule. Every error names file, line and column and
// says what to write instead.
//
// The data path: 1. Parse reads the YAML strictly, keeping positions; 2. names
// and values are checked against a Catalogue of workloads, sandboxes and
// collectors; 3. expand makes the cells and groups them into strata.
package study

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/param"
	"tare/record"
)

// Study is a checked study file. It is not changed after Parse.
type Study struct {
	Name      string
	About     string
	Seed      uint64
	Compare   string // the compared factor, "sandbox" unless said
	Baseline  string // its level that the others are compared with
	Factors   []Factor
	Workloads []Workload
	Strata    []Stratum
	Stop      Stop
	Budget    Budget
	Collect   Collect
	Victim    *Victim       // runs beside the load of each trial; nil: none
	Sentinel  *Sentinel     // watches the machine; nil: none
	Calls     bool          // system calls are counted; see Stratum.Counting
	Published string        // the published figures that the results are set beside, one of PublishedSets; "" none
	Tables    []Table       // summary tables of the report
	Figures   []Figure      // tables of figures of merit
	Retries   int           // of a failed trial
	Timeout   time.Duration // of one trial; 0: four times what it is expected to take, and a minute
	// VoidLimits: a trial fails if a limit that was asked for is not in force.
	VoidLimits bool
	Sandboxes  []Sandbox                // defined by the study itself
	Traits     map[string]record.Traits // of the catalogue's sandboxes and the study's own, by name
	// Files are the texts of files, by the parameter of type param.File and the path as
	// written; nil: the study names none.
	Files map[string]map[string]string
	// Notes are doubts about the files: FILE:LINE:COLUMN: what may not be meant; what to write.
	Notes []string
	// Source is the text as given and, where it names files, a section with their
	// texts behind it: all that is needed to read it again.
	Source    []byte
	Overrides []string // the --set arguments that were applied
	Dropped   []string // factors of the file that no sandbox has which Overrides left
	// Unpriced says why no calls are counted where the study file has them counted and
	// Overrides left out the workload that says what one costs; else "".
	Unpriced string
}

// Factor is what is varied.
type Factor struct {
	Name   string
	Levels []string
}

// Workload is one entry of the study's workloads: a level of the factor
// "workload".
type Workload struct {
	Label     string // the level's name in the study
	Kind      string // workload.Workload's Name
	Params    param.Values
	Responses []string // compared, the first decides when to stop
	Turns     int      // in which the cells of a block are weighed, in sandboxes that start together; 0: one cell after another
	AutoTurns bool     // Turns are those of the first blocks; what they show decides about the others
	Line      int      // in the study file
}

// Stratum holds the cells that differ only in the compared factor and in the
// factors nested under it (a vCPU count that only VMs have). One pass through a
// stratum's cells is a block.
type Stratum struct {
	Key      string // Cell.Key of the factors that its cells share
	Shared   record.Cell
	Workload int           // index into Study.Workloads
	Cells    []record.Cell // every treatment, in the study's order

	Responses []string      // those of the workload's that this stratum has; the first decides when to stop
	Better    record.Better // of the first
	Baseline  int           // index into Cells; -1 when it is excluded
	Places    [][]int       // of each of Cells in each of Stop.Factors, from 0, in the order of its levels; nil without these
	Counting  record.Cell   // of the trial that counts its system calls, CountingCell of one of Cells; nil: none does
	// Uncounted says why none does, where the study counts calls; else "".
	Uncounted string
}

// Treatment returns what distinguishes a cell within its stratum: the compared
// factor first, then the nested ones.
func (s *Study) Treatment(stratum int, cell record.Cell) record.Cell {
	var out record.Cell
	for _, l := range cell {
		if _, ok := s.Strata[stratum].Shared.Get(l.Factor); !ok {
			out = append(out, l)
		}
	}
	return out
}

// LevelOf names the cell of a stratum with this index by its level of the compared factor, and by all of its
// treatment where other factors are nested under that, or tuned with it. It is "" for an index below 0.
func (s *Study) LevelOf(stratum, index int) string {
	if index < 0 {
		return ""
	}
	c := s.Treatment(stratum, s.Strata[stratum].Cells[index])
	if own, ok := c.Get(s.Compare); ok && len(c) == 1 {
		return own
	}
	return c.Key()
}

// Tuned are the factors for which Stop.Tune looks.
func (s *Study) Tuned() []string {
	if len(s.Stop.Factors) > 0 {
		return s.Stop.Factors
	}
	return []string{s.Compare}
}

// WorkloadOf returns the workload of a stratum with the responses that it has
// there, and with the levels that all of its cells share among its Params. Levels of
// other things (isolate, a sandbox's own) are among them too.
func (s *Study) WorkloadOf(stratum int) Workload {
	return s.WorkloadIn(stratum, s.Strata[stratum].Shared)
}

// WorkloadIn is WorkloadOf with all levels of one cell among its Params. They differ from those of
// the stratum if the study compares a parameter of the workload.
func (s *Study) WorkloadIn(stratum int, levels record.Cell) Workload {
	st := &s.Strata[stratum]
	if st.Workload < 0 || st.Workload >= len(s.Workloads) {
		return Workload{}
	}
	w := s.Workloads[st.Workload]
	params := make(param.Values, len(w.Params)+len(levels))
	maps.Copy(params, w.Params)
	for _, l := range levels {
		if l.Factor != FactorWorkload && l.Factor != FactorSandbox {
			params[l.Factor] = l.Value
		}
	}
	s.embed(params)
	if copies := copiesIn(st.Cells); copies != "" {
		params[FactorCopies] = copies // its responses depend on it, whether it varies here or not
	}
	w.Params = params
	if st.Responses != nil {
		w.Responses = st.Responses
	}
	return w
}

// Resolved is a cell in terms of what run has to do.
type Resolved struct {
	Workload    Workload
	Params      param.Values  // of the workload, the cell's levels applied, filled
	Sandbox     string        // name of the kind
	Traits      record.Traits // of the sandbox with its Options, as far as the catalogue knows them
	Isolate     string        // server, client or both
	CPULimit    float64       // cores; 0 none
	MemoryLimit int64         // bytes; 0 none
	CPUs        string        // of the sandbox, as a cpuset list; "" any
	Victim      *Resolved     // what runs beside it; nil: nothing
	Alone       bool          // the victim has nothing beside it: the workload does not run
	Copies      int           // of the workload's roles at once, each with sandboxes of its own; 0: the study does not say, so one
	Spread      bool          // copy i is on the i-th node from the block's on, round and round
	Apart       bool          // each endpoint of a workload with several has processors of its own
	LinkDelay   time.Duration // that packets between two endpoints take longer, each way
	LinkRate    int64         // bytes a second each way; 0 none
	LinkPath    string        // a Path of record; "": one bridge, or one node
	Options     param.Values  // of the kind
	// Settings are levels of the host's kernel settings, by factor; nil: the study has no such factor.
	Settings map[string]string
}

// StopAdaptive is the word for Stop.Adaptive.
const StopAdaptive = "adaptive"

// TuneBest is the word for the best level itself in stop.tune.
const TuneBest = "best"

// Stop is the stopping rule.
type Stop struct {
	Fixed      int     // blocks, whatever they show; 0: the looks decide
	Looks      []int   // blocks after which to look
	Confidence float64 // of the intervals, 0.95
	Width      float64 // relative half-width of the interval that is narrow enough; half of Margin unless said
	Margin     float64 // ratios within 1 +- Margin are equivalent, 0.03
	// Adaptive ends a comparison where its verdict is clear, or hardly possible, instead of where its
	// interval is narrow.
	Adaptive bool
	// Tune is the share of the best that the fewest level of the compared factor is to reach; 1: the
	// best itself. The blocks then measure only levels that may be the answer (analyse/tune). 0: no level
	// is looked for.
	Tune float64
	// Objective is what the highest level of the compared factor, a load, is looked for with; nil: none is.
	Objective *Objective
	// Factors are those that Tune looks for together, Compare the first of them; nil: Compare alone.
	Factors []string
	// Mix has the weights of the workloads, by label, for which Tune looks for one level; nil: each
	// stratum has a level of its own.
	Mix map[string]float64
}

// Searches reports whether the blocks look for a level.
func (s Stop) Searches() bool { return s.Tune > 0 || s.Objective != nil }

// widest is the largest share of the margin that a width may be without a warning. An interval
// of half-width w lies within the margin m if the estimate is less than m - w off. Where
// trials repeat to 2 %, 88 % of equal things were called equivalent with a width of 2/3 of
// the margin, and 43 % with 0.97 of it (simulated).
const widest = 2. / 3

// Wide says that a study mostly stops before it can tell that two things are equal, and what
// to write; "" if it does not.
func (s Stop) Wide() string {
	if s.Fixed > 0 || s.Searches() || s.Adaptive {
		return ""
	}
	return s.WideAt(s.Width)
}

// WideAt is Wide for another width.
func (s Stop) WideAt(width float64) string {
	switch {
	case width <= widest*s.Margin+1e-12:
		return ""
	case width <= s.Margin:
		return fmt.Sprintf("the width of %.3g%% is near the margin of %.3g%%, so intervals are often too wide to call equal things equivalent; write width: %.3g%%, or leave it out",
			100*width, 100*s.Margin, 50*s.Margin)
	}
	return fmt.Sprintf("the width of %.3g%% is above the margin of %.3g%%, so intervals are mostly too wide to call equal things equivalent; write width: %.3g%%, or leave it out",
		100*width, 100*s.Margin, 50*s.Margin)
}

// Bare says that no row of a study can have an interval, and what to write; "" if rows can,
// or if the study compares nothing. least is the number of blocks that an interval takes.
func (s *Study) Bare(least int) string {
	if !compares(s.Strata) || s.Stop.Fixed == 0 || s.Stop.Fixed >= least {
		return ""
	}
	return fmt.Sprintf("fixed: %d gives no interval and no verdict, because they need %d blocks; write fixed: %d or more", s.Stop.Fixed, least, least)
}

// compares reports whether any stratum has a baseline and another cell.
func compares(strata []Stratum) bool {
	return slices.ContainsFunc(strata, func(s Stratum) bool { return s.Baseline >= 0 && len(s.Cells) > 1 })
}

// Budget bounds a study. Zero: no bound.
type Budget struct {
	Blocks int
	Time   time.Duration // of measuring, start and stop of sandboxes included
}

// Collect says which collectors run, and how often.
type Collect struct {
	Names    []string
	Interval time.Duration
}

// Sandbox is a sandbox that the study defines.
type Sandbox struct {
	Name   string
	Kind   string       // Base.Name
	Values param.Values // of all of the base's Keys
	Line   int

	info SandboxInfo
}

// String is the definition without its name: oci runtime=youki.
func (s Sandbox) String() string {
	parts := []string{s.Kind}
	for _, k := range sortedKeys(s.Values) {
		if s.Values[k] != "" {
			parts = append(parts, k+"="+strings.Join(s.Values.List(k), " "))
		}
	}
	return strings.Join(parts, " ")
}

// Boxes are the sandboxes that a study uses: levels of its factors, and what it says of its victim.
func (s *Study) Boxes() []string {
	var out []string
	for _, f := range s.Factors {
		if f.Name == FactorSandbox || f.Name == FactorVictimSandbox {
			out = append(out, f.Levels...)
		}
	}
	if s.Victim != nil {
		if box, ok := s.Victim.Levels.Get(FactorSandbox); ok {
			out = append(out, box)
		}
	}
	return out
}

// Both is the level of FactorIsolate that isolates all ends of a workload.
const Both = "both"

// isolateDefault is the end that is isolated where FactorIsolate has no level.
const isolateDefault = "server"

// Isolated reports whether a role of a workload is in the sandbox under a level of
// FactorIsolate. A single role always is, whatever its name. A workload that has two
// roles only under some parameters does not have the factor ("", Both), and all of it
// is isolated. What holds for a role holds for its copies; roles counts those of one copy.
func Isolated(isolate, role string, roles int) bool {
	role, _ = record.CopyOf(role)
	return roles == 1 || isolate == Both || isolate == "" || isolate == role
}

// IsolateOf is a cell's level of FactorIsolate, or that of workloads with two endpoints
// without one.
func IsolateOf(c record.Cell) string {
	if v, ok := c.Get(FactorIsolate); ok {
		return v
	}
	return isolateDefault
}

// Names of the factors that tare itself knows, beside the workloads' and the
// sandboxes' own parameters.
const (
	FactorWorkload    = "workload"
	FactorSandbox     = "sandbox"
	FactorIsolate     = "isolate"
	FactorCPULimit    = "cpu-limit"
	FactorMemoryLimit = "memory-limit"
	FactorCPUs        = "cpus"
	FactorLinkDelay   = "link-delay"
	FactorLinkRate    = "link-rate"
	FactorLinkPath    = "link-path"
	FactorCopies      = "copies"
	FactorCopiesOn    = "copies-on"
)

// Levels of the factor cpus that are not lists.
const (
	AnyCPU    = "any"   // where the scheduler likes
	ApartCPUs = "apart" // each endpoint of a workload that has several on cores of its own
)
