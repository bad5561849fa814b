package analyse

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tare/record"
)

// TestCounting: what counts of a block that ran again is its last round alone,
// also where that failed; nothing depends on the order of trials.
func TestCounting(t *testing.T) {
	st := watchedStudy()
	trials := play(st, nil, onStep(1.2, 1))
	// The last round of one cell fails; a trial too many of a resumed run may still
	// be good.
	lost := -1
	for i := range trials {
		if trials[i].Attempt == 2 && trials[i].Cell.Key() != st.Sentinel.Cell.Key() {
			lost = i
			break
		}
	}
	if lost < 0 {
		t.Fatal("no block ran again")
	}
	key, block := trials[lost].Cell.Key(), trials[lost].Block
	before := Analyse(st, trials, nil)
	if x := before.Counting(trials)[key][block]; x == nil || x.Attempt != 2 || len(before.Superseded) == 0 {
		t.Fatalf("%+v counts; superseded: %+v", x, before.Superseded)
	}
	trials[lost].Status, trials[lost].Failure = record.Failed, &record.Failure{Kind: "died"}
	again := trials[lost]
	again.Attempt, again.Seq = 3, trials[len(trials)-1].Seq+1
	trials = append(trials, again)
	r := Analyse(st, trials, nil)
	if x := r.Counting(trials)[key][block]; x != nil {
		t.Errorf("attempt %d counts, of a round that is over", x.Attempt)
	}
	for _, s := range r.Superseded {
		if s.Cell.Key() == st.Sentinel.Cell.Key() || s.Attempt != 1 {
			t.Errorf("superseded: %+v", s)
		}
	}
	mixed := slices.Clone(trials)
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	got, want := r.Counting(mixed), r.Counting(trials)
	if len(got) != len(want) {
		t.Fatalf("%d cells, not %d", len(got), len(want))
	}
	for cell, blocks := range want {
		for b, x := range blocks {
			if y := got[cell][b]; y == nil || y.Seq != x.Seq {
				t.Errorf("%s, block %d: %+v, not trial %d", cell, b, y, x.Seq)
			}
		}
	}
}
