// Package cause says what bounds each cell of a study, and so what its isolation's cost
// comes from: the CPU quota, one busy helper thread, the guest's processors, the longer
// path. It tells by readings, never by the name of a sandbox.
//
// The data path: 1. a Reader takes from each trial what was read of its ends and its
// host over the measured window, while trials are loaded; 2. Build puts the readings
// of a cell's good trials beside those of its baseline, and beside those of the cells
// that differ from it in one factor alone (message size, connections); 3. each rule
// says by how much its cause is seen, and by what it is excluded; 4. the strongest
// that nothing excludes is the Finding, with all the readings.
//
// docs/cause.md says how each cause is decided, with its figures and limits.
package cause

import "tare/record"

// Name is the name of a cause.
type Name string

// Causes. Those that a model can plant are spelled as in package model.
const (
	Connections  Name = "connections"  // a server takes no more connections: they wait at its port
	Behind       Name = "behind"       // servers behind what the load goes to, or the network: time in which nothing that was read is busy
	None         Name = "none"         // nothing of the sandbox or its host bounds the cell: the load itself does
	Quota        Name = "quota"        // the cgroup's CPU quota
	Helper       Name = "helper"       // one thread beside the guest is full: vhost, I/O thread, VMM's main loop, sentry, virtiofsd
	Guest        Name = "guest"        // all processors of the guest, or all that the sandbox may use, are full
	GuestOne     Name = "guest-one"    // one is: a workload of a single thread
	Emulation    Name = "emulation"    // the guest's processor is emulated in software, so that all of its work takes longer
	Host         Name = "host"         // the host's processors are full
	Steal        Name = "steal"        // a hypervisor below the host takes its processors away
	SoftIRQ      Name = "softirq"      // one of the host's processors is full of interrupts
	Link         Name = "link"         // the network link
	IOLimit      Name = "io-limit"     // the cgroup's limit of bytes or requests of a disk
	Device       Name = "device"       // the disk is full: it does no more when more is asked of it
	Depth        Name = "depth"        // too few requests are in flight: the disk would do more
	Fsync        Name = "fsync"        // waiting until what was written is on the disk: the journal, the disk's cache
	PageCache    Name = "page-cache"   // the requests of one side never reached a disk
	Gofer        Name = "gofer"        // round trips to the process that opens and reads files for the sandbox
	Path         Name = "path"         // a longer way: a constant added time, whatever the size
	Saturation   Name = "saturation"   // a constant factor under load, and no thread is full: places in a queue
	Imbalance    Name = "imbalance"    // one of the guest's processors takes the interrupts
	Interception Name = "interception" // system calls x what the sandbox adds to one
	Other        Name = "other"        // something else: no cause that has a name explains it
	Untold       Name = "untold"       // several would explain it; Finding.Among lists them
	Unknown      Name = "unknown"      // what would tell was not read; Finding.Missing says what
)

// Names lists all of them, in the order in which they are shown.
func Names() []Name {
	return []Name{Quota, Helper, Guest, GuestOne, Emulation, Host, Steal, SoftIRQ, Link, IOLimit, Device, Depth, Fsync, PageCache, Gofer, Path, Saturation, Imbalance, Interception, Connections, Behind, None, Other, Untold, Unknown}
}

