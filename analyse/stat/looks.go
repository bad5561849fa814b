package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// NominalAlpha returns the error rate that each single look may have so that
// all looks together, at these numbers of blocks, err with probability alpha.
// It is the same at each look (S. J. Pocock, Biometrika 64 (1977) 191), found
// for looks at any spacing by the recursive integration of P. Armitage, C. K.
// McPherson and B. C. Rowe, J. R. Stat. Soc. A 132 (1969) 235.
//
// The integration is of normal sums; Rule uses the level with Student quantiles,
// the significance-level approach of Jennison and Turnbull, "Group Sequential
// Methods" (2000), section 3.8. A simulation in the tests holds the result.
//
// The same level at each look, rather than O'Brien and Fleming's strict early
// ones, because a study of sandboxes is paid for in minutes: most effects are
// large, and the early looks are where time is saved.
func NominalAlpha(looks []int, alpha float64) float64 {
	n := slices.Clone(looks)
	slices.Sort(n)
	n = slices.Compact(n)
	n = slices.DeleteFunc(n, func(k int) bool { return k < 1 })
	if len(n) < 2 {
		return alpha
	}
	lo := distuv.UnitNormal.Quantile(1 - alpha/2)                 // one look
	hi := distuv.UnitNormal.Quantile(1 - alpha/2/float64(len(n))) // independent looks (Bonferroni)
	// False position on ln crossing, which is nearly straight in c.
	f := func(c float64) float64 { return math.Log(crossing(n, c) / alpha) }
	flo, fhi := f(lo), f(hi)
	c := hi
	for range 20 {
		c = hi - fhi*(hi-lo)/(fhi-flo)
		fc := f(c)
		if math.Abs(fc) < 1e-7 {
			break
		}
		if fc > 0 {
			lo, flo = c, fc
		} else {
			hi, fhi = c, fc
		}
	}
	return 2 * distuv.UnitNormal.Survival(c)
}

// crossing is the probability that a sum of n[k] standard normal terms leaves
// ±c·sqrt(n[k]) at some k.
func crossing(n []int, c float64) float64 {
	var x, w, f []float64 // nodes, weights, and density of the sums still inside
	for k := range n {
		b := c * math.Sqrt(float64(n[k]))
		step := float64(n[k])
		if k > 0 {
			step = float64(n[k] - n[k-1])
		}
		// The density is smooth on the scale of the next step: four nodes
		// for each standard deviation of it keep five digits.
		next := step
		if k+1 < len(n) {
			next = float64(n[k+1] - n[k])
		}
		m := 2 * int(math.Ceil(4*b/math.Sqrt(math.Min(step, next))))
		nx, nw := simpson(max(32, min(m, 600)), b)
		nf := make([]float64, len(nx))
		sd := math.Sqrt(step)
		for i, s := range nx {
			if k == 0 {
				nf[i] = density(s/sd) / sd
				continue
			}
			for j := range x {
				if math.Abs(s-x[j]) > 7*sd {
					continue
				}
				nf[i] += w[j] * f[j] * density((s-x[j])/sd)
			}
			nf[i] /= sd
		}
		x, w, f = nx, nw, nf
	}
	inside := 0.0
	for i := range f {
		inside += w[i] * f[i]
	}
	return 1 - inside
}

// simpson returns the nodes and weights of Simpson's rule over [-b, b] in m
// (even) steps. Not gonum's Legendre, which needs half the nodes: the weights of
// its 26-point rule do not sum to the interval (gonum 0.17.0).
func simpson(m int, b float64) (x, w []float64) {
	x, w = make([]float64, m+1), make([]float64, m+1)
	h := 2 * b / float64(m)
	for i := range x {
		x[i] = -b + h*float64(i)
		switch {
		case i == 0 || i == m:
			w[i] = h / 3
		case i%2 == 1:
			w[i] = 4 * h / 3
		default:
			w[i] = 2 * h / 3
		}
	}
	return x, w
}

func density(z float64) float64 { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }
