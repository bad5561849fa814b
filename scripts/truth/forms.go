package main

import (
	"math"
	"math/rand/v2"
)

// form is how a value depends on the level of an ordered factor, from 0 to levels-1.
type form struct {
	name string
	at   func(level float64) float64
}

// levels is how many levels a factor has that is tuned.
const levels = 17

// forms are those that the literature of configuration has: saturating, peaked, flat, two peaks, capped.
func forms() []form {
	return []form{
		{"saturating", func(x float64) float64 { return 1 - 0.7*math.Exp(-x/3) }},
		{"peaked", func(x float64) float64 { return math.Exp(-math.Abs(math.Log((1+x)/6)) / 2) }},
		{"flat", func(float64) float64 { return 1 }},
		{"two peaks", func(x float64) float64 {
			return 0.3 + 0.4*math.Exp(-(x-3)*(x-3)/6) + 0.6*math.Exp(-(x-12)*(x-12)/14)
		}},
		{"capped", func(x float64) float64 { return math.Min(0.25*(x+1), 1) }},
	}
}

// ratios draws ln of the true ratios of a stratum whose treatments are levels and whose baseline is level 0.
// The form is flattened by chance, as the same setting matters more to one workload than to another.
func (f *form) ratios(r *rand.Rand, out []float64) {
	part := r.Float64()
	part *= part
	for k := range out {
		level := float64(levels-1) * float64(k+1) / float64(len(out))
		out[k] = part * math.Log(f.at(level)/f.at(0))
	}
}
