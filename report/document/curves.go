package document

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"tare/record"
)

// curveKey is what may be merged into one curve: histograms of other buckets
// would be moved between them, by an order of trials that must not matter.
type curveKey struct {
	cell   int
	name   string
	labels record.Labels
	unit   record.Unit
	scale  float64
	geo    geometry
}

// addHistogram merges one of a good trial. One that cannot be read is left out:
// the trial's own percentiles are on record beside it.
func (b *Builder) addHistogram(cell int, h *record.Histogram) {
	if !(h.Scale > 0) || math.IsInf(h.Scale, 0) {
		return
	}
	geo, counts, err := b.decoder.decode(h.Encoded)
	if err != nil || len(counts) == 0 {
		return
	}
	k := curveKey{cell: cell, name: h.Name, labels: h.Labels, unit: h.Unit, scale: h.Scale, geo: geo}
	b.curves[k] = b.decoder.merge(b.curves[k], counts)
}

// distributions reads the curves off, in the order of cells and names.
func (b *Builder) distributions() []Curve {
	keys := slices.SortedFunc(maps.Keys(b.curves), func(x, y curveKey) int {
		return cmp.Or(cmp.Compare(x.cell, y.cell), cmp.Compare(x.name, y.name), cmp.Compare(x.labels, y.labels), cmp.Compare(x.unit, y.unit),
			cmp.Compare(x.scale, y.scale), cmp.Compare(x.geo.unit, y.geo.unit), cmp.Compare(x.geo.half, y.geo.half))
	})
	var out []Curve
	all := quantiles()
	for _, k := range keys {
		counts := b.curves[k]
		c := Curve{Cell: k.cell, Name: k.name, Labels: string(k.labels), Unit: k.unit}
		for _, n := range counts {
			c.Count += int64(n.n) // at most 2^24 counts of 2^32
		}
		at, sum := 0, int64(counts[0].n)
		for _, q := range all {
			// Beyond the last event but one there is only the greatest.
			if q < 1 && (1-q)*float64(c.Count) < 1 {
				continue
			}
			for rank := rank(q, c.Count); sum < rank; {
				at++
				sum += int64(counts[at].n)
			}
			c.Quantiles = append(c.Quantiles, q)
			c.Values = append(c.Values, round(float64(k.geo.highest(counts[at].index))*k.scale, 4))
		}
		out = append(out, c)
	}
	return out
}

// rank is the place of a quantile among n events, from 1, as HdrHistogram
// rounds it.
func rank(q float64, n int64) int64 {
	r := q*float64(n) + 0.5
	switch {
	case r < 1:
		return 1
	case r >= float64(n):
		return n
	}
	return int64(r)
}

// quantiles are the places at which curves are read: every 5 % up to 60 %, then
// ten to each factor of ten that is left, down to one in 100,000. Those that
// people ask for by name (0.9, 0.99, 0.999) are among them.
func quantiles() []float64 {
	var out []float64
	for i := range 13 {
		out = append(out, float64(i)/20)
	}
	for i := 5; i <= 50; i++ {
		out = append(out, math.Round(1e7*(1-math.Pow(10, -float64(i)/10)))/1e7)
	}
	return append(out, 1)
}
