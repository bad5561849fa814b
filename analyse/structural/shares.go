package structural

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// megabyte is what rates of bytes are taken by: a nanosecond a byte is nothing
// that one can think of.
const megabyte = 1e6

// Row is one comparison, as package analyse has it.
type Row struct {
	Workload, Kind string // the workload's label and its kind
	Stratum        string // study.Stratum.Key
	Shared         record.Cell
	Treatment      string // what tells the cell in its stratum; the same in all strata
	Cell           record.Cell
	First          bool // it is of the workload's first response
	Response       record.Response
	Estimate       stat.Estimate
	Missing        string // why there is no ratio; "" when there is one
}

// Shares returns, for every stratum of a study that counts calls and each of its
// treatments, what its calls explain, in the order of rows: those of all strata and
// responses, the baselines' left out. Strata whose calls cannot be counted are among
// them, with the reason. It is nil when nothing was to be counted. The order of trials
// does not matter.
func Shares(st *study.Study, rows []Row, trials []*record.Trial, skips []record.Skip) []Share {
	index := map[string]int{}
	for i := range st.Strata {
		if st.Strata[i].Counting != nil || st.Strata[i].Uncounted != "" {
			index[st.Strata[i].Key] = i
		}
	}
	if len(index) == 0 {
		return nil
	}
	strata := gather(st, trials)
	prices := pricesOf(st, rows)
	var out []Share
	for k := range rows {
		c := &rows[k]
		i, ok := index[c.Stratum]
		if !ok || !c.First {
			continue
		}
		s := Share{CellKey: record.CellKey{Workload: c.Workload, Stratum: c.Stratum, Shared: c.Shared, Treatment: c.Treatment, Cell: c.Cell}, Response: c.Response}
		if s.Missing = st.Strata[i].Uncounted; s.Missing == "" {
			s.Missing = s.fill(c, &strata[i], prices, skips)
		}
		out = append(out, s)
	}
	return out
}

// fill works a share out, and says why it cannot.
func (s *Share) fill(c *Row, from *stratum, prices []price, skips []record.Skip) string {
	per := 1.0
	s.Operation = c.Response.Operation
	if s.Operation == "byte" {
		s.Operation, per = "MB", megabyte
	}
	if from.counted == nil {
		return whyNotCounted(from, skips)
	}
	first, told := c.Response, from.counted.values[c.Response.Name]
	if v := from.counted.values[callsRate]; c.Kind == study.PriceKind && v > 0 {
		// Its time is the median of batches, without what disturbed them; the calls
		// of the window are all that were made.
		first, told = record.Response{Unit: record.PerSecond}, v
	}
	of, ok := operationTime(first, told)
	if !ok {
		return "not counted: the counting trial has no usable value of " + c.Response.Name
	}
	of *= per
	if window := from.counted.values[plan.WindowSample]; s.Operation == "run" {
		// What the window holds beside the runs calls hardly at all, but it takes time:
		// calls are divided among the runs as they are.
		if window > 0 {
			of = window / math.Max(1, from.counted.values[record.Runs])
		}
	} else if f := from.counted.values[plan.ActiveSample]; f > 0 {
		of *= f
	}
	all := s.count(from.counted.calls, of)
	if c.Missing != "" {
		return "there is no ratio to the baseline: " + c.Missing
	}
	native, ok := operationTime(c.Response, c.Estimate.Base)
	if !ok {
		return fmt.Sprintf("the baseline's %s is not positive", c.Response.Name)
	}
	cost, ok := priceFor(prices, study.PriceLevel, c)
	if !ok {
		return "there is no cost of a call in this sandbox: the study needs a workload {kind: syscall, call: getpid} that runs in it"
	}
	s.Native = native * per
	s.Extra = extra(c.Response, c.Estimate).scale(s.Native)
	s.Cost = cost.cost
	s.Parallelism = from.parallelism()
	s.Explained = s.Cost.scale(s.Calls / s.Parallelism)
	s.Rest = s.Extra.Value - s.Explained.Value
	for i := range all {
		p, ok := kindOf(prices, all[i].Name, c)
		if !ok {
			continue
		}
		all[i].Kind, all[i].Cost = p.call, p.cost.Value
		if i < len(s.Top) {
			s.Top[i] = all[i]
		}
		s.Priced += all[i].PerOperation
		s.OfCalls += all[i].PerOperation * (p.cost.Value - s.Cost.Value) / s.Parallelism
	}
	s.Finding = s.find()
	for _, v := range []float64{s.Native, s.Extra.Value, s.Extra.Lo, s.Extra.Hi, s.Calls, s.Explained.Value, s.Explained.Lo, s.Explained.Hi, s.Rest, s.OfCalls} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			*s = Share{CellKey: s.CellKey, Response: s.Response, Operation: s.Operation}
			return "the figures are too large or too small to be worked with"
		}
	}
	return ""
}

// count adds up the calls that an operation makes in so many seconds, and returns them all,
// the most frequent first.
func (s *Share) count(calls map[string]float64, of float64) []Call {
	for name, rate := range calls {
		if n := rate * of; n > 0 {
			s.Top = append(s.Top, Call{Name: name, PerOperation: n})
		}
	}
	slices.SortFunc(s.Top, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.PerOperation, a.PerOperation), cmp.Compare(a.Name, b.Name))
	})
	for i := range s.Top { // in order, so that the same trials give the same last digit
		s.Calls += s.Top[i].PerOperation
	}
	all := s.Top
	if len(s.Top) > MaxTop {
		s.Top = slices.Clone(all[:MaxTop])
		for _, x := range all[MaxTop:] {
			s.Other += x.PerOperation
		}
	}
	return all
}

// whyNotCounted is the reason for people.
func whyNotCounted(from *stratum, skips []record.Skip) string {
	for _, s := range skips {
		if len(s.Cell) == 1 && s.Cell[0].Factor == study.FactorCounting {
			return s.Reason
		}
	}
	if from.failed != "" {
		return "not counted: the counting trial failed: " + from.failed
	}
	return "not counted: the counting trial has not run"
}

// operationTime turns a response's value into seconds an operation.
func operationTime(r record.Response, v float64) (float64, bool) {
	switch {
	case !(v > 0) || math.IsInf(v, 0):
		return 0, false
	case r.Unit == record.PerSecond || r.Unit == record.BytesPerSecond:
		return 1 / v, true
	case r.Unit == record.Second:
		return v, true
	}
	return 0, false
}

// extra is the extra time of a comparison as a multiple of the baseline's: a ratio
// of rates is turned over.
func extra(r record.Response, e stat.Estimate) Figure {
	ratio, lo, hi := e.Ratio, e.Lo, e.Hi
	if r.Unit != record.Second {
		ratio = 1 / ratio
		if e.HasInterval() {
			lo, hi = 1/e.Hi, 1/e.Lo
		}
	}
	f := Figure{Value: ratio - 1}
	if e.HasInterval() {
		f.Lo, f.Hi = lo-1, hi-1
	}
	return f
}
