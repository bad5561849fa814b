package merit

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tare/analyse/stat"
)

// Resamples is the number of resamples for each estimate. With 999, the ends of a 95 % interval
// are the 25th values from either side.
const Resamples = 999

// Level has the values of one level of a factor.
type Level struct {
	Stratum string          // levels with the same stratum were measured in the same blocks
	Values  map[int]float64 // by block; NaN where a block has none
}

// Estimate is a figure of merit with its interval.
type Estimate struct {
	Value  float64 // NaN if it cannot be computed
	Lo, Hi float64 // NaN without an interval
	Blocks int     // the least that a level has
	Why    string  // the value or the interval is missing
	draws  []float64
	figure Figure
}

// HasInterval reports whether the estimate has an interval.
func (e Estimate) HasInterval() bool { return !math.IsNaN(e.Lo) }

func none(why string) Estimate {
	return Estimate{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN(), Why: why}
}

// Compute estimates several figures of the same levels. The interval comes from resamples of
// whole blocks. Otherwise an effect that all values of a block share (the state of the machine)
// would count once for each value. Blocks of different strata were
// measured at different times, and are resampled independently.
func Compute(levels []Level, confidence float64, figures ...Figure) []Estimate {
	out := make([]Estimate, len(figures))
	logs, blocks, why := logarithms(levels)
	for i, f := range figures {
		if out[i] = none(why); why == "" {
			out[i].Value, out[i].Blocks, out[i].figure = tidy(f.Of(exponentials(logs.mean))), blocks, f
		}
	}
	if why != "" {
		return out
	}
	if blocks < stat.MinN {
		for i := range out {
			out[i].Why = fmt.Sprintf("an interval needs %d blocks, and a level has %d", stat.MinN, blocks)
		}
		return out
	}
	draws := logs.resample(stretch(blocks, confidence))
	for i, f := range figures {
		for _, values := range draws {
			out[i].draws = append(out[i].draws, f.Of(values))
		}
		out[i].interval(confidence)
		if k := logs.only(); k >= 0 && out[i].HasInterval() {
			out[i].student(levels, k, confidence)
		}
	}
	return out
}

// only returns the one level that has values, or -1 if several have.
func (s sample) only() int {
	k := -1
	for i, m := range s.mean {
		switch {
		case math.IsNaN(m):
		case k >= 0:
			return -1
		default:
			k = i
		}
	}
	return k
}

// student makes the interval of a figure of one level Student's, on the logarithms. Of three
// blocks there are only ten different resamples, so that no quantile of theirs is exact.
func (e *Estimate) student(levels []Level, k int, confidence float64) {
	var pairs []stat.Pair
	for _, b := range slices.Sorted(maps.Keys(levels[k].Values)) {
		if v := levels[k].Values[b]; !math.IsNaN(v) {
			pairs = append(pairs, stat.Pair{Base: 1, Other: v})
		}
	}
	own := stat.Compare(pairs, confidence)
	ends := make([]float64, 0, 2)
	for _, v := range []float64{own.Lo, own.Hi} {
		values := make([]float64, len(levels))
		for i := range values {
			values[i] = math.NaN()
		}
		values[k] = v
		ends = append(ends, e.figure.Of(values))
	}
	e.Lo, e.Hi = e.figure.atLeast(slices.Min(ends)), e.figure.atLeast(slices.Max(ends))
}

// atLeast returns v, but no less than a figure that is not signed can be.
func (f *Figure) atLeast(v float64) float64 {
	if f.Signed {
		return v
	}
	return max(v, f.Least)
}

// interval finds the two ends. If the figure is a level, they enclose the middle part of the
// draws. For other figures the draws are mirrored at the value, on a logarithmic scale unless the figure is
// signed (the basic interval: Davison and Hinkley, section 5.2). The reason: the best of several noisy values comes
// out too high, and the best of the draws comes out too high again.
func (e *Estimate) interval(confidence float64) {
	if math.IsNaN(e.Value) || slices.ContainsFunc(e.draws, math.IsNaN) {
		return
	}
	sorted := slices.Sorted(slices.Values(e.draws))
	k := int(math.Round(float64(len(sorted)+1) * (1 - confidence) / 2))
	k = max(1, min(k, len(sorted)/2))
	lo, hi := sorted[k-1], sorted[len(sorted)-k]
	switch {
	case e.figure.Signed:
		lo, hi = 2*e.Value-hi, 2*e.Value-lo
	case !e.figure.Level:
		lo, hi = e.Value*(e.Value/hi), e.Value*(e.Value/lo)
	}
	e.Lo, e.Hi = e.figure.atLeast(min(e.Value, lo)), max(e.Value, hi)
}

// Mean is the arithmetic mean of estimates of one figure in different strata. It has an
// interval if all of them have one. Levels that are words have no mean.
func Mean(of []Estimate, confidence float64) Estimate {
	out := none("")
	sum, draws := 0.0, make([]float64, Resamples)
	for i, e := range of {
		if i == 0 {
			out.Blocks, out.figure = e.Blocks, e.figure
		}
		out.Blocks = min(out.Blocks, e.Blocks)
		if math.IsNaN(e.Value) || out.Why == "" {
			out.Why = e.Why
		}
		sum += e.Value
		if len(e.draws) != len(draws) {
			draws = nil
		}
		for k := range draws {
			draws[k] += e.draws[k] / float64(len(of))
		}
	}
	if len(of) == 0 {
		return out
	}
	if slices.ContainsFunc(of, func(e Estimate) bool { return e.figure.Words }) {
		out.Why = "levels that are words have no mean"
		return out
	}
	if out.Value = tidy(sum / float64(len(of))); draws != nil && !math.IsNaN(sum) {
		out.draws = draws
		out.interval(confidence)
	}
	return out
}

