package ahead

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/plan"
	"tare/record"
	"tare/run"
	"tare/site"
	"tare/study"
)

// fleet makes trials on several nodes. What it measures depends on the cell, the block, the attempt and, of a
// sentinel, on how many the node had in the pass, but not on the order of what different nodes do.
type fleet struct {
	t     *testing.T
	nodes []record.Node
	fail  float64
	lose  string // this node is lost in its tenth trial

	mu        sync.Mutex
	busy      map[string]bool
	sentinels map[string]int // by node and pass
	count     map[string]int // trials of a node
	made      int
}

func newFleet(t *testing.T, machines ...string) *fleet {
	f := &fleet{t: t, busy: map[string]bool{}, sentinels: map[string]int{}, count: map[string]int{}}
	for i, m := range machines {
		f.nodes = append(f.nodes, record.Node{Name: fmt.Sprintf("n%d", i+1), Machine: m})
	}
	return f
}

func (f *fleet) Nodes() []record.Node             { return f.nodes }
func (*fleet) Preview() site.Preview              { return site.Preview{} }
func (*fleet) Expected(record.Cell) time.Duration { return time.Second }
func (*fleet) Close()                             {}

func (f *fleet) machine(node string) string {
	i := slices.IndexFunc(f.nodes, func(n record.Node) bool { return n.Name == node })
	return f.nodes[i].On()
}

func (f *fleet) Trials(ctx context.Context, nexts []plan.Next) (out []record.Made) {
	at := map[string]bool{} // machines
	for k := range study.Spread(nexts[0].Cell) {
		at[f.machine(plan.After(run.Nodes(f), nexts[0].Node, k))] = true
	}
	f.mu.Lock()
	for on := range at {
		if f.busy[on] {
			f.t.Errorf("two trials at once on %s", on)
		}
		f.busy[on] = true
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for on := range at {
			f.busy[on] = false
		}
	}()
	for _, n := range nexts {
		m := f.trial(n)
		select {
		case <-time.After(m.Duration):
		case <-ctx.Done():
			m.Status, m.Failure = record.Failed, &record.Failure{Kind: record.Interrupted, Reason: "stopped"}
		}
		out = append(out, record.Made{Trial: m})
	}
	return out
}

func (f *fleet) trial(n plan.Next) *record.Trial {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	f.count[n.Node]++
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d %d", n.Cell.Key(), n.Block, n.Attempt)
	t := &record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Start: time.Now()}
	mean := 0.0
	if n.Sentinel {
		h.Reset()
		at := fmt.Sprintf("%s %d", n.Node, n.Block)
		_, _ = fmt.Fprintf(h, "%s %d", at, f.sentinels[at])
		if f.sentinels[at]++; n.Node == "n2" && n.Block > 3 {
			mean = 0.4 // the machine changes
		}
	}
	r := rand.New(rand.NewPCG(1, h.Sum64()))
	t.Duration = time.Duration(1+r.IntN(3000)) * time.Millisecond
	switch {
	case n.Node == f.lose && f.count[n.Node] >= 10:
		t.Status, t.Failure = record.Failed, &record.Failure{Kind: record.NodeLost, Reason: "gone"}
	case !n.Sentinel && r.Float64() < f.fail:
		t.Status, t.Failure = record.Failed, &record.Failure{Reason: "it died"}
	default:
		box, _ := n.Cell.Get(study.FactorSandbox)
		mean += map[string]float64{"runc": 0.001, "runsc": 0.3}[box]
		for turn := range max(1, n.Turns) {
			s := record.NewValue("rate", "1/s", 1000*math.Exp(mean+0.02*r.NormFloat64()))
			if n.Turns > 0 {
				s.Labels = record.MakeLabels(record.LabelTurn, fmt.Sprint(turn+1))
			}
			t.Samples = append(t.Samples, s)
		}
		t.Samples = append(t.Samples, record.NewValue("rate", "1/s", 1000*math.Exp(mean+0.02*r.NormFloat64())))
	}
	return t
}