// Finding is what bounds one cell. Nothing in it is NaN or infinite.
type Finding struct {
	record.CellKey
	Response record.Response `json:"response"`        // the one that stopping looks at
	Ratio    *float64        `json:"ratio,omitempty"` // of it to the baseline's; nil without one
	Costs    bool            `json:"costs,omitempty"` // the verdict on it is worse than the baseline: Cause is that of a cost
	// Undecided: the verdict is not decided, for want of blocks or because its interval
	// holds 1. Neither Costs nor Undecided: as good as the baseline, or better.
	Undecided bool `json:"undecided,omitempty"`

	Endpoint   string  `json:"end,omitempty"` // role of the workload whose readings decide: server, client
	Cause      Name    `json:"cause"`
	Role       string  `json:"role,omitempty"`       // of the thread that is full: vhost, vmm, sentry; of Helper. Of Through, what is full: load, controller, backend
	Through    bool    `json:"through,omitempty"`    // the load passes through others' pods, and Cause is what bounds it, whatever it costs
	Among      []Name  `json:"among,omitempty"`      // of Untold: the likelier first
	Missing    string  `json:"missing,omitempty"`    // of Unknown: what was not read, and what to write to read it
	Confidence float64 `json:"confidence,omitempty"` // 0 to 1, that the cause is this and no other; docs/cause.md
	Trials     int     `json:"trials"`               // good ones that were read
	Text       string  `json:"text"`                 // one sentence with the figures that decided

	Readings []Reading `json:"readings,omitempty"` // what supports it first, then what excludes others
	Added    *Fit      `json:"added,omitempty"`    // time that the sandbox adds, over the sizes of this cell's family
	Factor   *Fit      `json:"factor,omitempty"`   // ratio of times to the baseline's, over the connections or jobs of its family

	Price *Price `json:"price,omitempty"` // CPU a unit of work beside the baseline; nil where there is none, and of the baseline
}

// suspected is the ratio from which an undecided cell is looked at as one that costs is.
const suspected = 1.1

// unsure is how much less sure the cause of such a cell is.
const unsure = 0.9

// Suspect reports whether a cell looks worse than its baseline by more than a tenth, and
// nothing is decided: few trials, or trials that vary. Of a response that has no better
// direction it is a ratio either way.
func (f *Finding) Suspect() bool {
	return f.looksWorse(suspected)
}

// looksWorse reports whether nothing is decided about a cell and it looks worse than its
// baseline by more than a factor.
func (f *Finding) looksWorse(than float64) bool {
	if !f.Undecided || f.Ratio == nil || !(*f.Ratio > 0) {
		return false
	}
	r := *f.Ratio
	switch f.Response.Better {
	case record.Higher:
		return r < 1/than
	case record.Lower:
		return r > than
	}
	return r > than || r < 1/than
}

// Reading is one figure that a finding rests on.
type Reading struct {
	About Name        `json:"about"` // the cause that it speaks for or against
	Says  Says        `json:"says"`
	Name  string      `json:"name"` // in words: vhost thread, share of a core
	Value float64     `json:"value"`
	Lo    float64     `json:"lo"` // lowest and highest trial
	Hi    float64     `json:"hi"`
	Unit  record.Unit `json:"unit"`
	// Endpoint is the end that it is of, if not the finding's.
	Endpoint string  `json:"end,omitempty"`
	Limit    float64 `json:"limit,omitempty"` // beyond which the cause is taken to be there
	// Series names what to plot for it: the names of collected series, of End.
	Series []string `json:"series,omitempty"`
	Roles  []string `json:"roles,omitempty"` // only those of these roles; nil: all
}

// Says is what a reading does to its cause.
type Says string

// What readings say.
const (
	Supports Says = "supports"
	Excludes Says = "excludes"
	Silent   Says = "silent" // near the limit: neither
)

// Fit is a line through a family of cells: Y = Constant + Slope x X.
type Fit struct {
	Over     string    `json:"over"` // the factor: size, connections
	Unit     string    `json:"unit"` // of Y: s, or ratio
	X        []float64 `json:"x"`
	Y        []float64 `json:"y"`
	Constant float64   `json:"constant"`
	Lo       float64   `json:"lo"` // interval of Constant, at the study's confidence
	Hi       float64   `json:"hi"`
	Slope    float64   `json:"slope"` // of Y for a unit of X
	SlopeLo  float64   `json:"slope_lo"`
	SlopeHi  float64   `json:"slope_hi"`
}

// Price is what the work costs in CPU, whatever its speed.
type Price struct {
	Unit  string  `json:"unit"`  // of work: GB, request
	Cores float64 `json:"cores"` // used here
	Base  float64 `json:"base"`  // used by the baseline
	Ratio float64 `json:"ratio"` // CPU time a unit of work to the baseline's
	Lo    float64 `json:"lo,omitempty"`
	Hi    float64 `json:"hi,omitempty"`
}