// sample has the logarithms of all levels' values, by stratum.
type sample struct {
	mean   []float64 // of each level; NaN for one without values
	strata []*stratum
}

// stratum has the levels that share blocks.
type stratum struct {
	name   string
	blocks []int
	levels []int       // indices into sample.mean
	logs   [][]float64 // beside levels, by block; NaN where a block has no value
}

// logarithms sorts the values by stratum. blocks is the smallest number of blocks of a level with
// values. why gives the reason if there is no figure.
func logarithms(levels []Level) (out sample, blocks int, why string) {
	at := make(map[string]*stratum)
	why = "there are no values"
	for i, l := range levels {
		s := at[l.Stratum]
		if s == nil {
			s = &stratum{name: l.Stratum}
			at[l.Stratum], out.strata = s, append(out.strata, s)
		}
		s.levels = append(s.levels, i)
		for _, b := range slices.Sorted(maps.Keys(l.Values)) {
			if k, found := slices.BinarySearch(s.blocks, b); !found {
				s.blocks = slices.Insert(s.blocks, k, b)
			}
		}
	}
	out.mean = make([]float64, len(levels))
	for _, s := range out.strata {
		for _, i := range s.levels {
			row, n, sum := make([]float64, len(s.blocks)), 0, 0.0
			for k, b := range s.blocks {
				v, ok := levels[i].Values[b]
				if !ok || math.IsNaN(v) {
					row[k] = math.NaN()
					continue
				}
				if !(v > 0) {
					return out, 0, "a value is not positive"
				}
				row[k] = math.Log(v)
				n, sum = n+1, sum+row[k]
			}
			s.logs = append(s.logs, row)
			out.mean[i] = sum / float64(n) // NaN without values
			if n > 0 && (why != "" || n < blocks) {
				blocks, why = n, ""
			}
		}
	}
	return out, blocks, why
}

// stretch is the factor by which a resample's means are moved away from the measured ones. Means
// of resamples scatter less than means of new blocks, by sqrt((n-1)/n). With few blocks, the
// normal quantile is also too small. The stretch makes the interval of a single level close to
// Student's, and the closer the more blocks there are. (T. C. Hesterberg, The American Statistician 69 (2015) 371, widens the quantiles
// instead; the means of few blocks cannot be resampled far enough for that.)
func stretch(n int, confidence float64) float64 {
	p := 0.5 + confidence/2
	return math.Sqrt(float64(n)/float64(n-1)) * stat.Student(float64(n-1)).Quantile(p) / distuv.UnitNormal.Quantile(p)
}

// resample draws blocks with replacement, and returns the levels' values for each draw. A
// stratum's draws are always the same ones, so that reports can be compared.
func (s sample) resample(stretch float64) [][]float64 {
	out := make([][]float64, Resamples)
	for k := range out {
		out[k] = slices.Clone(s.mean)
	}
	for _, st := range s.strata {
		h := fnv.New64a()
		_, _ = h.Write([]byte(st.name))
		r := rand.New(rand.NewPCG(h.Sum64(), 17)) //nolint:gosec // not a secret
		times := make([]float64, len(st.blocks))
		for k := range out {
			st.draw(r, times)
			for j, i := range st.levels {
				if m := s.mean[i]; !math.IsNaN(m) {
					out[k][i] = m + stretch*(weighted(st.logs[j], times)-m)
				}
			}
		}
	}
	for k := range out {
		out[k] = exponentials(out[k])
	}
	return out
}

// draw returns how often each block is in a resample. If a level has no value in the resample, it
// draws again.
func (s *stratum) draw(r *rand.Rand, times []float64) {
	for range 1000 {
		clear(times)
		for range times {
			times[r.IntN(len(times))]++
		}
		if !slices.ContainsFunc(s.logs, func(row []float64) bool { return lost(row, times) }) {
			return
		}
	}
	for i := range times { // a level has a value in one block of very many
		times[i] = 1
	}
}

// lost reports whether a resample leaves out all values of a level.
func lost(row, times []float64) bool {
	some := false
	for i, v := range row {
		if !math.IsNaN(v) {
			if some = true; times[i] > 0 {
				return false
			}
		}
	}
	return some
}

func weighted(row, times []float64) float64 {
	sum, n := 0.0, 0.0
	for i, v := range row {
		if !math.IsNaN(v) {
			sum, n = sum+times[i]*v, n+times[i]
		}
	}
	return sum / n
}

func exponentials(logs []float64) []float64 {
	out := make([]float64, len(logs))
	for i, v := range logs {
		if out[i] = math.NaN(); !math.IsNaN(v) {
			out[i] = tidy(stat.Exp(v))
		}
	}
	return out
}

// tidy rounds to twelve significant digits, so that what logarithms and quotients lose does not decide whether a value is exactly
// a share of the best, or exactly half a per cent.
func tidy(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	if e := 11 - int(math.Floor(math.Log10(math.Abs(x)))); e >= 0 {
		p := math.Pow10(min(e, 300))
		return math.Round(x*p) / p
	} else {
		p := math.Pow10(-e)
		return math.Round(x/p) * p
	}
}
