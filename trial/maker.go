// Package trial puts a trial together from a workload's roles, sandboxes and collectors:
// it alone owns a trial's time, its concurrency and its clean-up. It is the same at every
// site that runs real sandboxes; what differs is behind Place.
//
// The data path: 1. Skips tries every sandbox and tool that the study names and says
// which cells cannot run; 2. Trial prepares the place, starts the sandboxes, warms up,
// measures, stops and cleans up, in that order (trial.go); 3. the caller keeps the trial.
package trial

import (
	"time"

	"tare/collect"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// Maker makes the trials of one study. Collectors, Counting and Trying may be nil. Needs,
// NeedsImages, NeedsNetwork and Expected want the Study, the Catalogue, the Kinds and the
// Workloads alone.
type Maker struct {
	ID         string // unique at the site; begins the name of every trial
	Study      *study.Study
	Catalogue  study.Catalogue
	Kinds      map[string]sandbox.Kind
	Workloads  map[string]workload.Workload
	Collectors []collect.Collector
	Counting   collect.Collector // of counting trials alone; nil: no calls are counted
	Place      Place
	// Nodes are those of the Place, sorted by name, for trials on several of them (record.PathNodes, study.CopiesSpread).
	// Fewer than two: the Place is one node.
	Nodes []string
	// Alone are the keys of the strata that have no room for all sandboxes of a block at once. Their trials run one after another.
	Alone []string
	// Trying hears of each kind that Skips is about to try, and for how long at most, 0 if
	// that is not known; what it returns is called when that has ended.
	Trying func(kind string, within time.Duration) (done func())

	serverTime time.Duration // that a server has to come up; 0: the constant of this name
}

// cleanupTime bounds the end of a trial, whatever state it is in.
const cleanupTime = 30 * time.Second
