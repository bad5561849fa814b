// Package site is the contract of a place where trials run: this host, another
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

// Site is a place where trials run.
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

// About is what a command says about a site.
type About struct {
	// Flag selects the site in a command line, such as "--on model"; "" for this host.
	Flag string
	// Reach are more flags, which find the site but do not belong to its results, such as "--context prod"; "": none.
	Reach string
	// Resume writes the command that goes on with a results folder at the site of a flag; nil: that is `tare run`.
	Resume func(dir, flag string) string
	// Suffix ends the name of a new results folder, so that results of two sites are
	// kept apart.
	Suffix string
	// Modelled results were computed, not measured.
	Modelled bool
	// Cannot comes before the reasons for skipped cells: "this host cannot run".
	Cannot string
	// Nothing says that every cell is skipped, and what to do.
	Nothing string
}

// Request is what a command asks of a site.
type Request struct {
	Study     *study.Study
	Catalogue study.Catalogue
	Wait      bool // wait for another tare that holds the place
	// Ticket is from Returning.Ticket of an earlier session of the study, which may still exist.
	Ticket []byte
	// Keep is called before the session makes what outlives this process, with the ticket that leads to it, and with nil once
	// nothing of it is left. If Keep fails, the session does not open. nil: nobody returns.
	Keep func(ticket []byte) error
	// Trying is called before each try of a sandbox, with the most time that the try may
	// take; 0: unknown. The function that it returns is called at the end of the try.
	Trying func(kind string, within time.Duration) (done func())
}

// Preview is what is known about a session before it opens.
type Preview struct {
	Skips []record.Skip // cells that cannot run here, and why
	// Pace is how long this session needs for a trial, if that differs from the trial's
	// own time, as in a rehearsal. 0: it does not differ.
	Pace time.Duration
	// AtOnce is how many trials, or blocks that take turns, run on different machines at the same time after
	// Lasting.Lead. 0 or 1: one after another.
	AtOnce int
}

// Session makes the trials of one study. Only Trials may take long.
type Session interface {
	// Nodes are the machines on which trials run. There is at least one.
	Nodes() []record.Node
	// Preview is what was found when the session opened.
	Preview() Preview
	// Expected is how long a trial of the cell takes, before any has run.
	Expected(record.Cell) time.Duration
	// Trials makes the trials that plan.Plan.Together returns, within ctx: one, or those of a
	// block, measured in turns, or one after another if there is no room for all at once. It
	// returns one trial for each, in the same order. If one went wrong, its Failure says how. If the node is gone, the Failure has the kind
	// record.NodeLost or record.Unreached, and no more trials are requested on that node.
	Trials(context.Context, []plan.Next) []record.Made
	// Close removes what Open made, and gives the place back. It tells the user what it
	// cannot remove. `tare clean` finds that.
	Close()
}

// Lasting is a Session that can continue without its user.
type Lasting interface {
	Session
	// Lead makes the trials that the study's plan asks for after those that are done. It uses several machines at once,
	// and continues while the user asks for trials. It keeps the trials for Trials.
	Lead(done []record.Trial) error
	// GoOn makes the trials that the study's plan asks for after those that are done, without a
	// user. It keeps the trials for Trials.
	GoOn(done []record.Trial) error
	// Leave is called instead of Close if the session should continue.
	Leave()
}

// Returning is a Lasting session to which another process can return.
type Returning interface {
	Lasting
	// Ticket is a secret with which Open returns to the session. After Close it may lead nowhere (Request.Keep).
	Ticket() []byte
}

// ErrLeft is the cause with which the context of Trials ends if the user's connection is gone. Any other
// cause is a request to stop.
var ErrLeft = errors.New("whoever asked is gone")

// ErrInterrupted says that a context ended while a command waited or ran trials. Finished
// trials are kept.
var ErrInterrupted = errors.New("interrupted")

// FlagsError says that the flags of a command differ from those of the session to which it would return. Its text says what to
// write. The session continues unchanged.
type FlagsError struct{ Err error }

func (e *FlagsError) Error() string { return e.Err.Error() }
func (e *FlagsError) Unwrap() error { return e.Err }

// UnableError says that the site cannot do what a command asked, in words that a user can act
// on. The site has started nothing.
type UnableError struct{ Err error }

func (e *UnableError) Error() string { return e.Err.Error() }
func (e *UnableError) Unwrap() error { return e.Err }
