// Package ahead makes a session outlive whoever asks it for trials: a laptop that sleeps, a user
// who detaches.
//
// The data path: 1. Session makes the trials that are asked for, and keeps each in a file until the
// asker asks for later ones; 2. an asker that is lost (Leave) does not end a trial that runs;
// 3. after GoOn the session follows the plan by itself; 4. an asker that comes back gets what is
// kept. Its plan asks for the same trials, because a plan is pure: the same results give the
// same next trial (package plan).
package ahead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"tare/plan"
	"tare/record"
	"tare/run"
	"tare/site"
	"tare/study"
)

// Session is a session that outlives its asker. One asker at a time calls Trials.
type Session struct {
	site.Session
	study *study.Study
	dir   string

	mu      sync.Mutex
	kept    []plan.Next        // whose trials are in dir
	cancel  context.CancelFunc // ends what makes trials; nil: nothing does
	going   bool               // GoOn makes them
	broken  error              // a trial could not be kept
	changed chan struct{}      // closed, and made anew, when any of the above changes
}

// New wraps a session of a study. dir is an existing directory for trials that nobody has taken yet.
func New(inner site.Session, st *study.Study, dir string) *Session {
	return &Session{Session: inner, study: st, dir: dir, changed: make(chan struct{})}
}

// Trials is of site.Session. If ctx ends because the asker is lost, the trials are made all the same.
func (s *Session) Trials(ctx context.Context, nexts []plan.Next) []record.Made {
	stopped := false
	for {
		s.mu.Lock()
		s.forget(nexts[0].Seq)
		making, changed := s.cancel != nil, s.changed
		switch {
		case s.broken != nil:
			defer s.mu.Unlock()
			return failures(nexts, record.NodeLost, s.broken)
		case s.has(nexts):
			defer s.mu.Unlock()
			return s.load(nexts, stopped)
		case making && s.going && s.strays(nexts):
			s.cancel() // the asker knows something that this side does not: the asker's plan counts
		case !making && stopped:
			defer s.mu.Unlock()
			return failures(nexts, record.Interrupted, context.Canceled)
		case !making:
			s.start(false, func(ctx context.Context) error {
				for i, m := range s.Session.Trials(ctx, nexts) {
					if err := s.keep(nexts[i], m); err != nil {
						return err
					}
				}
				return nil
			})
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), site.ErrLeft) {
				return failures(nexts, record.Interrupted, site.ErrLeft) // nobody reads it
			}
			s.stop()
			stopped = true
			<-changed
		}
	}
}

// GoOn makes the trials of the study's plan after those that are done, until the plan is content or
// Trials asks for others.
func (s *Session) GoOn(done []record.Trial) error {
	p := plan.New(s.study, s.Preview().Skips, run.Nodes(s))
	for i := range done {
		p.Done(&done[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.going:
		return nil
	case s.cancel != nil:
		return errors.New("trials are being made already")
	}
	s.start(true, func(ctx context.Context) error {
		err := (&run.Engine{Session: s.Session, Store: keeper{s}}).Run(ctx, p)
		if errors.Is(err, site.ErrInterrupted) {
			return nil
		}
		return err
	})
	return nil
}

// Leave is of site.Lasting: what runs goes on.
func (*Session) Leave() {}

// Making reports whether trials are being made. changed is closed when that may have changed.
func (s *Session) Making() (making bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancel != nil, s.changed
}

// Close is of site.Session. It ends what runs, and forgets what was kept.
func (s *Session) Close() {
	s.stop()
	for {
		making, changed := s.Making()
		if !making {
			break
		}
		<-changed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.kept {
		_ = os.Remove(s.file(n)) // the directory goes with its pod
	}
	s.kept = nil
	s.Session.Close()
}

// start runs f, which makes trials. s.mu is held.
func (s *Session) start(going bool, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.going = cancel, going
	go func() {
		err := f(ctx)
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancel, s.going, s.broken = nil, false, err
		s.tell()
	}()
}

// stop ends what makes trials, soon.
func (s *Session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

// tell says that something has changed. s.mu is held.
func (s *Session) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// keep writes a trial down until it is taken.
func (s *Session) keep(n plan.Next, m record.Made) error {
	text, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(s.file(n), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot keep trial %d: %w", n.Seq, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, n)
	s.tell()
	return nil
}

func (s *Session) file(n plan.Next) string {
	return filepath.Join(s.dir, fmt.Sprintf("%d-%d-%d.json", n.Seq, n.Block, n.Attempt))
}

// has reports whether all these trials are kept. s.mu is held.
func (s *Session) has(nexts []plan.Next) bool {
	for _, n := range nexts {
		if !slices.ContainsFunc(s.kept, func(k plan.Next) bool { return same(k, n) }) {
			return false
		}
	}
	return true
}

// strays reports whether GoOn has made other trials in the place of these. s.mu is held.
func (s *Session) strays(nexts []plan.Next) bool {
	return slices.ContainsFunc(s.kept, func(k plan.Next) bool {
		return !slices.ContainsFunc(nexts, func(n plan.Next) bool { return same(k, n) })
	})
}

func same(a, b plan.Next) bool {
	return a.Seq == b.Seq && a.Block == b.Block && a.Attempt == b.Attempt && a.Cell.Key() == b.Cell.Key() && a.Node == b.Node
}

// load reads kept trials. One that failed because it was stopped is forgotten: it will be asked for
// again. s.mu is held.
func (s *Session) load(nexts []plan.Next, stopped bool) []record.Made {
	out := make([]record.Made, 0, len(nexts))
	for _, n := range nexts {
		var m record.Made
		text, err := os.ReadFile(s.file(n))
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			return failures(nexts, record.NodeLost, err)
		}
		out = append(out, m)
		if stopped && m.Status == record.Failed {
			s.kept = slices.DeleteFunc(s.kept, func(k plan.Next) bool { return same(k, n) })
		}
	}
	return out
}

// forget drops trials that come before seq: the asker has them. s.mu is held.
func (s *Session) forget(seq int) {
	s.kept = slices.DeleteFunc(s.kept, func(k plan.Next) bool {
		if k.Seq < seq {
			_ = os.Remove(s.file(k)) // the directory goes with its pod
		}
		return k.Seq < seq
	})
}

// failures are trials that were not made.
func failures(nexts []plan.Next, kind string, err error) []record.Made {
	var out []record.Made
	for _, n := range nexts {
		out = append(out, record.Made{Trial: &record.Trial{
			Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Node: n.Node, Status: record.Failed,
			Failure: &record.Failure{Kind: kind, Reason: err.Error()},
		}})
	}
	return out
}

// keeper is a session as run.Store.
type keeper struct{ s *Session }

func (k keeper) Append(_ context.Context, t *record.Trial, e record.Evidence) error {
	return k.s.keep(plan.Next{Seq: t.Seq, Block: t.Block, Attempt: t.Attempt, Cell: t.Cell, Node: t.Node}, record.Made{Trial: t, Evidence: e})
}