// studies of several kinds. What they show decides all but the first.
func studies() map[string]*study.Study {
	wide := func() *study.Study {
		st := tiny()
		st.Strata, st.Workloads = nil, nil
		for _, w := range []string{"a", "b", "c", "d", "e", "f"} {
			cell := func(sandbox string) record.Cell {
				return record.Cell{{Factor: "workload", Value: w}, {Factor: "sandbox", Value: sandbox}}
			}
			st.Strata = append(st.Strata, study.Stratum{Key: "workload=" + w, Shared: cell("")[:1], Cells: []record.Cell{cell("process"), cell("runc"), cell("runsc")}})
			st.Workloads = append(st.Workloads, study.Workload{Label: w, Kind: "noop", Responses: []string{"rate"}})
		}
		st.Retries = 1
		return st
	}
	looks := study.Stop{Confidence: 0.95, Width: 0.02, Margin: 0.04}
	out := map[string]*study.Study{"fixed": wide()}
	out["fixed"].Stop.Fixed = 12
	for name, change := range map[string]func(*study.Study){
		"looks":    func(*study.Study) {},
		"adaptive": func(st *study.Study) { st.Stop.Adaptive = true },
		"budget":   func(st *study.Study) { st.Budget.Time = 4 * time.Minute },
		"turns": func(st *study.Study) {
			for i := range st.Workloads {
				st.Workloads[i].Turns = 2
			}
		},
		"spread": func(st *study.Study) { // in one stratum
			s := &st.Strata[0]
			for i := range s.Cells {
				s.Cells[i] = append(s.Cells[i], record.Level{Factor: study.FactorCopies, Value: "2"}, record.Level{Factor: study.FactorCopiesOn, Value: study.CopiesSpread})
			}
		},
		"counting": func(st *study.Study) {
			for i := range st.Strata {
				st.Strata[i].Counting = study.CountingCell(st.Strata[i].Cells[0])
			}
		},
		"sentinel": func(st *study.Study) {
			st.Sentinel = &study.Sentinel{
				Cell:     record.Cell{{Factor: "workload", Value: study.SentinelLabel}, {Factor: "sandbox", Value: "process"}},
				Workload: study.Workload{Label: study.SentinelLabel, Kind: "syscall", Responses: []string{"rate"}}, Every: 2,
			}
		},
	} {
		out[name] = wide()
		out[name].Stop = looks
		change(out[name])
	}
	return out
}

// all keeps trials without their evidence.
type all struct{ trials []record.Trial }

func (a *all) Append(_ context.Context, t *record.Trial, _ record.Evidence) error {
	c := *t
	c.Start = time.Time{}
	a.trials = append(a.trials, c)
	return nil
}

func planOn(f *fleet, st *study.Study, done []record.Trial) *plan.Plan {
	p := plan.New(st, nil, run.Nodes(f))
	for i := range done {
		p.Done(&done[i])
	}
	return p
}

// TestCrewIsAsOne: a crew on several machines hands on the same trials, in the same order, as one machine after another makes, in less
// time, and never measures twice on one machine at once.
func TestCrewIsAsOne(t *testing.T) {
	for name, st := range studies() {
		for _, machines := range [][]string{{"", ""}, {"", "", "", ""}, {"x", "x", "y", "y"}} {
			t.Run(fmt.Sprint(name, len(machines), machines[0]), func(t *testing.T) {
				var want, got all
				var slow, fast time.Duration
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					f, began := newFleet(t, machines...), time.Now()
					f.fail = 0.05
					if err := (&run.Engine{Session: f, Store: &want}).Run(t.Context(), planOn(f, st, nil)); err != nil {
						t.Fatal(err)
					}
					slow = time.Since(began)
				})
				synctest.Test(t, func(t *testing.T) {
					f, began := newFleet(t, machines...), time.Now()
					f.fail = 0.05
					s := New(f, st, dir, 0)
					if err := s.Lead(nil); err != nil {
						t.Fatal(err)
					}
					if err := (&run.Engine{Session: s, Store: &got}).Run(t.Context(), planOn(f, st, nil)); err != nil {
						t.Fatal(err)
					}
					fast = time.Since(began)
					s.Close()
				})
				if d := cmp.Diff(want.trials, got.trials); d != "" {
					t.Fatalf("-one after another +crew: %s", d)
				}
				distinct := len(New(newFleet(t, machines...), st, dir, 0).machines())
				if most := map[int]float64{2: 0.75, 4: 0.6}[distinct]; float64(fast) > most*float64(slow) {
					t.Errorf("%d machines take %s, one %s", distinct, fast, slow)
				}
				t.Logf("%d trials, %d machines: %.2f of the time", len(got.trials), distinct, fast.Seconds()/slow.Seconds())
			})
		}
	}
}

// TestDetachAfterLoss: whoever is lost in a trial, comes back before it ends and detaches, finds what a whole study has, and nothing was
// made twice.
func TestDetachAfterLoss(t *testing.T) {
	st, dir := tiny(), t.TempDir()
	for _, machines := range [][]string{{""}, {"", ""}} {
		var want, got all
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, machines...)
			if err := (&run.Engine{Session: f, Store: &want}).Run(t.Context(), planOn(f, st, nil)); err != nil {
				t.Fatal(err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, machines...)
			s := New(f, st, dir, 0)
			ctx, lose := context.WithCancelCause(t.Context())
			time.AfterFunc(4500*time.Millisecond, func() { lose(site.ErrLeft) })
			_ = (&run.Engine{Session: s, Store: &got}).Run(ctx, planOn(f, st, nil))
			if err := s.GoOn(got.trials); err != nil {
				t.Fatal(err)
			}
			s.Leave()
			time.Sleep(time.Hour)
			if err := (&run.Engine{Session: s, Store: &got}).Run(t.Context(), planOn(f, st, got.trials)); err != nil {
				t.Fatal(err)
			}
			if f.made != len(want.trials) {
				t.Errorf("%d machines: %d trials were made for %d", len(machines), f.made, len(want.trials))
			}
			s.Close()
		})
		if d := cmp.Diff(want.trials, got.trials); d != "" {
			t.Errorf("%d machines: -nobody left +lost and detached: %s", len(machines), d)
		}
	}
}

