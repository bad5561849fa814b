package stat

import "math"

// maxBlocks bounds the search of Blocks, far above any study.
const maxBlocks = 1 << 20

// Blocks returns how many blocks an interval takes that is no wider than a relative
// half-width either way, for a comparison whose ln(Other/Base) scatters from block to
// block by sd. It is at least MinN, and 0 where even a million blocks are too few. It
// assumes that nothing else is known about the scatter, so a study with many comparisons
// may need fewer.
func (r Rule) Blocks(sd, width float64) int {
	enough := func(n int) bool { return r.HalfWidth(sd, n) <= width }
	hi := MinN
	for !enough(hi) {
		if hi *= 2; hi > maxBlocks {
			return 0
		}
	}
	lo := MinN - 1 // too few
	for hi-lo > 1 && hi > MinN {
		if n := (lo + hi) / 2; enough(n) {
			hi = n
		} else {
			lo = n
		}
	}
	return hi
}

// HalfWidth is the relative half-width of the interval that n blocks of this scatter give
// on average; +Inf below MinN.
func (r Rule) HalfWidth(sd float64, n int) float64 {
	if n < MinN {
		return math.Inf(1)
	}
	return math.Expm1(Student(float64(n-1)).Quantile(0.5+r.Level()/2) * sd / math.Sqrt(float64(n)))
}
