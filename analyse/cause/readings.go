package cause

import (
	"math"
	"slices"

	"tare/record"
)

// readings are all figures of all rules that were read: what supports the cause
// first, then what excludes others.
func (b *builder) readings(f *facts, v *verdict, each []sheet) []Reading {
	var mine, rest []Reading
	outside := gauge{name: "busiest thread of the ends that are not sandboxed, share of a core", unit: record.Cores, limit: 0.7, get: plain(fOther)}
	for i := range b.rules {
		r := &b.rules[i]
		says := Excludes
		switch w := v.weights[r.kind]; {
		case math.IsNaN(w):
			says = Silent
		case v.is(r.kind):
			says = Supports
		case w >= near*r.limit:
			says = Silent
		}
		for _, g := range r.shows {
			x, ok := b.reading(f, &g, each)
			if !ok {
				continue
			}
			x.About, x.Says = r.kind, says
			if says == Supports {
				mine = append(mine, x)
			} else {
				rest = append(rest, x)
			}
		}
	}
	if x, ok := b.reading(f, &outside, each); ok {
		// Not busy says nothing: a peer elsewhere, or a load that is given, is busy nowhere here.
		x.About, x.Says = None, Silent
		if v.cause == None && x.Value >= x.Limit {
			x.Says = Supports
			mine = append(mine, x)
		} else {
			rest = append(rest, x)
		}
	}
	return append(mine, rest...)
}

// is says whether a cause is the verdict, or one of those that it cannot tell apart.
func (v *verdict) is(k Name) bool { return v.cause == k || slices.Contains(v.among, k) }

// reading is one figure, and its lowest and highest trial.
func (b *builder) reading(f *facts, g *gauge, each []sheet) (Reading, bool) {
	v := g.get(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Reading{}, false
	}
	out := Reading{Name: g.name, Value: v, Lo: v, Hi: v, Unit: g.unit, Limit: g.limit, Series: g.series}
	if g.role && f.helper != "" {
		out.Roles = []string{f.helper}
	}
	one := *f
	for i := range each {
		one.own = each[i]
		if x := g.get(&one); !math.IsNaN(x) && !math.IsInf(x, 0) {
			out.Lo, out.Hi = min(out.Lo, x), max(out.Hi, x)
		}
	}
	return out, true
}
