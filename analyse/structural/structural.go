// Package structural splits what an isolation costs into the part that is in its
// structure and the part that is in its making. Structural is what interception
// takes: each system call goes another way than into the kernel, and that way has
// a price whatever the call then does. Implementation is everything else.
//
// The data path: 1. package analyse gives its comparisons as rows, and the trials;
// 2. of each counting trial the system calls that the isolated endpoint made are kept,
// and of each trial of the cell that it repeats how many processors that end used;
// 3. the rows of the study's own workload "syscall" say what a call costs in each
// sandbox; 4. calls x cost is what is explained of the extra time an operation, and
// the difference is the rest.
//
// It is arithmetic on measured figures, not a model that is fitted: explained and
// rest always add up to the extra time. docs/structural-cost.md has the
// assumptions.
package structural

import (
	"tare/record"
)

// Share is one treatment of one stratum: what it costs an operation, and how much
// of that its system calls explain. Times are in seconds an operation. Nothing in
// it is NaN or infinite.
type Share struct {
	record.CellKey
	Response record.Response `json:"response"` // the first of the workload: operations come from it

	// Missing says why there are no figures, in words; "" when there are. Then all
	// below but Operation and Calls is zero, and these are if nothing was counted.
	Missing string `json:"missing,omitempty"`

	Operation string  `json:"operation"` // request, event, call, run, MB: bytes are taken by the million
	Native    float64 `json:"native"`    // the baseline's time
	Extra     Figure  `json:"extra"`     // the treatment's time less the baseline's; negative when it is faster

	Calls float64 `json:"calls"`         // system calls an operation, counted natively
	Top   []Call  `json:"top,omitempty"` // of them, the most frequent first, at most MaxTop
	Other float64 `json:"other"`         // calls an operation that Top leaves out

	Cost        Figure  `json:"cost"`        // seconds that the sandbox adds to a call that does nothing (getpid)
	Parallelism float64 `json:"parallelism"` // calls under way at once: processors that the isolated endpoint used natively, at least 1

	Explained Figure  `json:"explained"` // Calls x Cost / Parallelism: interception
	Rest      float64 `json:"rest"`      // Extra - Explained; negative when calls overlap with other work, or the sandbox spares some

	// OfCalls is the part of Rest that the calls' own work in the sandbox
	// explains: for the calls whose kind the study measures too (read, write,
	// open...), what these cost more than getpid does. Priced says how many calls
	// an operation that is.
	OfCalls float64 `json:"of_calls"`
	Priced  float64 `json:"priced"`

	Finding Finding `json:"finding,omitempty"`
}

// Figure is a value with its interval. The interval is that of the comparison
// which it comes from; Lo and Hi are zero without one.
type Figure struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo,omitempty"`
	Hi    float64 `json:"hi,omitempty"`
}

// HasInterval reports whether there is one.
func (f Figure) HasInterval() bool { return f.Lo != 0 || f.Hi != 0 }

// scale returns f times k, for k >= 0.
func (f Figure) scale(k float64) Figure { return Figure{f.Value * k, f.Lo * k, f.Hi * k} }

// Call is one system call of an operation.
type Call struct {
	Name         string  `json:"name"`
	PerOperation float64 `json:"per_operation"`
	Kind         string  `json:"kind,omitempty"` // level of the workload syscall that priced it; "" for none
	Cost         float64 `json:"cost,omitempty"` // seconds that the sandbox adds to one of that kind
}

// MaxTop is the most calls in Share.Top.
const MaxTop = 16

// Finding is what a share comes to.
type Finding string

// Findings. They need no margin of their own: the borders are thirds, and what is
// not clear of zero is said so first.
const (
	NoExtra        Finding = "no extra time"  // its interval reaches zero, or it is negative
	Structural     Finding = "structural"     // calls x cost is two thirds of it or more
	Mixed          Finding = "mixed"          // between one third and two
	Implementation Finding = "implementation" // a third of it or less
	Overlapped     Finding = "overlapped"     // calls x cost is more than all of it, by more than the intervals leave open
)

// Part returns the share of the extra time that is explained, and false where
// there is no extra time or no figures.
func (s *Share) Part() (float64, bool) {
	if s.Missing != "" || s.Finding == NoExtra || s.Extra.Value <= 0 {
		return 0, false
	}
	return s.Explained.Value / s.Extra.Value, true
}

// find names the finding.
func (s *Share) find() Finding {
	switch {
	case s.Extra.Value <= 0 || s.Extra.HasInterval() && s.Extra.Lo <= 0:
		return NoExtra
	case s.Rest < 0 && low(s.Explained) > high(s.Extra):
		return Overlapped
	case s.Explained.Value >= 2*s.Extra.Value/3:
		return Structural
	case s.Explained.Value <= s.Extra.Value/3:
		return Implementation
	}
	return Mixed
}

func low(f Figure) float64 {
	if f.HasInterval() {
		return f.Lo
	}
	return f.Value
}

func high(f Figure) float64 {
	if f.HasInterval() {
		return f.Hi
	}
	return f.Value
}
