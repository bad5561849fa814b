package main

import (
	"testing"

	"tare/analyse/tune"
)

// TestNeighbours: a search that begins where that of an alike cell ended reads less and finds the same; neighbours that are
// unrelated have several forms; a level is right only if no lower one clearly reaches the share.
func TestNeighbours(t *testing.T) {
	goal := tune.Goal{Reach: 0.9, Margin: 0.03, Confidence: 0.95}
	all := levelCells()
	var near []int
	alone, beside := 0, 0
	for i, g := range grow(fork(1, 1), all, 4, kinships()[0]) { // capped
		s := &surface{ground: g}
		for range 16 {
			s.value = append(s.value, s.share)
		}
		screened, n := tuneNear(s, goal, nil)
		seeded, m := tuneNear(s, goal, near)
		if seeded.Answer != screened.Answer || !s.right(seeded.Answer, goal) {
			t.Errorf("cell %d: %d, without a neighbour %d", i, seeded.Answer, screened.Answer)
		}
		if s.right(levels-1, goal) || s.right(0, goal) {
			t.Errorf("cell %d: the last level, or the first, is right", i)
		}
		near, alone, beside = []int{seeded.Answer, seeded.Best}, alone+n, beside+m
	}
	if beside >= alone {
		t.Errorf("%d readings, %d without neighbours", beside, alone)
	}
	at := map[float64]bool{}
	for _, g := range grow(fork(1, 1), all, 4, kinships()[2]) {
		at[g.share[0]] = true
	}
	if len(at) < 3 {
		t.Errorf("%d kinds of unrelated neighbours", len(at))
	}
}
