// Package claim describes two things that sites report: who holds a place where trials run,
// and what killed runs left there.
package claim

import (
	"fmt"
	"time"
)

// Holder is who holds a place.
type Holder struct {
	Pid   int       `json:"pid"`
	What  string    `json:"what"`
	Since time.Time `json:"since"`
}

// HeldError says that another process holds the place. Find it with errors.As. Holder is zero
// if it is unknown.
type HeldError struct{ Holder Holder }

// Error names the holder and what to do.
func (e *HeldError) Error() string {
	if e.Holder.Pid == 0 {
		return "another tare has this host; wait until it ends, as --wait does"
	}
	return fmt.Sprintf("this host is held by %q, process %d, since %s; wait until it ends, as --wait does, or stop it",
		e.Holder.What, e.Holder.Pid, e.Holder.Since.Format(time.DateTime))
}

// Waiting is the message while tare waits for the holder.
func (e *HeldError) Waiting() string {
	s := "waiting for another tare to finish"
	if e.Holder.Pid == 0 {
		return s
	}
	layout := time.TimeOnly
	if e.Holder.Since.Format(time.DateOnly) != time.Now().Format(time.DateOnly) {
		layout = time.DateTime
	}
	return fmt.Sprintf("%s: %s, process %d, since %s", s, e.Holder.What, e.Holder.Pid, e.Holder.Since.Format(layout))
}

// Leftover is one thing that a killed run left. Err says why tare could
// not remove it; nil means that tare removed it, or that this was a dry run. Kept means that tare
// left it alone, because it may belong to someone else.
type Leftover struct {
	Kind, Name string
	Err        error
	Kept       bool
}

// Why says why the leftover is not removed.
func (l Leftover) Why(dry bool) string {
	switch {
	case l.Kept && dry:
		return fmt.Sprintf("would leave %s: %v", l.Name, l.Err)
	case l.Kept:
		return fmt.Sprintf("left %s: %v", l.Name, l.Err)
	}
	if dry {
		return fmt.Sprintf("would not remove %s %s: %v", l.Kind, l.Name, l.Err)
	}
	return fmt.Sprintf("cannot remove %s %s: %v", l.Kind, l.Name, l.Err)
}
