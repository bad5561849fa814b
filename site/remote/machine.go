// Package remote is a site behind a stream: trials run at the other end, and results are
// stored here. Packages ssh and cluster provide the stream.
//
// The data path: 1. Serve, at the other end, opens its own site and makes the requested
// trials, with one line of JSON for each question and answer; 2. Machine checks the answers,
// and is a site.Site for the caller, who stores trials as usual.
//
// A side that loses the other one ends what it runs: see silence and endWithin.
// docs/design/0030-another-machine.md gives the reasons.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tare/plan"
	"tare/record"
	"tare/site"
	"tare/site/claim"
)

// Machine is another machine, or a cluster, as a site. Its methods may be called by one goroutine
// at a time.
type Machine struct {
	Facts Facts // what the machine says of itself
	about site.About
	name  string
	takes Takes
	link  *link
	way   Way
}

// Way is the transport of a connection.
type Way interface {
	Kill()               // at once
	Close() error        // after what was sent
	Why(err error) error // that it ended
}

// Setup is what Connect needs besides a stream.
type Setup struct {
	Name  string // of the machine, in messages
	About site.About
	Takes Takes
	Heard func(string) // tells the user what the machine said: any characters
}

// Connect waits for the machine's facts. Serve is the other side.
func Connect(r io.Reader, w io.Writer, by Way, s Setup) (*Machine, error) {
	l := &link{out: w, in: make(chan answer, 1), facts: make(chan Facts, 1), gone: make(chan struct{}), end: by.Kill}
	m := &Machine{name: s.Name, about: s.About, takes: s.Takes, link: l, way: by}
	go l.read(r, s.Heard)
	go l.beats()
	select {
	case m.Facts = <-l.facts:
		return m, nil
	case <-l.gone:
		return nil, errors.Join(&site.UnableError{Err: m.lost(l.err)}, by.Close())
	}
}

// Takes returns how long the trials of a study take on any machine.
type Takes func(site.Request) (func(record.Cell) time.Duration, error)

// String is the machine's name in messages.
func (m *Machine) String() string { return m.name }

// About implements site.Site.
func (m *Machine) About() site.About { return m.about }

// Preview implements site.Site.
func (m *Machine) Preview(ctx context.Context, r site.Request) (site.Preview, error) {
	o, err := m.open(ctx, opPreview, r)
	return site.Preview{Skips: o.Skips}, err
}

// Open implements site.Site.
func (m *Machine) Open(ctx context.Context, r site.Request) (site.Session, error) {
	takes, err := m.takes(r)
	if err != nil {
		return nil, err
	}
	o, err := m.open(ctx, opOpen, r)
	if err != nil {
		return nil, err
	}
	return &session{m, o, takes}, nil
}

// Close ends the connection, and what runs there.
func (m *Machine) Close() error {
	err := m.way.Close()
	m.link.fail(errClosed)
	return err
}

// Lost says that the connection has ended, and why; nil: it has not.
func (m *Machine) Lost() error {
	select {
	case <-m.link.gone:
		return m.lost(m.link.err)
	default:
		return nil
	}
}

// open asks for one of the questions that have a study.
func (m *Machine) open(ctx context.Context, op string, r site.Request) (opened, error) {
	var out opened
	tried := func() {}
	err := m.ask(ctx, question{Op: op, Wait: r.Wait, Study: &studyBody{Source: r.Study.Source, Overrides: r.Study.Overrides, Collect: r.Study.Collect.Names}}, func(a answer) error {
		switch {
		case a.Trying != nil && r.Trying != nil:
			tried = r.Trying(text(a.Trying.Kind), time.Duration(a.Trying.Within))
		case a.Tried:
			tried()
			tried = func() {}
		case a.Opened != nil:
			out = *a.Opened
		}
		return nil
	})
	if ctx.Err() == nil {
		tried()
	}
	if err == nil {
		err = out.check(op)
	}
	if err != nil {
		return opened{}, err
	}
	return out, nil
}

// session is a study that is open on the machine.
type session struct {
	m      *Machine
	opened opened
	takes  func(record.Cell) time.Duration
}

