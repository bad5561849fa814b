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

// More returns how many more blocks a comparison needs until its interval is narrow enough for the study
// to stop, if its scatter stays as it is. 0 means that it is narrow enough, that nothing is known, or
// that even a million blocks are too few.
func (r Rule) More(s Summary, prior Prior) int {
	if n := r.more(s, prior, 0); n < maxBlocks {
		return n
	}
	return 0
}

// Tells returns how many more blocks the first possible verdict needs. A verdict needs an interval that is narrow
// enough, or half as wide as the effect that the first block shows. Like Enough, it does not look at the
// mean, because selecting by the mean would select by chance. It is a million or more if no verdict can
// come.
func (r Rule) Tells(s Summary, prior Prior) int {
	return r.more(s, prior, math.Expm1(math.Abs(s.first())/2))
}

// more returns how many more blocks this half-width needs, or the one that is narrow enough if that is
// wider.
func (r Rule) more(s Summary, prior Prior, width float64) int {
	e := s.Estimate(prior, r.Level())
	if r.Clear {
		e = r.Estimate(s, prior)
	}
	if !e.HasInterval() || r.enough(s, e) {
		return 0
	}
	n := r.Blocks(e.SE*math.Sqrt(float64(e.N)), math.Max(width, r.wanted(s, relative)))
	if n == 0 {
		return maxBlocks
	}
	return max(n-e.N, 1)
}