// TestCrewBadLuck: whoever leaves, comes back, or loses a node in the middle gets a whole study.
func TestCrewBadLuck(t *testing.T) {
	st := studies()["looks"]
	t.Run("the asker is away for a while", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var want, got all
			f := newFleet(t, "", "", "")
			if err := (&run.Engine{Session: f, Store: &want}).Run(t.Context(), planOn(f, st, nil)); err != nil {
				t.Fatal(err)
			}
			g := newFleet(t, "", "", "")
			s := New(g, st, dir, 0)
			for i := range 40 { // and returns as another process, or within the same one
				ctx, lose := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Duration(1+i)*700*time.Millisecond, func() { lose(site.ErrLeft) })
				if i%2 == 0 {
					if err := s.Lead(got.trials); err != nil {
						t.Fatal(err)
					}
				}
				err := (&run.Engine{Session: s, Store: &got}).Run(ctx, planOn(g, st, got.trials))
				s.Leave()
				if err == nil {
					break
				}
				time.Sleep(time.Duration(i%3) * 4 * time.Second)
			}
			if d := cmp.Diff(want.trials, got.trials); d != "" {
				t.Errorf("-one after another +crew: %s", d)
			}
			if wasted := g.made - f.made; wasted > f.made/10 {
				t.Errorf("%d trials were made in vain, beside %d", wasted, f.made)
			}
			s.Close()
		})
	})
	t.Run("nobody asks: nothing begins", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, "", "", "")
			s := New(f, st, dir, 0)
			if err := s.Lead(nil); err != nil {
				t.Fatal(err)
			}
			s.Leave()
			time.Sleep(time.Hour)
			synctest.Wait()
			if making, _ := s.Making(); making || f.made > 6 {
				t.Errorf("%d trials, making %v", f.made, making)
			}
			s.Close()
		})
	})
	t.Run("a node is lost", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var got all
			f := newFleet(t, "", "", "")
			f.lose = "n2"
			s := New(f, st, dir, 0)
			if err := s.Lead(nil); err != nil {
				t.Fatal(err)
			}
			p := planOn(f, st, nil)
			if err := (&run.Engine{Session: s, Store: &got}).Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			lost := 0
			for _, x := range got.trials {
				if x.Failure != nil && x.Failure.Kind == record.NodeLost {
					lost++
				}
			}
			if lost != 1 || p.Reason() == "" {
				t.Errorf("%d trials were lost with the node; %s", lost, p.Reason())
			}
			s.Close()
		})
	})
	t.Run("it goes on alone", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var got all
			f := newFleet(t, "", "", "")
			s := New(f, st, dir, 0)
			if err := s.Lead(nil); err != nil {
				t.Fatal(err)
			}
			if err := s.GoOn(nil); err != nil {
				t.Fatal(err)
			}
			s.Leave()
			time.Sleep(time.Hour)
			synctest.Wait()
			made := f.made
			if err := (&run.Engine{Session: s, Store: &got}).Run(t.Context(), planOn(f, st, nil)); err != nil || f.made != made {
				t.Errorf("%v; %d trials after the return, %d before", err, f.made, made)
			}
			s.Close()
		})
	})
	t.Run("a wish to stop", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var got all
			f := newFleet(t, "", "", "")
			s := New(f, st, dir, 0)
			if err := s.Lead(nil); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			began := time.Now()
			if err := (&run.Engine{Session: s, Store: &got}).Run(ctx, planOn(f, st, nil)); err == nil || time.Since(began) > 21*time.Second {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			for _, x := range got.trials {
				if x.Failure != nil {
					t.Errorf("%+v", x.Failure)
				}
			}
			s.Close()
		})
	})
}

// TestAtMost: fewer trials run at once than there are machines, and never two on nodes that share one.
func TestAtMost(t *testing.T) {
	for _, c := range []struct{ most, atMost, want int }{{0, 0, 3}, {0, 2, 2}, {0, 9, 3}, {4, 2, 2}, {4, 0, 4}} {
		s := New(newFleet(t, "a", "a", "b", "c"), nil, t.TempDir(), c.most)
		s.AtMost = c.atMost
		if got := s.Preview().AtOnce; got != c.want {
			t.Errorf("--at-once %d, room for %d: %d at once, want %d", c.most, c.atMost, got, c.want)
		}
	}
}
