package tune

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestConfirms: each block after the first holds the answer and another level, also if the answer is the lowest level and the best.
// So does a search of many levels.
func TestConfirms(t *testing.T) {
	g := Goal{Reach: 0.9, Margin: 0.03, Confidence: 0.95}
	for name, truth := range map[string][]float64{
		"two levels, the first is best": {1, 0.78},
		"two levels, the second":        {0.5, 1},
		"falling":                       {1, 0.7, 0.5, 0.4},
		"many, falling":                 {1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3},
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			grid := Grid{Closed: make([]bool, len(truth))}
			var values [][]float64
			answer, confirming := -1, 0
			for step := Next(nil, grid, g); step.Stage != Found && len(values) < 16; step = Next(values, grid, g) {
				if len(step.Measure) < 2 || step.Answer >= 0 && !slices.Contains(step.Measure, step.Answer) {
					t.Errorf("%s, seed %d: block %d is to hold %v, with the answer %d", name, seed, len(values)+1, step.Measure, step.Answer)
				}
				if step.Stage == Confirming && step.Answer == answer {
					confirming++
				}
				answer = step.Answer
				row := make([]float64, len(truth))
				for i := range row {
					row[i] = math.NaN()
				}
				for _, i := range step.Measure {
					row[i] = truth[i] * math.Exp(0.02*r.NormFloat64())
				}
				values = append(values, row)
			}
			if len(values) < 16 && confirming == 0 {
				t.Errorf("%s, seed %d: no block confirmed the answer", name, seed)
			}
		}
	}
}

// TestConfirmsWithBoth: a block whose trial of the rival failed confirms nothing, and the search goes on. With the trial, it
// ends.
func TestConfirmsWithBoth(t *testing.T) {
	g := Goal{Reach: 0.9, Margin: 0.03, Confidence: 0.95}
	grid := Grid{Closed: make([]bool, 2)}
	nan := math.NaN()
	whole := [][]float64{{100, 50}, {101, 50}, {99, 50}, {100, 51}}
	if s := Next(whole, grid, g); s.Stage != Found || s.Answer != 0 {
		t.Fatalf("after whole blocks: %+v", s)
	}
	holed := slices.Clone(whole)
	holed[2] = []float64{99, nan}
	s := Next(holed, grid, g)
	if s.Stage != Confirming || !slices.Equal(s.Measure, []int{0, 1}) {
		t.Errorf("with a block of one level: %+v", s)
	}
	if s := Next(append(holed, []float64{100, 50}), grid, g); s.Stage != Found {
		t.Errorf("with one more whole block: %+v", s)
	}
	// What is certain is exactly 1, whatever sums of parts would give.
	if s.Levels[0].Answer != 1 || s.Sure != 1 {
		t.Errorf("chance %v, sure %v, want 1", s.Levels[0].Answer, s.Sure)
	}
}
