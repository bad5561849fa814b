package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestNest: with many blocks the estimate is the truth, whatever is known before; with few it is between.
func TestNest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(starts float64, blocks, turns int) [][]float64 {
		groups := make([][]float64, blocks)
		for i := range groups {
			own := math.Sqrt(starts) * r.NormFloat64()
			for range turns {
				groups[i] = append(groups[i], own+r.NormFloat64())
			}
		}
		return groups
	}
	for _, starts := range []float64{0.2, 1, 5} {
		l := Nest([][][]float64{draw(starts, 4000, 3), draw(starts, 4000, 3)}, 2)
		if math.Abs(l.starts/starts-1) > 0.2 {
			t.Errorf("starts scatter by %.3f of turns, want %.3f", l.starts, starts)
		}
		// Twice the turns of a block halve the part of the turns.
		if got, want := l.Relative(6), (starts+1./6)/(starts+1./3); math.Abs(got-want) > 0.1 {
			t.Errorf("six turns leave %.3f of the variance, want %.3f", got, want)
		}
	}
	if l := Nest([][][]float64{draw(1, 2, 2), draw(1, 3, 1), nil}, 2); l != (Nested{startsBefore, 2}) {
		t.Errorf("two blocks, or one turn each, say nothing of two levels: %+v", l)
	}
}

// TestNestedWidth: equal blocks have the width of Student's t, and more turns narrow as much as they take away.
func TestNestedWidth(t *testing.T) {
	rule := NewRule(0.95, 0.05, 0.1, nil, 4)
	l := Nested{starts: 0.5, size: 2}
	if got, want := l.Width(rule, 2, 4, 2), Student(5).Quantile(0.975)/math.Sqrt(6); math.Abs(got-want) > 1e-9 {
		t.Errorf("six equal blocks: %.4f, want %.4f", got, want)
	}
	// Four turns leave 0.75 of the variance of two.
	if got, want := l.Width(rule, 2, 4, 4), Student(5).Quantile(0.975)*math.Sqrt((2+4*0.75)/6)/math.Sqrt(6); math.Abs(got-want) > 1e-9 {
		t.Errorf("four more turns: %.4f, want %.4f", got, want)
	}
	if got := l.Width(rule, 1, 1, 16); !math.IsInf(got, 1) {
		t.Errorf("two blocks have the width %.4f", got)
	}
}
