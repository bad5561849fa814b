package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/study"
)

// watched is makeStudy with a sentinel: every so many blocks, or by a share.
func watched(strata, treatments, every int, share float64) *study.Study {
	st := makeStudy(strata, treatments)
	st.Sentinel = &study.Sentinel{
		Cell:     record.Cell{{Factor: "workload", Value: study.SentinelLabel}, {Factor: "sandbox", Value: "process"}},
		Workload: study.Workload{Label: study.SentinelLabel, Kind: "syscall", Responses: []string{"time"}},
		Every:    every, Share: share,
	}
	return st
}

// restless is a world whose machine changes its level, by the place of a trial.
type restless struct {
	world
	scatter float64                 // of the sentinel
	level   func(place int) float64 // ln
	broken  func(Next) bool         // fails
}

func (w restless) trial(n Next) *record.Trial {
	t := w.world.trial(n)
	if n.Sentinel {
		r := rand.New(rand.NewPCG(w.seed, uint64(n.Block*1000+n.Attempt)))
		t.Status, t.Failure = record.OK, nil
		t.Samples = []record.Sample{{Name: "time", Unit: record.Second, Value: 1e-6 * math.Exp(w.scatter*r.NormFloat64())}}
	}
	if w.broken != nil && w.broken(n) {
		t.Status, t.Failure, t.Samples = record.Failed, &record.Failure{Kind: "died", Reason: "it died"}, nil
	}
	if w.level != nil {
		for i := range t.Samples {
			t.Samples[i].Value *= math.Exp(w.level(n.Seq))
		}
	}
	return t
}

func playOn(t *testing.T, p *Plan, trial func(Next) *record.Trial) (order []Next, trials []*record.Trial) {
	t.Helper()
	for {
		n, ok := p.Next()
		if !ok {
			return order, trials
		}
		if again, _ := p.Next(); !cmp.Equal(n, again) {
			t.Fatalf("asked twice: %v, then %v", n, again)
		}
		tr := trial(n)
		order, trials = append(order, n), append(trials, tr)
		p.Done(tr)
		if len(order) > 1e5 {
			t.Fatal("the plan does not end")
		}
	}
}

func stepAt(place int, size float64) func(int) float64 {
	return func(i int) float64 {
		if i >= place {
			return size
		}
		return 0
	}
}

// TestBlocksRunAgain: on a machine that changes once, exactly the blocks between
// the sentinel before and the one after run again, once, whole, as new attempts;
// and only those values count.
func TestBlocksRunAgain(t *testing.T) {
	const step = 150
	st := watched(4, 3, 2, 0)
	st.Stop.Fixed = 20
	p := New(st, nil, nil)
	order, trials := playOn(t, p, restless{world: world{noise: 0.02, seed: 3, duration: time.Second}, scatter: 0.02, level: stepAt(step, 0.15)}.trial)
	epochs := p.Epochs()
	if len(epochs) != 2 || !slices.Equal(epochs[1].What, []string{ChangedTime}) {
		t.Fatalf("%+v", epochs)
	}
	e := epochs[1]
	if e.After >= step || e.Seq < step {
		t.Errorf("the change before trial %d is told between %d and %d", step, e.After, e.Seq)
	}
	// From the order itself: what lies between the two.
	var want []Straddling
	for _, n := range order[e.After : e.Seq-1] {
		if n.Sentinel {
			t.Fatalf("a sentinel between: %+v", n)
		}
		s := Straddling{Stratum: n.Stratum, Block: n.Block, Again: true}
		if !slices.Contains(want, s) {
			want = append(want, s)
		}
	}
	if len(want) != 2 {
		t.Errorf("%d blocks between two sentinels, want 2", len(want))
	}
	if d := cmp.Diff(want, e.Blocks); d != "" {
		t.Errorf("-between +run again\n%s", d)
	}
	again := map[Straddling]int{}
	for i, n := range order {
		if !n.Again {
			continue
		}
		again[Straddling{n.Stratum, n.Block, true}]++
		if n.Attempt != 2 || n.Seq <= e.Seq {
			t.Errorf("%+v", n)
		}
		if !p.Counts(trials[i]) {
			t.Errorf("the last round does not count: %+v", n)
		}
		for j, o := range order[:i] {
			if o.Cell.Key() == n.Cell.Key() && o.Block == n.Block && p.Counts(trials[j]) {
				t.Errorf("the first round counts still: %+v", o)
			}
		}
	}
	for _, s := range want {
		if again[s] != 3 {
			t.Errorf("block %+v has %d trials again, want all 3", s, again[s])
		}
	}
	if len(again) != len(want) {
		t.Errorf("ran again: %v", again)
	}
	for i := range st.Strata {
		if e, _ := p.Ending(i); e.Code != EndFixed || e.Blocks != 20 {
			t.Errorf("%+v", e)
		}
	}
}

