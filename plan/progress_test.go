package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

func TestRemaining(t *testing.T) {
	st := makeStudy(3, 4)
	p := New(st, nil, nil)
	got := p.Remaining(nil)
	if d := cmp.Diff(Progress{Pass: 1, Passes: 16, AtLeast: 36, AtMost: 192, Unknown: 192}, got); d != "" {
		t.Error(d)
	}
	got = p.Remaining(func(record.Cell) time.Duration { return time.Second })
	if got.Unknown != 0 || got.LeastTime != 36*time.Second || got.MostTime != 192*time.Second {
		t.Errorf("%+v", got)
	}
	w := world{noise: 2, duration: 2 * time.Second}
	for done := 0; ; done++ {
		n, ok := p.Next()
		r := p.Remaining(nil)
		if r.Done != done || r.AtMost != 192-done {
			t.Fatalf("after %d: %+v", done, r)
		}
		if !ok {
			if r.AtLeast != 0 || r.MostTime != 0 {
				t.Errorf("at the end: %+v", r)
			}
			break
		}
		if r.AtLeast < 1 || r.AtLeast > r.AtMost || r.LeastTime > r.MostTime {
			t.Fatalf("after %d: %+v", done, r)
		}
		p.Done(w.trial(n))
	}
	st.Budget.Time = 50 * time.Second
	if r := New(st, nil, nil).Remaining(func(record.Cell) time.Duration { return 10 * time.Second }); r.MostTime != 120*time.Second {
		t.Errorf("the first pass is always whole: %+v", r)
	}
}

// A busy host: trials of a virtual machine take 75 s instead of 5, those of a process take what was expected.
func TestRemainingOfFirstPass(t *testing.T) {
	st := makeStudy(4, 2)
	st.Budget.Time = 6 * time.Minute
	slow := st.Strata[0].Cells[1]
	level, _ := slow.Get(st.Compare)
	takes := func(c record.Cell) time.Duration {
		if l, _ := c.Get(st.Compare); l == level {
			return 75 * time.Second
		}
		return 5 * time.Second
	}
	five := func(record.Cell) time.Duration { return 5 * time.Second }
	for _, estimate := range []func(record.Cell) time.Duration{five, nil} {
		p := New(st, nil, nil)
		var spent, first time.Duration
		for i := range st.Strata {
			for _, c := range st.Strata[i].Cells {
				first += takes(c)
			}
		}
		for done := 0; done < 8; done++ {
			n, ok := p.Next()
			if !ok || n.Block != 1 {
				t.Fatalf("trial %d: %+v", done, n)
			}
			if done >= 2 && spent+75*time.Second < st.Budget.Time {
				if r := p.Remaining(estimate); r.MostTime < first-spent {
					t.Errorf("after %d trials and %v, the first pass takes %v more: %+v", done, spent, first-spent, r)
				}
			}
			p.Done(&record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Duration: takes(n.Cell), Samples: []record.Sample{{Name: "time", Value: 1}}})
			spent += takes(n.Cell)
		}
	}
	st.Budget.Time = 2 * time.Minute
	p := New(st, nil, nil)
	for range 4 { // two blocks: 160 s
		n, _ := p.Next()
		p.Done(&record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Duration: takes(n.Cell), Samples: []record.Sample{{Name: "time", Value: 1}}})
	}
	if r := p.Remaining(five); r.AtMost != 4 || r.AtLeast != 4 || r.MostTime != 160*time.Second || r.LeastTime != r.MostTime || r.Past != 160*time.Second {
		t.Errorf("the budget is used up, and two blocks of the first pass are left: %+v", r)
	}
}

// BenchmarkPlan100k plans 100,000 cells and follows one full pass.
func BenchmarkPlan100k(b *testing.B) {
	st := makeStudy(20000, 5)
	for b.Loop() {
		p := New(st, nil, nil)
		n := 0
		for {
			next, ok := p.Next()
			if !ok || next.Block > 1 {
				break
			}
			n++
			p.Done(&record.Trial{Seq: next.Seq, Block: 1, Attempt: 1, Cell: next.Cell, Status: record.OK, Duration: time.Second,
				Samples: []record.Sample{{Name: "time", Value: 1}}})
		}
		if n != 100000 {
			b.Fatal(n)
		}
	}
}
