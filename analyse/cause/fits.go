package cause

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// fits adds the lines through the cell's families.
func (b *builder) fits(out *Finding, i, j int, fam family) {
	if out.Baseline {
		return
	}
	out.Added = b.cached(i, j, fam.size, sizeFactors(), "s", func(own, base float64) float64 { return own - base })
	out.Factor = b.cached(i, j, fam.load, loadFactors(), "ratio", func(own, base float64) float64 { return own / base })
}

// fitKey is a family and a treatment: all cells of these have one line.
type fitKey struct {
	first           int
	unit, treatment string
}

func (b *builder) cached(i, j int, strata []int, factors []string, unit string, of func(own, base float64) float64) *Fit {
	if len(strata) < 2 {
		return nil
	}
	key := fitKey{strata[0], unit, b.strata[i].Cells[j].Treatment}
	f, ok := b.lines[key]
	if !ok {
		f = b.fit(i, j, strata, factors, unit, of)
		b.lines[key] = f
	}
	return f
}

// fit is a line through what of makes of the times of an operation in the cells of a
// family: all blocks that have both, so that its interval holds what varies from
// block to block as well as from cell to cell.
func (b *builder) fit(i, j int, strata []int, factors []string, unit string, of func(own, base float64) float64) *Fit {
	out := Fit{Unit: unit}
	var all, mids []dot
	for _, k := range strata {
		s := &b.strata[k]
		own := slices.IndexFunc(s.Cells, func(c Cell) bool { return c.Treatment == b.strata[i].Cells[j].Treatment })
		base := slices.IndexFunc(s.Cells, func(c Cell) bool { return c.Baseline })
		if own < 0 || base < 0 {
			continue
		}
		var x, sum float64
		out.Over, x = levelOf(s.Shared, factors)
		n := len(all)
		a, z := &b.read[k][own], &b.read[k][base]
		for n, block := range a.blocks {
			m := slices.Index(z.blocks, block)
			if m < 0 || n >= len(a.times) || m >= len(z.times) {
				continue
			}
			if v := of(a.times[n], z.times[m]); !math.IsNaN(v) && !math.IsInf(v, 0) {
				all = append(all, dot{x, v})
				sum += v
			}
		}
		if n = len(all) - n; n > 0 {
			mids = append(mids, dot{x, sum / float64(n)})
		}
	}
	if len(mids) < 2 {
		return nil
	}
	slices.SortFunc(all, byX) // so that strata in another order give the same, to the last bit
	slices.SortFunc(mids, byX)
	for _, m := range mids {
		out.X, out.Y = append(out.X, m.x), append(out.Y, m.y)
	}
	if !out.line(all, b.confidence) {
		return nil
	}
	return &out
}

type dot struct{ x, y float64 }

func byX(a, b dot) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) }

// line is that of least squares, with Student's t intervals of its two figures; false
// where the points do not make one.
func (f *Fit) line(of []dot, confidence float64) bool {
	n := float64(len(of))
	if n < 3 {
		return false
	}
	var mx, my, sxx, sxy, rss float64
	for _, d := range of {
		mx += d.x / n
		my += d.y / n
	}
	for _, d := range of {
		sxx += (d.x - mx) * (d.x - mx)
		sxy += (d.x - mx) * (d.y - my)
	}
	if !(sxx > 0) {
		return false
	}
	f.Slope = sxy / sxx
	f.Constant = my - f.Slope*mx
	for _, d := range of {
		r := d.y - f.Constant - f.Slope*d.x
		rss += r * r
	}
	v := rss / (n - 2)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 2}.Quantile(0.5 + confidence/2)
	half := t * math.Sqrt(v/sxx)
	f.SlopeLo, f.SlopeHi = f.Slope-half, f.Slope+half
	half = t * math.Sqrt(v*(1/n+mx*mx/sxx))
	f.Lo, f.Hi = f.Constant-half, f.Constant+half
	return !slices.ContainsFunc([]float64{f.Constant, f.Lo, f.Hi, f.Slope, f.SlopeLo, f.SlopeHi}, func(z float64) bool {
		return math.IsNaN(z) || math.IsInf(z, 0)
	})
}
