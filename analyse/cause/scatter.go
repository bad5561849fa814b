package cause

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"tare/record"
)

// Constants of doubt. They were chosen with planted causes (scripts/truth/causes) of other seeds
// than those of docs/cause.md.
const (
	// sided is the quantile of the difference from the baseline that is taken for possible.
	sided = 0.9
	// hidden is the cost that may hide in the scatter of the trials beside a full resource, and
	// hiddenNone beside nothing, without changing the verdict.
	hidden, hiddenNone = 1.13, 1.1
	// asFull is the share of the cell's use from which the baseline counts as equally full.
	asFull = 0.8
	// waitsToo is the same of the host, which others fill: how long threads wait there scatters more.
	waitsToo = 0.5
)

// difference is a cell's difference from its baseline, from pairs of trials of a block: the logarithm of
// how much worse it is, and how far off that may be because trials scatter.
type difference struct{ worse, open float64 }

// difference is NaN where there are fewer than two pairs.
func (b *builder) difference(i, j, k int) difference {
	own, base := &b.read[i][j], &b.read[i][k]
	var l []float64
	for n, block := range own.blocks {
		for m := range base.blocks {
			if base.blocks[m] == block && own.values[n] > 0 && base.values[m] > 0 {
				l = append(l, math.Log(own.values[n]/base.values[m]))
			}
		}
	}
	n := float64(len(l))
	if n < 2 {
		return difference{math.NaN(), math.NaN()}
	}
	mean, v := 0.0, 0.0
	for _, x := range l {
		mean += x / n
	}
	for _, x := range l {
		v += (x - mean) * (x - mean) / (n - 1)
	}
	if b.strata[i].Response.Better == record.Higher {
		mean = -mean
	}
	return difference{mean, distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(sided) * math.Sqrt(v/n)}
}

// smaller reports whether the guest has fewer processors than the baseline's, by enough to explain half of the
// cost, by logarithms.
func (f *facts) smaller() bool {
	return math.Log(f.base[fGuestCPUs]/f.own[fGuestCPUs]) >= f.from.worse/2 // false of NaN
}

// doubt leaves a verdict open where the scatter of the trials may hide another cause: a cost that
// nobody sees, beside a resource that is as full natively; an added time that may be chance.
func (v verdict) doubt(all []rule, f *facts) verdict {
	d := f.from
	if f.baseline || !(d.open > 0) {
		return v
	}
	scatter := fmt.Sprintf("the trials scatter: a cost of %.0f %% may hide in it", 100*math.Expm1(max(0, d.worse)+d.open))
	because := scatter
	if f.costs && d.worse > d.open {
		because = "this resource is as full in the baseline, so it does not explain the cost alone"
	}
	switch {
	case v.cause == None || v.cause == Depth: // nothing that costs
		if f.undecided && d.worse+d.open > math.Log(hiddenNone) {
			return v.untold(scatter, v.cause, Other)
		}
	case v.cause == Unknown || v.cause == Untold || v.cause == Other:
	case v.cycle && f.costs:
		if d.worse < d.open {
			return v.or(Other, because)
		}
		if v.cause == Path && v.split < d.open {
			return v.or(Saturation, because)
		}
		if v.cause == Saturation && v.split < d.open {
			return v.or(Path, because)
		}
	case v.cause == Host && f.baseFacts().waits() >= waitsToo*f.waits():
		return v.or(Other, "the host is nearly as full beside the baseline, and the trials scatter")
	case v.cause == Fsync, v.cause == PageCache, v.cause == IOLimit: // what was added is known, or nothing is natively
	case v.cause == Guest && f.smaller(): // the baseline's guest has more processors to fill
	case v.cause == Quota: // the study sets it for both sides, so an equally full baseline says nothing about chance
	case d.worse+d.open > math.Log(hidden):
		for i := range all {
			if all[i].kind == v.cause && all[i].weight(f.baseFacts()) >= asFull*v.weights[v.cause] {
				return v.or(Other, because)
			}
		}
	}
	return v
}
