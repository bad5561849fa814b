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
