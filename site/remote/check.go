package remote

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"tare/plan"
	"tare/record"
)

// impossibleError says that the other side sent what no tare sends.
type impossibleError struct{ err error }

func (e *impossibleError) Error() string { return e.err.Error() }

func impossible(format string, args ...any) error {
	return &impossibleError{fmt.Errorf(format, args...)}
}

// MaxText bounds a text of the machine that tare shows, in bytes. maxNodes and maxName bound what
// it says about itself.
const (
	MaxText  = 4 << 10
	maxNodes = 4096
	maxName  = 256
)

// text is the part of the machine's text that may be shown. Who prints it makes it harmless.
func text(s string) string {
	if len(s) > MaxText {
		s = strings.ToValidUTF8(s[:MaxText], "") + " [cut]"
	}
	return s
}

// check checks what a machine says of itself.
func (f *Facts) check() error {
	if !path.IsAbs(f.Home) || len(f.Home) > MaxText {
		return impossible("the home directory %.300q", f.Home)
	}
	return nil
}

// check checks what a study was opened as.
func (o *opened) check(op string) error {
	if op == opOpen && len(o.Nodes) == 0 || len(o.Nodes) > maxNodes {
		return impossible("%d nodes", len(o.Nodes))
	}
	if o.AtOnce < 0 || o.AtOnce > max(1, len(o.Nodes)) {
		return impossible("%d trials at once on %d nodes", o.AtOnce, len(o.Nodes))
	}
	var names []string
	for _, n := range o.Nodes {
		if len(n.Name) > maxName || slices.Contains(names, n.Name) {
			return impossible("a node named %.300q", n.Name)
		}
		names = append(names, n.Name)
	}
	for i := range o.Skips {
		o.Skips[i].Reason = text(o.Skips[i].Reason)
	}
	return nil
}

// checkMade checks that a trial is the one that was asked for, and whole. The store checks the
// names of its files; reports take any text and any figure.
func checkMade(m *record.Made, n plan.Next) error {
	t := m.Trial
	switch {
	case t == nil:
		return impossible("an empty trial")
	case t.Seq != n.Seq || t.Block != n.Block || t.Attempt != n.Attempt || t.Cell.Key() != n.Cell.Key():
		return impossible("trial %d of %.300q, not %d of %.300q", t.Seq, t.Cell.Key(), n.Seq, n.Cell.Key())
	case t.Status != record.OK && t.Status != record.Failed, (t.Status == record.Failed) != (t.Failure != nil):
		return impossible("trial %d with the status %.100q", t.Seq, t.Status)
	case t.Duration < 0:
		return impossible("trial %d that took %s", t.Seq, t.Duration)
	}
	t.Session, t.Node = 0, "" // given by who stores it
	for i := range m.Evidence.Series {
		s := &m.Evidence.Series[i]
		if len(s.T) != len(s.V) || !slices.IsSorted(s.T) {
			return impossible("the series %.100q of %d times and %d values", s.Name, len(s.T), len(s.V))
		}
	}
	return nil
}

// maxHeard bounds all that a machine may say to a person, in bytes.
const maxHeard = 1 << 20

// Bounded returns a function that passes texts to heard until there are too many of them.
func Bounded(heard func(string)) func(string) {
	var mu sync.Mutex
	left := maxHeard
	return func(s string) {
		mu.Lock()
		defer mu.Unlock()
		s = text(s)
		switch {
		case left < 0:
		case left < len(s):
			heard("it sent more text; the rest is not shown")
			left = -1
		default:
			heard(s)
			left -= len(s)
		}
	}
}