// Nodes implements site.Session.
func (s *session) Nodes() []record.Node { return s.opened.Nodes }

// Preview implements site.Session.
func (s *session) Preview() site.Preview {
	return site.Preview{Skips: s.opened.Skips, AtOnce: s.opened.AtOnce}
}

// Expected implements site.Session.
func (s *session) Expected(c record.Cell) time.Duration { return s.takes(c) }

// Trials implements site.Session. If the connection is lost, the missing trials fail
// for that reason, like those of a lost node.
func (s *session) Trials(ctx context.Context, nexts []plan.Next) []record.Made {
	out := make([]record.Made, 0, len(nexts))
	err := s.m.ask(ctx, question{Op: opTrials, Nexts: nexts}, func(a answer) error {
		if a.Made == nil {
			return nil
		}
		if len(out) == len(nexts) {
			return impossible("more trials than were asked for")
		}
		if err := checkMade(a.Made, nexts[len(out)]); err != nil {
			return err
		}
		out = append(out, *a.Made)
		return nil
	})
	if err == nil && len(out) < len(nexts) {
		err = impossible("%d trials of %d", len(out), len(nexts))
	}
	return append(out, Missing(nexts[len(out):], err)...)
}

// Missing are trials that were not made, because the machine is not reached.
func Missing(nexts []plan.Next, why error) (out []record.Made) {
	for _, n := range nexts {
		out = append(out, record.Made{Trial: &record.Trial{
			Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Start: time.Now(), Status: record.Failed,
			Failure: &record.Failure{Kind: record.Unreached, Reason: why.Error()},
		}})
	}
	return out
}

// Lead implements site.Lasting.
func (s *session) Lead(done []record.Trial) error { return s.lead(opLead, done) }

// GoOn implements site.Lasting.
func (s *session) GoOn(done []record.Trial) error { return s.lead(opGoOn, done) }

// lead hands on the trials that are done. The plan looks at neither histograms nor evidence.
func (s *session) lead(op string, done []record.Trial) error {
	done = slices.Clone(done)
	for i := range done {
		done[i].Histograms = nil
	}
	return s.m.ask(context.Background(), question{Op: op, Trials: done}, func(answer) error { return nil })
}

// Leave implements site.Lasting: the end of the connection says so.
func (*session) Leave() {}

// Close implements site.Session.
func (s *session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	_ = s.m.ask(ctx, question{Op: opClose}, func(answer) error { return nil }) // if it is lost, Serve closes
}

// ask sends a question and hands what is answered to take, until all of it is. When ctx ends it
// asks the machine to stop, and goes on until that is done.
func (m *Machine) ask(ctx context.Context, q question, take func(answer) error) error {
	if err := m.link.send(q); err != nil {
		m.link.fail(err)
		return m.lost(m.link.err) // the first reason
	}
	end := context.AfterFunc(ctx, func() {
		_ = m.link.send(question{Op: opStop}) // a link that fails ends the loop below
	})
	defer end()
	for {
		a, err := m.link.next(ctx)
		switch {
		case err != nil:
			return m.lost(err)
		case a.Done != nil:
			return m.said(a.Done)
		}
		if err := take(a); err != nil {
			m.link.fail(err)
			return m.lost(err)
		}
	}
}

// lost says that nothing more will come.
func (m *Machine) lost(err error) error {
	if _, ok := errors.AsType[*impossibleError](err); ok {
		return fmt.Errorf("%s sent an invalid answer (%w); tare has closed the connection", m, err)
	}
	return fmt.Errorf("the connection to %s is lost (%w); whatever runs there ends within a minute", m, m.way.Why(err))
}

// said is the error that the machine tells.
func (m *Machine) said(d *doneBody) error {
	err := errors.New(text(d.Error))
	switch d.Kind {
	case "":
		return nil
	case kindHeld:
		h := d.Holder
		h.What = text(h.What)
		return fmt.Errorf("%s: %w", m, &claim.HeldError{Holder: h})
	case kindInterrupted:
		return site.ErrInterrupted
	case kindUnable:
		return &site.UnableError{Err: fmt.Errorf("%s: %w", m, err)}
	}
	return fmt.Errorf("%s: %w", m, err)
}