// TestSteadyMachine: nothing runs again, and without the sentinel's trials the
// order is that of a study without one.
func TestSteadyMachine(t *testing.T) {
	st := watched(3, 3, 0, 0.03)
	w := restless{world: world{noise: 0.5, duration: time.Second}, scatter: 0.02}
	p := New(st, nil, nil)
	order, trials := playOn(t, p, w.trial)
	if e := p.Epochs(); e != nil {
		t.Errorf("%+v", e)
	}
	var cells []string
	sentinels := 0
	for i, n := range order {
		if n.Sentinel {
			sentinels++
			if n.Stratum != -1 || i > 0 && i+1 < len(order) && order[i-1].Stratum == order[i+1].Stratum && order[i-1].Block == order[i+1].Block {
				t.Errorf("within a block: %+v", n)
			}
			continue
		}
		cells = append(cells, n.Cell.Key())
	}
	plain := *st
	plain.Sentinel = nil
	without, _ := playOn(t, New(&plain, nil, nil), w.trial)
	var want []string
	for _, n := range without {
		want = append(want, n.Cell.Key())
	}
	if d := cmp.Diff(want, cells); d != "" {
		t.Error(d)
	}
	if !order[0].Sentinel {
		t.Error("the study does not begin with a sentinel")
	}
	// Every trial takes a second: the first is beyond its share for a while.
	if most := int(0.03*float64(len(trials))) + 1; sentinels < most-1 || sentinels > most {
		t.Errorf("%d sentinels in %d trials, want about 3 %%", sentinels, len(trials))
	}
}

// TestBegunWithout: a study that an older tare began has no sentinel among its
// results, and goes on in the order that it began with.
func TestBegunWithout(t *testing.T) {
	st := watched(3, 3, 2, 0)
	old := *st
	old.Sentinel = nil
	w := restless{world: world{noise: 0.5, duration: time.Second}, scatter: 0.02, level: stepAt(40, 0.5)}
	order, trials := playOn(t, New(&old, nil, nil), w.trial)
	for _, cut := range []int{1, 2, 30, len(order) - 1} {
		p := New(st, nil, nil)
		for i := range trials[:cut] {
			p.Done(trials[i])
			p.Next()
		}
		rest, _ := playOn(t, p, func(n Next) *record.Trial { return trials[n.Seq-1] })
		if d := cmp.Diff(order[cut:], rest); d != "" {
			t.Fatalf("from %d on:\n%s", cut, d)
		}
		if p.Watches() || p.Strays() > 0 {
			t.Error("a sentinel watches nevertheless")
		}
	}
}

