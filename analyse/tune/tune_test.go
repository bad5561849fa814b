package tune

import (
	"math"
	"math/rand/v2"
	"testing"
)

// surface is how a value depends on the level, from 0.
type surface struct {
	name   string
	levels int
	at     func(level float64) float64
}

func surfaces() []surface {
	return []surface{
		{"saturating", 17, func(x float64) float64 { return 1 - 0.7*math.Exp(-x/3) }},
		{"peaked", 17, func(x float64) float64 { return math.Exp(-math.Abs(math.Log((1+x)/6)) / 2) }},
		{"flat", 17, func(float64) float64 { return 1 }},
		{"two peaks", 17, func(x float64) float64 {
			return 0.3 + 0.4*math.Exp(-(x-3)*(x-3)/6) + 0.6*math.Exp(-(x-12)*(x-12)/14)
		}},
		{"capped", 17, func(x float64) float64 { return min(0.25*(x+1), 1) }},
		{"six levels", 6, func(x float64) float64 { return min(0.3*(x+1), 1) }},
	}
}

// truth is the right answer, and the share of the best that each level has.
func (s surface) truth(g Goal) (answer int, shares []float64) {
	best := 0.0
	for i := range s.levels {
		best = max(best, s.at(float64(i)))
	}
	answer = -1
	for i := range s.levels {
		v := s.at(float64(i)) / best
		shares = append(shares, v)
		if answer < 0 && v >= g.share() {
			answer = i
		}
	}
	return answer, shares
}

// find tunes on a surface, given as the true value of each cell, and returns the last step and the number of trials.
func find(r *rand.Rand, truth []float64, grid Grid, g Goal, scatter, drift float64, blocks int) (Step, int) {
	var values [][]float64
	trials, common := 0, 0.0
	for len(values) < blocks {
		step := Next(values, grid, g)
		if step.Stage == Found {
			return step, trials
		}
		row := make([]float64, len(truth))
		for i := range row {
			row[i] = math.NaN()
		}
		for _, i := range step.Measure {
			common = 0.95*common + drift*r.NormFloat64()
			row[i] = truth[i] * math.Exp(scatter*r.NormFloat64()+common)
			trials++
		}
		values = append(values, row)
	}
	return Next(values, grid, g), trials
}

// TestFinds: on surfaces of every form, under noise and drift, the answer is seldom more than the
// margin below what it must reach, and takes far fewer trials than 16 blocks of all levels.
func TestFinds(t *testing.T) {
	for _, g := range []Goal{{Reach: 0.9, Margin: 0.03, Confidence: 0.95}, {Reach: 1, Margin: 0.03, Confidence: 0.95}} {
		bad, all, trials, exhaustive, found := 0, 0, 0, 0, 0
		for _, s := range surfaces() {
			_, shares := s.truth(g)
			badHere, trialsHere, foundHere := 0, 0, 0
			const tunes = 24
			for seed := range uint64(tunes) {
				r := rand.New(rand.NewPCG(seed, 7))
				step, n := find(r, shares, Grid{Closed: make([]bool, s.levels)}, g, []float64{0.01, 0.03, 0.06}[seed%3], 0.02, 16)
				if shares[step.Answer] < g.share()-0.03 {
					badHere++
				}
				if step.Stage == Found {
					foundHere++
				}
				trialsHere += n
			}
			t.Logf("reach %.2f, %s: %d of %d bad, %d found, %.1f trials of %d", g.Reach, s.name, badHere, tunes, foundHere, float64(trialsHere)/tunes, 16*s.levels)
			bad, all, trials, exhaustive, found = bad+badHere, all+tunes, trials+trialsHere, exhaustive+tunes*16*s.levels, found+foundHere
		}
		if float64(bad) > 0.02*float64(all) {
			t.Errorf("reach %.2f: %d of %d answers are more than 3 %% below", g.Reach, bad, all)
		}
		if saved := 1 - float64(trials)/float64(exhaustive); saved < 0.75 {
			t.Errorf("reach %.2f: %.0f %% of the trials saved", g.Reach, 100*saved)
		}
		t.Logf("reach %.2f: %d of %d bad, %d found, %.0f %% saved", g.Reach, bad, all, found, 100-100*float64(trials)/float64(exhaustive))
	}
}

// TestThin: after one block, one bad reading makes a level all but certain through the prior of the scatter, so no chance is to be told;
// once the levels that matter have two blocks, it is.
func TestThin(t *testing.T) {
	grid, g := Grid{Closed: make([]bool, 2)}, Goal{Reach: 0.9, Margin: 0.03, Confidence: 0.95}
	if step := Next([][]float64{{100, 10}}, grid, g); step.Sure < 0.95 || !step.Thin() {
		t.Errorf("after one block: sure %.3f, thin %v", step.Sure, step.Thin())
	}
	if step := Next([][]float64{{100, 10}, {101, math.NaN()}}, grid, g); !step.Thin() {
		t.Error("the rival has one block, and its chance is told")
	}
	if step := Next([][]float64{{100, 98}, {101, 99}}, grid, g); step.Thin() {
		t.Error("each level has two blocks, and no chance is told")
	}
	if Next(nil, grid, g).Thin() {
		t.Error("thin before the first block")
	}
}
