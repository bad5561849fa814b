package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/study"
)

// counted is a study whose strata have counting trials, but for some of them.
func counted(st *study.Study, except ...int) *study.Study {
	out := *st
	out.Calls, out.Strata = true, slices.Clone(st.Strata)
	for i := range out.Strata {
		if !slices.Contains(except, i) {
			out.Strata[i].Counting = study.CountingCell(out.Strata[i].Cells[0])
		}
	}
	return &out
}

// split parts the counting trials from the others.
func split(order []Next) (counting, rest []Next) {
	for _, n := range order {
		if n.Counting {
			counting = append(counting, n)
		} else {
			rest = append(rest, n)
		}
	}
	return counting, rest
}

func keys(order []Next) (out []string) {
	for _, n := range order {
		out = append(out, n.Cell.Key())
	}
	return out
}

// TestCountingComesFirst: each stratum that wants it has one counting trial, right
// before its first block, and the order of all others is that of a study without.
func TestCountingComesFirst(t *testing.T) {
	plain := watched(5, 3, 2, 0)
	plain.Strata[3].Baseline = 1
	st := counted(plain, 2)
	w := restless{world: world{noise: 0.05, duration: time.Second}, scatter: 0.02}
	p := New(st, nil, nil)
	preview := p.Preview(0)
	order, trials := playOn(t, p, w.trial)
	counting, rest := split(order)
	without, _ := playOn(t, New(plain, nil, nil), w.trial)
	if d := cmp.Diff(keys(without), keys(rest)); d != "" {
		t.Errorf("-without counting +with\n%s", d)
	}
	if len(counting) != 4 {
		t.Errorf("%d counting trials, want 4", len(counting))
	}
	for i, n := range order {
		if !n.Counting {
			continue
		}
		if n.Stratum == 2 || n.Block != 1 || n.Attempt != 1 || n.Cell.Key() != st.Strata[n.Stratum].Counting.Key() {
			t.Errorf("%+v", n)
		}
		next := order[i+1]
		if next.Stratum != n.Stratum || next.Block != 1 {
			t.Errorf("after %+v comes %+v", n, next)
		}
		for _, o := range order[:i] {
			if o.Stratum == n.Stratum {
				t.Errorf("%+v comes before %+v", o, n)
			}
		}
		if !p.Counts(trials[i]) {
			t.Errorf("%+v is superseded", n)
		}
	}
	first := slices.IndexFunc(order, func(n Next) bool { return n.Block > 1 })
	if d := cmp.Diff(keys(order[:first]), keys(preview)); d != "" {
		t.Errorf("-first pass +preview\n%s", d)
	}
	if p.Strays() != 0 {
		t.Errorf("%d strays", p.Strays())
	}
}

// TestCountingFails: it is tried once more and then left, and its cell is none the
// worse for it.
func TestCountingFails(t *testing.T) {
	st := counted(makeStudy(2, 2))
	st.Stop.Fixed, st.Retries = 4, 3
	lost := st.Strata[1].Counting.Key()
	p := New(st, nil, nil)
	order, _ := play(t, p, world{noise: 0.05, always: func(n Next) bool { return n.Cell.Key() == lost }})
	var attempts []int
	for _, n := range order {
		if n.Cell.Key() == lost {
			attempts = append(attempts, n.Attempt)
		}
	}
	if d := cmp.Diff([]int{1, 2}, attempts); d != "" {
		t.Errorf("-want +attempts\n%s", d)
	}
	if len(order) != 2*2*4+3 {
		t.Errorf("%d trials", len(order))
	}
	for i := range st.Strata {
		if e, _ := p.Ending(i); e.Code != EndFixed || e.Blocks != 4 {
			t.Errorf("%+v", e)
		}
		if g := p.GaveUp(st.Strata[i].Cells[0]); g != "" {
			t.Error(g)
		}
	}
}