func TestSentinelThatCannotRun(t *testing.T) {
	st := watched(2, 2, 1, 0)
	p := New(st, []record.Skip{{Cell: st.Sentinel.Cell, Reason: "needs root"}}, nil)
	if p.Watches() {
		t.Error("it watches")
	}
	order, _ := playOn(t, p, restless{world: world{noise: 0.5}}.trial)
	if slices.ContainsFunc(order, func(n Next) bool { return n.Sentinel }) {
		t.Error("it runs")
	}
	if len(order) != 64 {
		t.Errorf("%d trials, want 16 blocks of 2 strata of 2 cells", len(order))
	}
	// One that fails is not repeated, and is given up after three.
	p = New(st, nil, nil)
	order, _ = playOn(t, p, restless{world: world{noise: 0.5}, broken: func(n Next) bool { return n.Sentinel }}.trial)
	sentinels := 0
	for _, n := range order {
		if n.Sentinel {
			sentinels++
		}
	}
	if sentinels != giveUpAfter || len(order) != 64+giveUpAfter || p.Watches() {
		t.Errorf("%d sentinels in %d trials", sentinels, len(order))
	}
	if p.Reason() == "" || p.Epochs() != nil || len(p.Sentinels()) != 0 {
		t.Error("the study is not finished as usual")
	}
}

// TestWaitAlone: more waiting for the processors begins an epoch too, and with a
// change of time at the same place it is one.
func TestWaitAlone(t *testing.T) {
	for _, step := range []float64{0, 0.3} {
		st := watched(3, 2, 1, 0)
		st.Stop.Fixed = 20
		p := New(st, nil, nil)
		w := restless{world: world{noise: 0.02, duration: time.Second}, scatter: 0.02, level: stepAt(100, step)}
		_, trials := playOn(t, p, func(n Next) *record.Trial {
			tr := w.trial(n)
			if n.Sentinel {
				wait := 0.02 + 0.001*float64(n.Seq%5)
				if n.Seq >= 100 {
					wait += 0.4
				}
				tr.Samples = append(tr.Samples, record.Sample{Name: WaitSample, Unit: record.Fraction, Value: wait})
			}
			return tr
		})
		e := p.Epochs()
		want := []string{ChangedWait}
		if step > 0 {
			want = append([]string{ChangedTime}, want...)
		}
		if len(e) != 2 || len(e) == 2 && (!cmp.Equal(slices.Sorted(slices.Values(e[1].What)), want) || e[1].After >= 100 || e[1].Seq < 100) {
			t.Errorf("step %g: %+v", step, e)
		}
		if len(trials) < 120+60 {
			t.Errorf("%d trials", len(trials))
		}
	}
}

// TestBlockThatFailsAgain: a cell that fails when its block runs again has no
// value in it: its old one was measured on another machine.
func TestBlockThatFailsAgain(t *testing.T) {
	st := watched(2, 2, 2, 0)
	st.Stop.Fixed = 30
	st.Retries = 1
	p := New(st, nil, nil)
	order, trials := playOn(t, p, restless{world: world{noise: 0.02, duration: time.Second}, scatter: 0.02, level: stepAt(70, 0.3),
		broken: func(n Next) bool { return n.Again && boxFails("t1")(n) }}.trial)
	failed := 0
	for i, n := range order {
		if !n.Again || trials[i].Status == record.OK {
			continue
		}
		failed++
		c := &p.cells[p.index[n.Cell.Key()]]
		if v := c.value(n.Block); !math.IsNaN(v) {
			t.Errorf("%+v has the value %g", n, v)
		}
		if c.gaveUp != "" {
			t.Errorf("given up: %s", c.gaveUp)
		}
		for j, o := range order {
			if o.Cell.Key() == n.Cell.Key() && o.Block == n.Block && p.Counts(trials[j]) {
				t.Errorf("counts: %+v", o)
			}
		}
	}
	if failed == 0 || failed%2 != 0 {
		t.Errorf("%d failed trials in blocks that ran again; want two a block", failed)
	}
}

