package plan

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestYield: a row that is far too noisy for the budget gives its time to rows that can be decided, in
// whatever order the trials are told; without others, or with time for all, it goes on.
func TestYield(t *testing.T) {
	noise := func(n Next) world {
		if n.Stratum == 0 {
			return world{seed: 4, noise: 1, calm: 1, duration: time.Second}
		}
		return world{seed: 4, noise: 0.02, duration: time.Second}
	}
	for _, tt := range []struct {
		name   string
		strata int
		budget time.Duration
		want   string // of the first stratum
	}{
		{"short", 4, 80 * time.Second, EndYielded},
		{"alone", 1, 20 * time.Second, EndBudgetTime},
		{"long", 4, time.Hour, EndLooks},
		{"none", 4, 0, EndLooks},
	} {
		st := makeStudy(tt.strata, 2)
		st.Stop.Width = 0.03
		st.Budget.Time = tt.budget
		p := New(st, nil, nil)
		var trials []Next
		for {
			n, ok := p.Next()
			if !ok {
				break
			}
			trials = append(trials, n)
			p.Done(noise(n).trial(n))
		}
		e, _ := p.Ending(0)
		if e.Code != tt.want {
			t.Errorf("%s: the noisy row ended with %+v, want %s", tt.name, e, tt.want)
		}
		if yields := tt.want == EndYielded; p.Yielded(st.Strata[0].Cells[1].Key()) != yields {
			t.Errorf("%s: yielded is not %v", tt.name, yields)
		}
		again := New(st, nil, nil)
		for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(trials)) {
			again.Done(noise(trials[i]).trial(trials[i]))
		}
		if _, more := again.Next(); more || again.Reason() != p.Reason() {
			t.Errorf("%s: told in another order, it ends with %q, want %q", tt.name, again.Reason(), p.Reason())
		}
		for i := 1; tt.name == "short" && i < tt.strata; i++ {
			if e, _ := p.Ending(i); e.Code != EndDecided {
				t.Errorf("%s: stratum %d ended with %+v", tt.name, i, e)
			}
		}
	}
}
