package cause

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// fits adds the lines through the cell's families.
func (b *builder) fits(out *Finding, i, j int, fam family) {
	if out.Baseline {
		return
	}
	out.Added = b.fit(i, j, fam.size, sizeFactors(), "s", func(own, base float64) float64 { return own - base })
	out.Factor = b.fit(i, j, fam.load, loadFactors(), "ratio", func(own, base float64) float64 { return own / base })
}

// fit is a line through what of makes of the times of an operation in the cells of a
// family: all blocks that have both, so that its interval holds what varies from
// block to block as well as from cell to cell.
func (b *builder) fit(i, j int, strata []int, factors []string, unit string, of func(own, base float64) float64) *Fit {
	if len(strata) < 2 {
		return nil
	}
	out := Fit{Unit: unit}
	var xs, ys []float64
	type at struct{ x, y float64 }
	var mids []at
	for _, k := range strata {
		s := &b.strata[k]
		own := slices.IndexFunc(s.Cells, func(c Cell) bool { return c.Treatment == b.strata[i].Cells[j].Treatment })
		base := slices.IndexFunc(s.Cells, func(c Cell) bool { return c.Baseline })
		if own < 0 || base < 0 {
			continue
		}
		var x float64
		out.Over, x = levelOf(s.Shared, factors)
		var y []float64
		a, z := &b.read[k][own], &b.read[k][base]
		for n, block := range a.blocks {
			m := slices.Index(z.blocks, block)
			if m < 0 || len(a.ends) == 0 || len(z.ends) == 0 {
				continue
			}
			v := of(timeOf(&a.ends[0].each[n], s.Load), timeOf(&z.ends[0].each[m], s.Load))
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				xs, ys, y = append(xs, x), append(ys, v), append(y, v)
			}
		}
		if len(y) > 0 {
			mids = append(mids, at{x, mean(y)})
		}
	}
	if len(mids) < 2 {
		return nil
	}
	slices.SortFunc(mids, func(a, b at) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	for _, m := range mids {
		out.X, out.Y = append(out.X, m.x), append(out.Y, m.y)
	}
	if !out.line(xs, ys, b.confidence) {
		return nil
	}
	return &out
}

// line is that of least squares, with Student's t intervals of its two figures; false
// where the points do not make one.
func (f *Fit) line(x, y []float64, confidence float64) bool {
	n := float64(len(x))
	if n < 3 {
		return false
	}
	mx, my := mean(x), mean(y)
	var sxx, sxy, rss float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	if !(sxx > 0) {
		return false
	}
	f.Slope = sxy / sxx
	f.Constant = my - f.Slope*mx
	for i := range x {
		r := y[i] - f.Constant - f.Slope*x[i]
		rss += r * r
	}
	v := rss / (n - 2)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 2}.Quantile(0.5 + confidence/2)
	half := t * math.Sqrt(v/sxx)
	f.SlopeLo, f.SlopeHi = f.Slope-half, f.Slope+half
	half = t * math.Sqrt(v*(1/n+mx*mx/sxx))
	f.Lo, f.Hi = f.Constant-half, f.Constant+half
	for _, z := range []float64{f.Constant, f.Lo, f.Hi, f.Slope, f.SlopeLo, f.SlopeHi} {
		if math.IsNaN(z) || math.IsInf(z, 0) {
			return false
		}
	}
	return true
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
