// Package ahead lets a session outlive the connection of its user: a laptop may go to sleep, or the
// user may detach.
//
// The data path: 1. Session makes the requested trials, and keeps each in a file until the
// user's tare asks for later ones; 2. a lost user (Leave) does not end a running trial;
// 3. after GoOn the session follows the plan on its own, and after Lead while a user is connected: a crew then
// makes trials on several machines at once (crew.go); 4. a user who returns gets the kept
// trials. The user's plan asks for the same trials, because a plan is pure: the same results give the
// same next trial (package plan).
package ahead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"tare/plan"
	"tare/record"
	"tare/site"
	"tare/study"
)

// Session is a session that outlives its user's connection. One user at a time calls Trials.
type Session struct {
	site.Session
	// AtMost bounds how many trials, or blocks that take turns, run at once, on whatever machines. 0: nothing does.
	AtMost int

	study *study.Study
	dir   string
	most  int // trials at once

	mu      sync.Mutex
	kept    []plan.Next        // whose trials are in dir
	cancel  context.CancelFunc // ends what makes trials; nil: nothing does
	going   bool               // the crew does
	crew    *crew              // nil: trials are made when they are asked for
	alone   bool               // it goes on without an asker
	there   bool               // an asker is
	broken  error              // a trial could not be kept
	changed chan struct{}      // closed, and made anew, when any of the above changes
}

// New wraps a session of a study. dir is an existing directory for trials that nobody has taken yet. At most so many trials, or
// blocks that take turns, run at once, however many nodes share a machine. 0: one on each machine.
func New(inner site.Session, st *study.Study, dir string, most int) *Session {
	return &Session{Session: inner, study: st, dir: dir, most: most, changed: make(chan struct{})}
}

// Preview implements site.Session.
func (s *Session) Preview() site.Preview {
	p := s.Session.Preview()
	p.AtOnce = len(s.machines())
	if s.most > 0 {
		p.AtOnce = min(s.most, p.AtOnce)
	}
	if s.AtMost > 0 {
		p.AtOnce = min(s.AtMost, p.AtOnce)
	}
	return p
}

// machines are those of the session, with their nodes.
func (s *Session) machines() map[string][]string {
	out := map[string][]string{}
	for _, n := range s.Nodes() {
		on := n.Name
		if s.most == 0 {
			on = n.On()
		}
		out[on] = append(out[on], n.Name)
	}
	return out
}

// Trials implements site.Session. If ctx ends because the user is lost, the trials still run.
func (s *Session) Trials(ctx context.Context, nexts []plan.Next) []record.Made {
	stopped := false
	for {
		s.mu.Lock()
		s.there = true
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
			s.crew = nil
		case !making && stopped:
			defer s.mu.Unlock()
			return failures(nexts, record.Interrupted, context.Canceled)
		case !making && s.crew != nil && s.crew.asks(nexts):
			s.start(true, s.follow(s.crew))
		case !making:
			s.crew = nil
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

// GoOn makes the trials of the study's plan after those that are done, until the plan needs no more or
// Trials asks for others.
func (s *Session) GoOn(done []record.Trial) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alone = true
	return s.lead(done)
}

// Lead implements site.Lasting.
func (s *Session) Lead(done []record.Trial) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there = true
	return s.lead(done)
}

// lead has a crew make trials. What was made before and is not done, it knows. s.mu is held, but for the wait for running
// trials.
func (s *Session) lead(done []record.Trial) error {
	for s.cancel != nil && !s.going { // trials that were requested by somebody who is lost: they are made first
		changed := s.changed
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	if s.going {
		return nil
	}
	old := s.crew
	s.crew = newCrew(s, done)
	for _, n := range s.kept {
		if n.Seq <= s.crew.seq {
			continue
		}
		m, err := s.read(n)
		if err != nil {
			return err
		}
		s.crew.add(n, m)
	}
	s.forget(math.MaxInt) // the crew has them
	if old != nil {
		for _, all := range old.made {
			for _, m := range all {
				s.crew.add(plan.Next{Block: m.Block, Cell: m.Cell, Node: m.Node}, m)
			}
		}
	}
	s.start(true, s.follow(s.crew))
	return nil
}

// follow lets a crew make trials while somebody wants them.
func (s *Session) follow(c *crew) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.run(ctx, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.alone || s.there
		})
	}
}

// Leave implements site.Lasting: running trials continue.
func (s *Session) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there = false
}

// Making reports whether trials are running. changed is closed when that may have changed.
func (s *Session) Making() (making bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancel != nil, s.changed
}

// Close implements site.Session. It ends the running trials, and forgets the kept ones.
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
		m, err := s.read(n)
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

// read reads a kept trial.
func (s *Session) read(n plan.Next) (m record.Made, err error) {
	text, err := os.ReadFile(s.file(n))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	return m, err
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
