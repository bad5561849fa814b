// Package site is the contract of a place where trials are made: this host, another
// machine, a cluster, or the model.
//
// The data path: 1. a command chooses a Site; 2. Open takes the place, cleans it, tries
// what the study needs and returns a Session; 3. package run asks the session for one
// trial after another; 4. Close gives the place back. docs/design/0022-site.md
// compares the sites.
package site

import (
	"context"
	"errors"
	"time"

	"tare/plan"
	"tare/record"
	"tare/study"
)

// Site is a place where trials are made.
type Site interface {
	// About says what the site is. It is the same for all studies.
	About() About
	// Preview says what a session would skip, and its pace. It takes the place for a
	// moment, runs no workload and leaves nothing behind.
	Preview(context.Context, Request) (Preview, error)
	// Open takes the place, removes what killed runs left there and prepares it for the
	// study.
	Open(context.Context, Request) (Session, error)
}

// About is what a command says of a site.
type About struct {
	// Flag selects the site in a command line, such as "--on model"; "" for this host.
	Flag string
	// Suffix ends the name of a new results folder, so that results of two sites are
	// kept apart.
	Suffix string
	// Modelled results were computed, not measured.
	Modelled bool
	// Cannot comes before the reasons for skipped cells: "this host cannot run".
	Cannot string
	// Nothing says that all cells are skipped, and what to do.
	Nothing string
}

// Request is what a command asks of a site.
type Request struct {
	Study     *study.Study
	Catalogue study.Catalogue
	Wait      bool // wait for another tare that has the place
	// Ticket is a Returning's, of an earlier session of the study that may still be there.
	Ticket []byte
	// Trying hears of each sandbox that is about to be tried, and for how long at most, 0
	// if that is not known. What it returns is called at the end of the try.
	Trying func(kind string, within time.Duration) (done func())
}

// Preview is what is known of a session before it opens.
type Preview struct {
	Skips []record.Skip // cells that cannot run here, and why
	// Pace is how long a trial takes this session where that is not what the trial says,
	// as in a rehearsal; 0 where it is.
	Pace time.Duration
	// AtOnce is how many trials, or blocks that take turns, are made on different machines at the same time after
	// Lasting.Lead; 0 or 1: one after another.
	AtOnce int
}

// Session makes the trials of one study. Only Trials may take long.
type Session interface {
	// Nodes are the machines that trials run on. There is at least one.
	Nodes() []record.Node
	// Preview is what was found when the session opened.
	Preview() Preview
	// Expected is how long a trial of the cell takes, before any has run.
	Expected(record.Cell) time.Duration
	// Trials makes the trials that plan.Plan.Together returns, within ctx: one, or those of a
	// block, measured in turns. It returns one trial for each, in the same order. If one went
	// wrong, its Failure says how. If the node is gone, the Failure has the kind
	// record.NodeLost, and no more trials are requested on that node.
	Trials(context.Context, []plan.Next) []record.Made
	// Close takes away what Open made, and gives the place back. It tells the user what it
	// cannot remove; `tare clean` finds that.
	Close()
}

// Lasting is a Session that can go on without whoever asks it for trials.
type Lasting interface {
	Session
	// Lead makes the trials that the study's plan asks for after those that are done, on several machines at once,
	// while somebody asks for trials. They are kept for Trials.
	Lead(done []record.Trial) error
	// GoOn makes the trials that the study's plan asks for after those that are done. They are kept
	// for Trials.
	GoOn(done []record.Trial) error
	// Leave is called in the place of Close if the session is to go on.
	Leave()
}

// Returning is a Lasting whose session another process can return to.
type Returning interface {
	Lasting
	// Ticket is a secret, with which Open returns to the session; nil after a Close that has ended it.
	Ticket() []byte
}

// ErrLeft is the cause with which the context of Trials ends if whoever asks is gone. Any other end
// is a wish to stop.
var ErrLeft = errors.New("whoever asked is gone")

// ErrInterrupted says that a context ended while a command waited or ran trials. What was
// finished is kept.
var ErrInterrupted = errors.New("interrupted")

// UnableError says that the site cannot do what was asked, in words that a user can act
// on. Nothing was started.
type UnableError struct{ Err error }

func (e *UnableError) Error() string { return e.Err.Error() }
func (e *UnableError) Unwrap() error { return e.Err }
