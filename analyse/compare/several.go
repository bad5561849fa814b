package compare

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/analyse/stat"
)

// apart is how long after one another two results begin that tell anything of days.
const apart = 12 * time.Hour

// firstTrial is when a result's first trial began; zero if no trial knows. An imported
// result has a session, of the import.
func (s *Folder) firstTrial() time.Time {
	var first time.Time
	for i := range s.Trials {
		if t := s.Trials[i].Start; !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// daysOf counts the groups of results that began apart; 0 if that of one is not known.
func daysOf(of []About) int {
	began := make([]time.Time, len(of))
	for i := range of {
		if began[i] = of[i].Began; began[i].IsZero() {
			return 0
		}
	}
	slices.SortFunc(began, time.Time.Compare)
	n, last := 1, began[0]
	for _, t := range began {
		if t.Sub(last) >= apart {
			n, last = n+1, t
		}
	}
	return n
}

// sameDay warns of results of one side that were measured on one day.
func sameDay(x *About, side string, say func(string, ...any)) {
	switch {
	case len(x.Results) == 0 || x.Days == len(x.Results):
	case x.Days == 0:
		say("it is not known when each of the %d results of %s began: if they are of one day, they tell nothing of how days differ, and the interval may be too narrow", len(x.Results), side)
	case x.Days > 1:
		say("the %d results of %s are of %d days only: results that begin less than 12 hours apart count as one day, so the interval may be too narrow; measure each on a day of its own", len(x.Results), side, x.Days)
	default:
		by := func(a, b About) int { return a.Began.Compare(b.Began) }
		span := slices.MaxFunc(x.Results, by).Began.Sub(slices.MinFunc(x.Results, by).Began)
		say("the %d results of %s began within %.2g hours of each other, so they tell nothing of how days differ: if days move the figures, the interval is too narrow, "+
			"and nobody can tell an upgrade from a different day; measure each on a day of its own, 12 hours apart or more", len(x.Results), side, math.Ceil(span.Hours()*100)/100)
	}
}

// repeated is one row where a side has several results. Each result is one value: the
// row's mean of logarithms in it. How these differ within a side includes every error:
// that of the blocks, and that of the day, the boot or the host. The mean of each side
// has equal weights, and the variance is pooled over the sides:
//
//	s2 = sum of (value - mean of its side)^2 / (results - 2)
//
// So with one prior or none the interval is exactly Student's, whatever the days do, as
// long as the results of a row are about equally precise (the special case of
// J. Hartung and G. Knapp, Stat. Med. 20 (2001) 3875, in which all weights are equal).
type repeated struct {
	change   *Change
	d, by    float64   // difference of the sides' means; its variance by that of one result
	s2, df   float64   // variance of a result within its side
	within   float64   // the part of it that the blocks alone cause: the mean of the squared standard errors
	residual []float64 // by result, A's first; NaN for one without a ratio
}

// repeat summarises a row. Its change has no interval yet.
func repeat(parts [2][]part) *repeated {
	x := &repeated{change: &Change{}, df: -2}
	var k, means [2]float64
	for i, side := range parts {
		good := slices.DeleteFunc(slices.Clone(side), func(p part) bool { return !p.good() })
		if len(good) == 0 {
			x.change.Undefined = string(rune('A'+i)) + ": " + side[0].why()
			return x
		}
		k[i] = float64(len(good))
		n := 0
		for _, p := range good {
			n += p.n
			means[i] += p.mean / k[i]
			x.within += p.se * p.se
		}
		if i == 0 || n < x.change.N {
			x.change.N = n
		}
		for _, p := range side {
			r := math.NaN()
			if p.good() {
				r = p.mean - means[i]
				x.s2 += r * r
			}
			x.residual = append(x.residual, r)
		}
		x.by += 1 / k[i]
		x.df += k[i]
	}
	x.d, x.within = means[1]-means[0], x.within/(k[0]+k[1])
	x.change.Ratio = stat.Exp(x.d)
	if x.df == 0 {
		x.change.Why = fmt.Sprintf("need two results with %d blocks on at least one side, have one on each", stat.MinN)
		return x
	}
	x.s2 /= x.df
	return x
}

func (p *part) good() bool { return p.undefined == "" && p.n >= stat.MinN }

func (p *part) why() string {
	if p.undefined != "" {
		return p.undefined
	}
	return fmt.Sprintf("need n >= %d, have %d", stat.MinN, p.n)
}

// settle gives the rows of a pool their intervals. A few results say little about how
// days differ, so the rows learn from each other, as the comparisons of one study do.
// The expected variance of a result is what its blocks cause plus what days add to all
// rows alike, tau2 (R. C. Paule and J. Mandel, J. Res. NBS 87 (1982) 377). stat.Moderate
// estimates how closely rows follow that.
//
// Where days move all rows together, more rows do not mean more days. So there are
// never more degrees of freedom than those of the number of independent rows that
// the pool is worth.
func settle(pool []*repeated, confidence float64) {
	pool = slices.DeleteFunc(pool, func(x *repeated) bool { return x.change.Undefined != "" || x.df <= 0 })
	tau2 := pauleMandel(pool)
	var scaled []stat.Variance
	for _, x := range pool {
		if v := x.within + tau2; v > 0 {
			scaled = append(scaled, stat.Variance{S2: x.s2 / v, DF: x.df})
		}
	}
	prior := stat.Predict(scaled, "")
	prior.Cap = math.Min(prior.Cap, independent(pool))
	for _, x := range pool {
		x.settle(confidence, prior, tau2)
	}
}

func (x *repeated) settle(confidence float64, prior stat.Prior, tau2 float64) {
	if x.change.Undefined != "" || x.df <= 0 {
		return
	}
	v, df := x.s2, x.df
	if scale := x.within + tau2; scale > 0 && prior.DF > 0 {
		v, df = prior.Whole(x.s2/scale, x.df)
		v *= scale
	}
	x.change.SE, x.change.DF = math.Sqrt(v*x.by), math.Min(1e9, df)
	x.change.Between = math.Sqrt(math.Max(0, v-x.within))
	x.change.between(x.d, confidence)
}

// pauleMandel returns the variance that days add to all rows alike. With it, the
// variances come out as large as expected.
func pauleMandel(pool []*repeated) float64 {
	excess := func(tau2 float64) float64 {
		sum := 0.0
		for _, x := range pool {
			if v := x.within + tau2; v > 0 {
				sum += x.df * (x.s2/v - 1)
			}
		}
		return sum
	}
	hi := 0.0
	for _, x := range pool {
		hi = math.Max(hi, x.s2)
	}
	lo := 0.0
	if hi == 0 || excess(lo) <= 0 {
		return 0
	}
	for range 60 {
		if mid := (lo + hi) / 2; excess(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// independent returns the degrees of freedom of the number of independent rows that a
// pool is worth: df M / (1 + (M-1) rho2), with rho2 the mean squared correlation
// of two rows' residuals. For independent rows, the squared cosine of two is 1/df on
// average; the excess over that is rho2.
func independent(pool []*repeated) float64 {
	sum, pairs, df, m := 0.0, 0.0, 0.0, 0.0
	for i, x := range pool {
		if x.s2 == 0 {
			continue
		}
		m++
		df = math.Max(df, x.df)
		for _, y := range pool[:i] {
			if c, ok := cosine(x.residual, y.residual); ok {
				sum, pairs = sum+c*c, pairs+1
			}
		}
	}
	if pairs == 0 || df < 2 { // with two values a side, all rows look alike
		return df
	}
	chance := 1 / df
	rho2 := math.Max(0, (sum/pairs-chance)/(1-chance))
	return df * m / (1 + (m-1)*math.Sqrt(rho2))
}

func cosine(x, y []float64) (float64, bool) {
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := range x {
		xy, xx, yy = xy+x[i]*y[i], xx+x[i]*x[i], yy+y[i]*y[i]
	}
	c := xy / math.Sqrt(xx*yy)
	return c, !math.IsNaN(c)
}