// TestNeverRests: on a machine that changes all the time, what runs again stays
// within its share, and within the budget.
func TestNeverRests(t *testing.T) {
	st := watched(4, 3, 1, 0)
	st.Stop.Fixed = 40
	st.Budget.Time = 500 * time.Second
	p := New(st, nil, nil)
	level := func(i int) float64 { return 0.3 * float64(i/40%2) }
	order, trials := playOn(t, p, restless{world: world{noise: 0.02, duration: time.Second}, scatter: 0.01, level: level}.trial)
	times := map[string]int{}
	again := 0
	for i, n := range order {
		if !n.Sentinel {
			times[fmt.Sprint(n.Cell, n.Block)]++
		}
		if n.Again {
			again++
		}
		if 4*again > i+1+12 {
			t.Fatalf("%d of the first %d trials run again", again, i+1)
		}
	}
	if again == 0 || len(p.Epochs()) < 5 {
		t.Errorf("%d again, %d epochs", again, len(p.Epochs()))
	}
	for what, n := range times {
		if n > 1+maxAgain {
			t.Errorf("%s ran %d times", what, n)
		}
	}
	if spent := time.Duration(len(trials)) * time.Second; spent > st.Budget.Time {
		t.Errorf("took %s", spent)
	}
}

// TestResumeWhileTheMachineChanges kills studies on a drifting, stepping machine
// at random places, feeds what was done in random order to a new plan, and wants
// the sequence that it would have had: sentinels, and blocks that run again.
func TestResumeWhileTheMachineChanges(t *testing.T) {
	again := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 8))
		st := watched(1+r.IntN(4), 2+r.IntN(3), r.IntN(4), 0.1)
		st.Seed, st.Retries = seed, r.IntN(3)
		if r.IntN(2) == 0 {
			st.Stop.Fixed = 8 + r.IntN(12)
		}
		if r.IntN(3) == 0 {
			st.Budget.Time = time.Duration(50+r.IntN(200)) * time.Second
		}
		every, drift := 30+r.IntN(60), 0.0
		levels := make([]float64, 4000)
		for i := range levels {
			drift = 0.9*drift + 0.01*r.NormFloat64()
			levels[i] = drift + 0.3*float64(i/every%2)
		}
		w := restless{world: world{seed: seed, noise: 0.05, fail: []float64{0, 0.05}[r.IntN(2)]}, scatter: 0.02, level: func(i int) float64 { return levels[i] }}
		whole := New(st, nil, nil)
		order, trials := playOn(t, whole, w.trial)
		for _, n := range order {
			if n.Again {
				again++
			}
		}
		for range 8 {
			cut := r.IntN(len(order) + 1)
			p := New(st, nil, nil)
			part := slices.Clone(trials[:cut])
			r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			for _, trial := range part {
				p.Done(trial)
				if r.IntN(10) == 0 {
					p.Next() // asking in between changes nothing
				}
			}
			if n, ok := p.Next(); ok && cut > 0 && r.IntN(2) == 0 {
				p.Done(&record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.Failed,
					Duration: time.Hour, Failure: &record.Failure{Kind: "interrupted", Reason: "Ctrl-C"}})
			}
			for at := cut; ; at++ {
				n, ok := p.Next()
				if !ok {
					if at != len(order) || p.Reason() != whole.Reason() {
						t.Fatalf("seed %d, cut at %d: ends after %d with %q, want %d with %q", seed, cut, at, p.Reason(), len(order), whole.Reason())
					}
					break
				}
				if at >= len(order) {
					t.Fatalf("seed %d, cut at %d of %d: goes on with %+v", seed, cut, len(order), n)
				}
				o := order[at]
				if n.Cell.Key() != o.Cell.Key() || n.Block != o.Block || n.Again != o.Again || n.Sentinel != o.Sentinel {
					t.Fatalf("seed %d, cut at %d of %d: trial %d is %+v, want %+v", seed, cut, len(order), at, n, o)
				}
				done := *trials[at]
				done.Attempt, done.Seq = n.Attempt, n.Seq
				p.Done(&done)
			}
		}
	}
	if again < 100 {
		t.Errorf("only %d trials ran again: this proves nothing", again)
	}
}