// TestCountingSkipped: where the host counts nothing, or cannot run the cell, the
// study is as if it did not ask.
func TestCountingSkipped(t *testing.T) {
	plain := makeStudy(3, 3)
	st := counted(plain)
	w := world{noise: 0.05}
	without, _ := play(t, New(plain, nil, nil), w)
	order, _ := play(t, New(st, []record.Skip{{Cell: study.CountingAll(), Reason: "no BPF"}}, nil), w)
	if d := cmp.Diff(keys(without), keys(order)); d != "" {
		t.Error(d)
	}
	order, _ = play(t, New(st, []record.Skip{{Cell: st.Strata[1].Cells[0], Reason: "not here"}}, nil), w)
	counting, _ := split(order)
	if len(counting) != 2 || slices.ContainsFunc(counting, func(n Next) bool { return n.Stratum == 1 }) {
		t.Errorf("%+v", counting)
	}
}

// TestCountingBegunWithout: a stratum with trials of its first block and no
// counting trial goes on without; one that has not begun is counted. A finished
// study stays finished.
func TestCountingBegunWithout(t *testing.T) {
	plain := makeStudy(4, 3)
	plain.Stop.Fixed = 3
	st := counted(plain)
	w := world{noise: 0.05}
	order, trials := play(t, New(plain, nil, nil), w)
	for cut := range len(order) + 1 {
		p := New(st, nil, nil)
		begun := map[int]bool{}
		for i := range trials[:cut] {
			p.Done(trials[i])
			begun[order[i].Stratum] = true
		}
		rest, _ := play(t, p, w)
		counting, others := split(rest)
		if d := cmp.Diff(keys(order[cut:]), keys(others)); d != "" {
			t.Fatalf("cut at %d: %s", cut, d)
		}
		if len(counting) != 4-len(begun) {
			t.Fatalf("cut at %d, %d strata begun: %d counting trials", cut, len(begun), len(counting))
		}
	}
}

// TestCountingResume: killed anywhere, and resumed with the results in any order,
// the study goes on as it would have.
func TestCountingResume(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 11))
		st := counted(watched(1+r.IntN(4), 1+r.IntN(3), r.IntN(3), 0.1))
		st.Seed, st.Retries, st.Stop.Fixed = seed, r.IntN(2), 2+r.IntN(3)
		if r.IntN(2) == 0 {
			st.Budget.Time = time.Duration(1+r.IntN(60)) * time.Second
		}
		w := restless{world: world{seed: seed, fail: []float64{0, 0.3}[r.IntN(2)]}, scatter: 0.02}
		whole := New(st, nil, nil)
		order, trials := playOn(t, whole, w.trial)
		for cut := range len(order) + 1 {
			p := New(st, nil, nil)
			part := slices.Clone(trials[:cut])
			r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
			for i, x := range part {
				p.Done(x)
				if i == len(part)/2 {
					p.Next() // asking in between changes nothing
				}
			}
			if n, ok := p.Next(); ok && r.IntN(2) == 0 {
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
				if at == len(order) || n.Cell.Key() != order[at].Cell.Key() || n.Block != order[at].Block || n.Counting != order[at].Counting {
					t.Fatalf("seed %d, cut at %d: trial %d is %+v", seed, cut, at, n)
				}
				done := *trials[at]
				done.Attempt, done.Seq = n.Attempt, n.Seq
				p.Done(&done)
			}
		}
	}
}

// TestCountingRemaining: what is left is told before and after each trial.
func TestCountingRemaining(t *testing.T) {
	st := counted(makeStudy(3, 2))
	st.Stop.Fixed = 2
	second := func(record.Cell) time.Duration { return time.Second }
	p := New(st, nil, nil)
	if r := p.Remaining(second); r.Counting != 3 || r.AtMost != 15 || r.MostTime != 15*time.Second {
		t.Errorf("%+v", r)
	}
	w := world{noise: 0.05, duration: time.Second}
	for done := 1; ; done++ {
		n, ok := p.Next()
		if !ok {
			break
		}
		p.Done(w.trial(n))
		if r := p.Remaining(second); r.AtMost != 15-done || r.AtLeast != 15-done || r.Done != done {
			t.Fatalf("after %d: %+v", done, r)
		}
	}
}
