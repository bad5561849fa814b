package compare

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"tare/analyse/stat"
	"tare/plan"
	"tare/study"
)

// looks knows how often both studies may have looked at what they measured, and
// what that costs a comparison of the two.
//
// Each study stopped after a number of blocks that its own results chose, so the
// difference of two of them is one of all the differences that could have come
// out: those at look i of A and look j of B. Whatever made either stop, the one
// that came out is no farther off than the farthest of them all. So the error
// rate is bounded by the probability that any of these differences, each in its
// own standard errors, is beyond c:
//
//	P(max over i, j of |T(i,j)| > c), T(i,j) = (mean_j(B) - mean_i(A)) / se(i,j)
//
// The T are normal with known correlations, since means of the same blocks
// overlap: cov = varA/max(i,i') + varB/max(j,j'). Their maximum is bounded from
// above by D. Hunter, J. Appl. Probab. 13 (1976) 597, and K. J. Worsley,
// Biometrika 69 (1982) 297: the sum over all of them, less what the neighbours in
// a tree have in common. The tree of highest correlations bounds best. It is exact
// for two studies without looks, where it is the ordinary level. For six looks each
// it is up to 1.8 times what the worst stopping reaches (the tests draw it), which
// makes intervals 8 % wider than that would need.
//
// As in package stat, the level found for normal sums is used with Student's t.
//
// Rejected: the studies' own intervals taken apart (B's lower end by A's upper
// end), which is twice as wide as need be; and no allowance, since a study that
// stops at a clear verdict stops where it overstates.
type looks struct {
	a, b       []int
	confidence float64
	trees      map[int][]float64 // by rounded ratio of variances: correlations along the tree
	levels     map[int]float64   // likewise: nominal error rate of one interval
}

func newLooks(a, b *study.Study) *looks {
	ra, rb := plan.Rule(a), plan.Rule(b)
	return &looks{a: lookedAt(ra), b: lookedAt(rb), confidence: math.Max(ra.Confidence, rb.Confidence),
		trees: make(map[int][]float64), levels: make(map[int]float64)}
}

// lookedAt are the numbers of blocks at which a study may have stopped.
func lookedAt(r stat.Rule) []int {
	if r.Fixed > 0 || len(r.Looks) == 0 {
		return []int{max(1, r.Fixed)}
	}
	return r.Looks
}

// nominal returns the error rate that one interval may have so that it errs in
// 1 - confidence at most, for this ratio of B's variance of one block to A's.
func (l *looks) nominal(ratio float64) float64 {
	k := rounded(ratio)
	if v, ok := l.levels[k]; ok {
		return v
	}
	alpha := 1 - l.confidence
	lo := distuv.UnitNormal.Quantile(1 - alpha/2) // one look
	hi := distuv.UnitNormal.Quantile(1 - alpha/2/float64(len(l.a)*len(l.b)))
	for range 40 {
		c := (lo + hi) / 2
		if l.beyond(k, c) > alpha {
			lo = c
		} else {
			hi = c
		}
	}
	v := math.Min(alpha, 2*distuv.UnitNormal.Survival(hi))
	l.levels[k] = v
	return v
}

// p is the error rate that all looks together have when each has the level p.
func (l *looks) p(p, ratio float64) float64 {
	n := float64(len(l.a) * len(l.b))
	bound := math.Min(1, n*p)
	if n == 1 || p < 1e-14 { // there no digits are left for what neighbours have in common
		return bound
	}
	return math.Max(p, math.Min(bound, l.beyond(rounded(ratio), distuv.UnitNormal.Quantile(1-p/2))))
}

// beyond bounds the probability that any look has a difference of more than c
// standard errors.
func (l *looks) beyond(k int, c float64) float64 {
	tree, ok := l.trees[k]
	if !ok {
		tree = l.tree(math.Exp2(float64(k) / 2))
		l.trees[k] = tree
	}
	p := 2 * distuv.UnitNormal.Survival(c)
	for _, r := range tree {
		p += alone(r, c)
	}
	return math.Min(1, p)
}

// rounded makes a step of a ratio of variances: half a power of two, which moves
// the nominal level by less than a hundredth of itself.
func rounded(ratio float64) int {
	switch {
	case !(ratio > 0):
		return -20
	case math.IsInf(ratio, 1):
		return 20
	}
	return int(math.Max(-20, math.Min(20, math.Round(2*math.Log2(ratio)))))
}

// tree returns the correlations along the spanning tree of highest correlations
// between the differences at all pairs of looks (R. C. Prim, 1957).
func (l *looks) tree(ratio float64) []float64 {
	type at struct{ a, b float64 }
	var nodes []at
	for _, i := range l.a {
		for _, j := range l.b {
			nodes = append(nodes, at{float64(i), float64(j)})
		}
	}
	corr := func(x, y at) float64 {
		v := func(p at) float64 { return 1/p.a + ratio/p.b }
		return (1/math.Max(x.a, y.a) + ratio/math.Max(x.b, y.b)) / math.Sqrt(v(x)*v(y))
	}
	best := make([]float64, len(nodes)) // to the tree so far; NaN in it
	best[0] = math.NaN()
	for i := 1; i < len(nodes); i++ {
		best[i] = corr(nodes[0], nodes[i])
	}
	var out []float64
	for range len(nodes) - 1 {
		next := -1
		for i, r := range best {
			if !math.IsNaN(r) && (next < 0 || r > best[next]) {
				next = i
			}
		}
		out = append(out, math.Min(1, best[next]))
		best[next] = math.NaN()
		for i, r := range best {
			if !math.IsNaN(r) {
				best[i] = math.Max(r, corr(nodes[next], nodes[i]))
			}
		}
	}
	return out
}

// alone is the probability that of two standard normal values with correlation r
// one is farther from zero than c, and the other is not.
func alone(r, c float64) float64 {
	s := math.Sqrt(1 - r*r)
	if s == 0 {
		return 0
	}
	// Both sides are alike. What lies farther inside than eight standard
	// deviations of the step adds nothing.
	from := math.Max(-c, (c-8*s)/r)
	const steps = 48
	h := (c - from) / steps
	sum := 0.0
	for i := range steps + 1 {
		w := 2.0
		switch {
		case i == 0, i == steps:
			w = 1
		case i%2 == 1:
			w = 4
		}
		x := from + h*float64(i)
		sum += w * math.Exp(-x*x/2) * math.Erfc((c-r*x)/(s*math.Sqrt2)) / 2
	}
	return 2 * sum * h / 3 / math.Sqrt(2*math.Pi)
}