// TestProgressWithSentinel: what is left is never negative, and comes down to
// nothing.
func TestProgressWithSentinel(t *testing.T) {
	st := watched(3, 3, 0, 0.05)
	st.Stop.Fixed = 12
	p := New(st, nil, nil)
	if r := p.Remaining(func(record.Cell) time.Duration { return time.Second }); r.Sentinels < 3 || r.Sentinels > 8 || r.AtMost != 108+r.Sentinels {
		t.Errorf("%+v", r)
	}
	w := restless{world: world{noise: 0.02, duration: time.Second}, scatter: 0.02, level: stepAt(50, 0.3)}
	order, _ := playOn(t, p, func(n Next) *record.Trial {
		r := p.Remaining(nil)
		if r.AtLeast < 1 || r.AtLeast > r.AtMost || r.LeastTime > r.MostTime || r.Sentinels < 0 {
			t.Fatalf("before %d: %+v", n.Seq, r)
		}
		return w.trial(n)
	})
	if r := p.Remaining(nil); r.AtMost != 0 || r.Done != len(order) {
		t.Errorf("at the end: %+v", r)
	}
}

// TestCountsWhatThePlanDecidedBy: of several good attempts in a block, an analysis
// takes the last that counts, and that is the one by whose value the plan stops;
// without a sentinel, with one on a machine at rest, and where blocks run again.
func TestCountsWhatThePlanDecidedBy(t *testing.T) {
	for name, c := range map[string]struct {
		sentinel bool
		level    func(int) float64
	}{
		"without a sentinel": {false, stepAt(0, 0)},
		"at rest":            {true, stepAt(0, 0)},
		"runs again":         {true, stepAt(150, 0.15)},
	} {
		st := watched(4, 3, 2, 0)
		st.Stop.Fixed = 20
		if !c.sentinel {
			st.Sentinel = nil
		}
		_, trials := playOn(t, New(st, nil, nil), restless{world: world{noise: 0.02, seed: 3, duration: time.Second}, scatter: 0.02, level: c.level}.trial)
		// One more good attempt here and there, far off, as of somebody who put it there.
		last := map[string]int{}
		block := func(x *record.Trial) string { return fmt.Sprint(x.Cell.Key(), " ", x.Block) }
		for _, x := range trials {
			last[block(x)] = max(last[block(x)], x.Attempt)
		}
		for i, x := range slices.Clone(trials) {
			if i%5 != 0 || st.Sentinel != nil && x.Cell.Key() == st.Sentinel.Cell.Key() {
				continue
			}
			more := *x
			last[block(x)]++
			more.Attempt, more.Seq = last[block(x)], len(trials)+1
			more.Samples = slices.Clone(x.Samples)
			more.Samples[0].Value *= 100
			trials = append(trials, &more)
		}
		p := New(st, nil, nil)
		for _, x := range trials {
			p.Done(x)
		}
		counting := map[string]*record.Trial{}
		for _, x := range trials {
			if o := counting[block(x)]; x.Status == record.OK && p.Counts(x) && (o == nil || x.Attempt > o.Attempt) {
				counting[block(x)] = x
			}
		}
		several, again := 0, 0
		for i := range p.cells {
			cell := &p.cells[i]
			for b := range cell.blocks {
				want := cell.value(b + 1)
				if math.IsNaN(want) {
					continue
				}
				if len(cell.blocks[b].tries) > 1 {
					several++
				}
				again += cell.blocks[b].again
				x := counting[fmt.Sprint(cell.cell.Key(), " ", b+1)]
				if x == nil {
					t.Errorf("%s: block %d of %s: the plan decided by %g, and nothing counts", name, b+1, cell.cell, want)
				} else if got, _ := x.Sample("time"); got != want {
					t.Errorf("%s: block %d of %s: the plan decided by %g, attempt %d with %g counts", name, b+1, cell.cell, want, x.Attempt, got)
				}
			}
		}
		if several < 10 || (again > 0) != (name == "runs again") {
			t.Errorf("%s: %d blocks with several attempts, %d that ran again: nothing is shown", name, several, again)
		}
	}
}
