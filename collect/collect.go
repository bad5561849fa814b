// Package collect reads what the machine does while a trial runs. A collector
// is a folder below this one, listed in all/.
//
// The data path: 1. run opens each collector once a trial, with the scopes of
// all its sandboxes; 2. run alone owns the clock and calls Read at the study's
// rate; 3. run appends the samples to series and records the CPU that reading
// them took.
package collect

import (
	"context"
	"time"

	"tare/record"
	"tare/sandbox"
)

// Collector reads one source of the kernel's figures.
type Collector interface {
	Name() string
	// About is one sentence for `tare list`, naming the kernel document.
	About() string
	// Series describes what Read returns.
	Series() []record.Response
	// Check says why the source is missing on this host; nil when it is there.
	Check() error
	Open(context.Context, []sandbox.Scope) (Probe, error)
}

// Sourced is a Collector, or a Probe, that can read in more than one way.
type Sourced interface {
	// Source says in a few words which way it is on this host, and why if it is
	// not the best one: "BPF task iterator", "files of /proc: ...".
	Source() string
}

// Probe is an opened collector. It has no goroutines of its own and is used by
// one goroutine at a time.
type Probe interface {
	// Read appends the present samples to dst and returns it. Threads that have
	// gone are left out silently; new ones are looked for at every Read as long
	// as that is cheap, and at least once a second.
	Read(dst []record.Sample) ([]record.Sample, error)
	Close() error
}

// Stamped is a Probe whose figures have times of their own: they come from
// elsewhere, some time after they were true. One Read may give several points of a
// series, oldest first.
type Stamped interface {
	Probe
	// Times tells when each sample of the last Read was true, on this host's clock, in
	// the order in which Read appended them. It is valid until the next Read.
	Times() []time.Time
}
