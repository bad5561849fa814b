package run

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"tare/plan"
	"tare/record"
	"tare/site"
	"tare/study"
)

// session is a site in memory. Every trial takes a second and ends well, unless bad says
// otherwise, or that its node is gone.
type session struct {
	nodes []string // nil: one
	gone  func(plan.Next) bool
	bad   func(plan.Next) bool
	value func(plan.Next) float64
	block bool  // trials last until their context ends
	asked []int // how many trials at once
}

func (s *session) Nodes() (out []record.Node) {
	for _, n := range s.nodes {
		out = append(out, record.Node{Name: n, Host: record.Host{Hostname: n}})
	}
	if out == nil {
		out = []record.Node{{Name: "a"}}
	}
	return out
}
func (*session) Preview() site.Preview              { return site.Preview{} }
func (*session) Expected(record.Cell) time.Duration { return time.Second }
func (*session) Close()                             {}

func (s *session) Trials(ctx context.Context, nexts []plan.Next) []record.Made {
	s.asked = append(s.asked, len(nexts))
	out := make([]record.Made, len(nexts))
	for i, n := range nexts {
		out[i].Trial, out[i].Evidence = s.trial(ctx, n)
	}
	return out
}

func (s *session) trial(ctx context.Context, next plan.Next) (*record.Trial, record.Evidence) {
	t := &record.Trial{Seq: next.Seq, Block: next.Block, Attempt: next.Attempt, Cell: next.Cell, Status: record.OK, Duration: time.Second,
		Samples: []record.Sample{{Name: "answer", Unit: record.Count, Value: 42}}}
	if s.value != nil {
		t.Samples[0].Value = s.value(next)
	}
	if s.gone != nil && s.gone(next) {
		t.Status, t.Failure = record.Failed, &record.Failure{Kind: record.NodeLost, Reason: "node " + next.Node + " does not answer"}
		return t, record.Evidence{}
	}
	if s.block {
		<-ctx.Done()
	}
	if ctx.Err() != nil || s.bad != nil && s.bad(next) {
		t.Status, t.Failure = record.Failed, &record.Failure{Kind: "died", Reason: "it died"}
	}
	return t, record.Evidence{}
}

// memory is a store in memory, which breaks after so many trials; 0: never.
type memory struct {
	trials []record.Trial
	most   int
}

var errFull = errors.New("the disk is full")

func (m *memory) Append(_ context.Context, t *record.Trial, _ record.Evidence) error {
	if m.most > 0 && len(m.trials) == m.most {
		return errFull
	}
	m.trials = append(m.trials, *t)
	return nil
}

// small is a study of two cells and two blocks.
func small() *study.Study {
	cell := func(sandbox string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: sandbox}}
	}
	return &study.Study{
		Name: "test", Seed: 1, Compare: "sandbox", Baseline: "process", Retries: 1,
		Workloads: []study.Workload{{Label: "w", Kind: "load", Responses: []string{"answer"}}},
		Strata:    []study.Stratum{{Key: "workload=w", Shared: cell("process")[:1], Cells: []record.Cell{cell("process"), cell("runc")}}},
		Stop:      study.Stop{Fixed: 2},
	}
}

func TestRunKeepsEveryTrialAndEndsWhenThePlanDoes(t *testing.T) {
	st, kept := small(), &memory{}
	var events []EventKind
	e := &Engine{Session: &session{}, Store: kept, Observe: func(ev Event) { events = append(events, ev.Kind) }}
	if err := e.Run(t.Context(), plan.New(st, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if len(kept.trials) != 4 || len(events) != 8 || events[0] != TrialStarts || events[1] != TrialEnds {
		t.Errorf("%d trials kept, want 4; events %v", len(kept.trials), events)
	}
}

// TestFailedTrialIsKeptAndTriedAgain: the study goes on.
func TestFailedTrialIsKeptAndTriedAgain(t *testing.T) {
	st, kept := small(), &memory{}
	e := &Engine{Session: &session{bad: func(n plan.Next) bool { return n.Seq == 2 }}, Store: kept}
	if err := e.Run(t.Context(), plan.New(st, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if len(kept.trials) != 5 || kept.trials[1].Status != record.Failed || kept.trials[2].Attempt != 2 || kept.trials[2].Cell.Key() != kept.trials[1].Cell.Key() {
		t.Errorf("%+v", kept.trials)
	}
}

func TestInterruptedTrialIsNotKept(t *testing.T) {
	st, kept := small(), &memory{}
	ctx, cancel := context.WithCancel(t.Context())
	e := &Engine{Session: &session{block: true}, Store: kept, Observe: func(Event) { time.AfterFunc(10*time.Millisecond, cancel) }}
	if err := e.Run(ctx, plan.New(st, nil, nil)); !errors.Is(err, site.ErrInterrupted) || len(kept.trials) != 0 {
		t.Errorf("error %v, %d trials kept", err, len(kept.trials))
	}
}

func TestFullDiskEndsTheStudy(t *testing.T) {
	e := &Engine{Session: &session{}, Store: &memory{most: 1}}
	if err := e.Run(t.Context(), plan.New(small(), nil, nil)); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

// TestTurns: the cells of a block are asked for together, and one that failed once more, alone.
func TestTurns(t *testing.T) {
	st, kept := small(), &memory{}
	st.Workloads[0].Turns = 3
	s := &session{bad: func(n plan.Next) bool { return n.Seq == 1 }}
	if err := (&Engine{Session: s, Store: kept}).Run(t.Context(), plan.New(st, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 1, 2}; !slices.Equal(s.asked, want) {
		t.Errorf("%v trials were asked for at once, want %v", s.asked, want)
	}
	var seqs, attempts []int
	for _, tr := range kept.trials {
		seqs, attempts = append(seqs, tr.Seq), append(attempts, tr.Attempt)
	}
	if !slices.Equal(seqs, []int{1, 2, 3, 4, 5}) || !slices.Equal(attempts, []int{1, 1, 2, 1, 1}) {
		t.Errorf("seqs %v, attempts %v", seqs, attempts)
	}
}
