package plan

import (
	"testing"
	"time"

	"tare/study"
)

// TestAdaptive: a study measures on only where a verdict is open. A clear difference ends early, something far
// too noisy yields, and what is left comes first where a second brings more.
func TestAdaptive(t *testing.T) {
	st := makeStudy(3, 2)
	st.Stop = study.Stop{Adaptive: true, Looks: []int{3, 4, 5, 6, 8, 10, 12, 14, 16}, Confidence: 0.95, Margin: 0.03}
	// Their treatments are equal to the baseline but for noise, twice as slow, and too noisy for anything.
	worlds := []world{{seed: 4, noise: 0.03}, {seed: 4, noise: 0.03}, {seed: 4, noise: 1, calm: 1}}
	p := New(st, nil, nil)
	made := make([]int, len(st.Strata))
	for {
		n, ok := p.Next()
		if !ok {
			break
		}
		w := worlds[n.Stratum]
		w.duration = time.Second
		trial := w.trial(n)
		if n.Stratum == 1 && n.Cell.Key() != st.Strata[1].Cells[0].Key() {
			trial.Samples[0].Value *= 2
		}
		made[n.Stratum]++
		p.Done(trial)
	}
	for i, want := range []struct {
		code string
		most int
	}{{EndLooks, 32}, {EndDecided, 10}, {EndYielded, 24}} {
		e, _ := p.Ending(i)
		if i > 0 && e.Code != want.code || made[i] > want.most {
			t.Errorf("stratum %d ended with %+v after %d trials, want %s and at most %d", i, e, made[i], want.code, want.most)
		}
	}
	if !p.Yielded(st.Strata[2].Cells[1].Key()) || p.Yielded(st.Strata[1].Cells[1].Key()) {
		t.Error("the noisy row has not yielded, or the clear one has")
	}
}
