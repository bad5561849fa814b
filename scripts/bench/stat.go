package main

import (
	"math"
	"slices"

	"tare/analyse/stat"
)

// pair is one round: ours and the other's figure, measured one after the other.
type pair struct{ ours, peer float64 }

// compared is how ours relates to the other, over the rounds: the median of the
// pairs, and an interval. Low and High are zero when there are too few rounds.
type compared struct {
	Mid, Low, High float64
}

// minRounds are needed for an interval: of fewer pairs even the widest one,
// from the smallest to the largest, holds the median less often than in 95 %.
const minRounds = 6

// compare takes f of each pair (a quotient or a difference). The interval is
// that of the sign test: from the k-th smallest to the k-th largest, k as large
// as 95 % allow. It holds for any distribution, which times on busy machines ask for
// (Conover, Practical Nonparametric Statistics, section 3.2).
func compare(pairs []pair, f func(pair) float64) compared {
	v := make([]float64, 0, len(pairs))
	for _, p := range pairs {
		v = append(v, f(p))
	}
	slices.Sort(v)
	c := compared{Mid: quantile(v, 0.5)}
	if k := stat.MedianRank(len(v), 0.95); k > 0 {
		c.Low, c.High = v[k-1], v[len(v)-k]
	}
	return c
}

func quotient(p pair) float64   { return p.ours / p.peer }
func difference(p pair) float64 { return p.ours - p.peer }

// quantile of a sorted list, between the two nearest values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func median(v []float64) float64 { return quantile(slices.Sorted(slices.Values(v)), 0.5) }

// sides takes the pairs apart, each sorted.
func sides(pairs []pair) (ours, peer []float64) {
	for _, p := range pairs {
		ours, peer = append(ours, p.ours), append(peer, p.peer)
	}
	slices.Sort(ours)
	slices.Sort(peer)
	return ours, peer
}
