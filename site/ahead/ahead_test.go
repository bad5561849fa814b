package ahead

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tare/plan"
	"tare/record"
	"tare/run"
	"tare/site"
	"tare/study"
)

// inner makes a trial in a second.
type inner struct {
	mu   sync.Mutex
	made []int // sequence numbers
}

func (*inner) Nodes() []record.Node               { return []record.Node{{Name: "n1"}, {Name: "n2"}} }
func (*inner) Preview() site.Preview              { return site.Preview{} }
func (*inner) Expected(record.Cell) time.Duration { return time.Second }
func (*inner) Close()                             {}

func (s *inner) Trials(ctx context.Context, nexts []plan.Next) (out []record.Made) {
	for _, n := range nexts {
		t := &record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Start: time.Now(), Duration: time.Second,
			Samples: []record.Sample{record.NewValue("rate", "1/s", float64(1000+n.Seq%7))}}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			t.Status, t.Failure = record.Failed, &record.Failure{Kind: record.Interrupted, Reason: "stopped"}
		}
		s.mu.Lock()
		s.made = append(s.made, n.Seq)
		s.mu.Unlock()
		out = append(out, record.Made{Trial: t, Evidence: record.Evidence{Raw: []record.Raw{{Name: "out", Data: []byte{0xff, byte(n.Seq)}}}}})
	}
	return out
}

// kept is a store in memory.
type kept struct{ trials []record.Trial }

func (k *kept) Append(_ context.Context, t *record.Trial, e record.Evidence) error {
	if e.Raw[0].Data[1] != byte(t.Seq) {
		panic("the evidence is another trial's")
	}
	k.trials = append(k.trials, *t)
	return nil
}

// tiny is a study of two strata of three cells, in four blocks.
func tiny() *study.Study {
	st := &study.Study{Name: "tiny", Seed: 3, Baseline: "process", Compare: "sandbox", Stop: study.Stop{Fixed: 4}}
	for _, w := range []string{"a", "b"} {
		cell := func(sandbox string) record.Cell {
			return record.Cell{{Factor: "workload", Value: w}, {Factor: "sandbox", Value: sandbox}}
		}
		st.Strata = append(st.Strata, study.Stratum{Key: "workload=" + w, Shared: cell("")[:1], Cells: []record.Cell{cell("process"), cell("runc"), cell("runsc")}})
		st.Workloads = append(st.Workloads, study.Workload{Label: w, Kind: "noop", Responses: []string{"rate"}})
	}
	return st
}

// TestGoesOn: whoever leaves at any moment and comes back gets every trial of the study once, as if
// nobody had left; no trial is made twice.
func TestGoesOn(t *testing.T) {
	st := tiny()
	whole := &kept{}
	synctest.Test(t, func(t *testing.T) {
		if err := (&run.Engine{Session: &inner{}, Store: whole}).Run(t.Context(), fresh(st, nil)); err != nil {
			t.Fatal(err)
		}
	})
	for _, c := range []struct {
		name   string
		leave  time.Duration // after which the asker is gone
		back   time.Duration // after which it returns
		detach bool          // the session is to go on by itself
	}{
		{"detached at once, back in the middle", 0, 5500 * time.Millisecond, true},
		{"detached, back when all is done", 0, time.Hour, true},
		{"lost in a trial", 4500 * time.Millisecond, 10 * time.Second, false},
		{"lost, back within the same trial", 4500 * time.Millisecond, 100 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				in, db := &inner{}, &kept{}
				s := New(in, st, dir, 1)
				if c.detach {
					if err := s.GoOn(nil); err != nil {
						t.Fatal(err)
					}
				} else {
					ctx, lose := context.WithCancelCause(t.Context())
					time.AfterFunc(c.leave, func() { lose(site.ErrLeft) })
					_ = (&run.Engine{Session: s, Store: db}).Run(ctx, fresh(st, nil))
				}
				s.Leave()
				time.Sleep(c.back)
				before := len(db.trials)
				if err := (&run.Engine{Session: s, Store: db}).Run(t.Context(), fresh(st, db.trials)); err != nil {
					t.Fatal(err)
				}
				if !slices.EqualFunc(db.trials, whole.trials, func(a, b record.Trial) bool {
					return a.Seq == b.Seq && a.Cell.Key() == b.Cell.Key() && a.Node == b.Node
				}) {
					t.Errorf("%d trials after %d, %d wanted", len(db.trials), before, len(whole.trials))
				}
				if len(in.made) != len(whole.trials) {
					t.Errorf("%d trials were made for %d", len(in.made), len(whole.trials))
				}
				s.Close()
			})
		})
	}
}

// TestStop: a wish to stop ends the trial, which is made again when it is asked for again.
func TestStop(t *testing.T) {
	dir := t.TempDir()
	st := tiny()
	synctest.Test(t, func(t *testing.T) {
		s := New(&inner{}, st, dir, 1)
		defer s.Close()
		nexts := fresh(st, nil).Together()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if m := s.Trials(ctx, nexts); m[0].Status != record.Failed {
			t.Errorf("%+v", m[0].Trial)
		}
		if m := s.Trials(t.Context(), nexts); m[0].Status != record.OK {
			t.Errorf("%+v", m[0].Failure)
		}
	})
}

// TestAskerKnowsBetter: if the asker's plan differs from what was made by itself, the asker's counts.
func TestAskerKnowsBetter(t *testing.T) {
	dir := t.TempDir()
	st := tiny()
	synctest.Test(t, func(t *testing.T) {
		s := New(&inner{}, st, dir, 1)
		defer s.Close()
		if err := s.GoOn(nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		other := fresh(st, nil).Together()
		other[0].Cell = record.Cell{{Factor: "sandbox", Value: "another"}}
		if m := s.Trials(t.Context(), other); m[0].Status != record.OK || m[0].Cell.Key() != other[0].Cell.Key() {
			t.Errorf("%+v", m[0].Trial)
		}
		if making, _ := s.Making(); making {
			t.Error("it still goes on by itself")
		}
	})
}

func fresh(st *study.Study, done []record.Trial) *plan.Plan {
	p := plan.New(st, nil, []string{"n1", "n2"})
	for i := range done {
		p.Done(&done[i])
	}
	return p
}
