// Package collect reads figures of the machine while a trial runs. A collector is a folder
// below this one, listed in all/.
//
// The data path: 1. package trial opens each collector once a trial, with the scopes of
// all its sandboxes; 2. it alone owns the clock and calls Read at the study's rate; 3. it
// appends the samples to series. Package remote does the same from another process.
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
	// Check returns why this host lacks the source; nil if it has it.
	Check() error
	// Open prepares to read what belongs to the sandboxes on this machine.
	Open(context.Context, []sandbox.LocalScope) (Probe, error)
}

// Sourced is a Collector or Probe that can read in more than one way.
type Sourced interface {
	// Source names the way that is used on this host, and the reason if it is not the best:
	// "BPF task iterator", "files of /proc: ...".
	Source() string
}

// Probe is an opened collector. It starts no goroutines, and one goroutine at a time uses
// it.
type Probe interface {
	// Read appends the present samples to dst and returns it. It leaves out threads that have
	// ended. It searches new threads at every Read while that is cheap, and at least once a
	// second.
	Read(dst []record.Sample) ([]record.Sample, error)
	Close() error
}

// Stamped is a Probe whose samples have their own times, because they come from elsewhere
// with a delay. One Read may give several points of a series, oldest first.
type Stamped interface {
	Probe
	// Times returns when each sample of the last Read was taken, by this host's clock, in the
	// order in which Read appended them. It is valid until the next Read.
	Times() []time.Time
}

// Fetcher is a Stamped whose readings are kept where they are taken and come several at a time.
type Fetcher interface {
	Stamped
	// Fetch waits until all readings taken so far have come, so that the next Read returns them. It waits for a bounded time;
	// if they do not come, Read returns the reason after what has come.
	Fetch()
}
