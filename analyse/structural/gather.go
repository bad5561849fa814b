package structural

import (
	"math"
	"slices"

	"tare/plan"
	"tare/record"
	"tare/study"
)

// callRate is a sample of the collector calls: a second, labels end and call.
const callRate = record.SystemCalls + record.RateSuffix

// stratum is what is kept of one.

type stratum struct {
	counted *counted
	failed  string // reason of the counting trial that failed last
	seq     int    // of it
}

// counted is what one counting trial said.
type counted struct {
	seq    int
	values map[string]float64 // of responses
	calls  map[string]float64 // a second, by name, of the isolated endpoint
}

// gather goes through the trials, in any order.
func gather(st *study.Study, trials []*record.Trial) []stratum {
	out := make([]stratum, len(st.Strata))
	counting := map[string]*stratum{}
	for i := range st.Strata {
		if c := st.Strata[i].Counting; c != nil {
			counting[c.Key()] = &out[i]
		}
	}
	for _, t := range trials {
		if s := counting[t.Cell.Key()]; s != nil && study.IsCounting(t.Cell) {
			s.add(t)
		}
	}
	return out
}

// add takes in a counting trial; of several good ones the last counts.
func (s *stratum) add(t *record.Trial) {
	if t.Status != record.OK {
		if t.Failure != nil && !t.Failure.Passing() && t.Seq >= s.seq {
			s.failed, s.seq = t.Failure.Reason, t.Seq
		}
		return
	}
	if s.counted != nil && s.counted.seq > t.Seq {
		return
	}
	c := &counted{seq: t.Seq, values: map[string]float64{}, calls: map[string]float64{}}
	endpoints := endpointsOf(t)
	for _, x := range t.Samples {
		if math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
			continue
		}
		switch {
		case x.Labels == "":
			c.values[x.Name] = x.Value
		case x.Name == callRate && endpoints(x.Labels.Get(record.LabelEndpoint)):
			c.calls[x.Labels.Get(record.LabelCall)] += x.Value
		}
	}
	s.counted = c
}

// endpointsOf tells whether a role of a trial is isolated: the trial says it. One of an
// older tare does not, and is judged by its cell and the endpoints that called.
func endpointsOf(t *record.Trial) func(endpoint string) bool {
	var told, endpoints []string
	for _, x := range t.Samples {
		endpoint := x.Labels.Get(record.LabelEndpoint)
		switch {
		case endpoint == "":
		case x.Name == plan.IsolatedSample:
			told = append(told, endpoint)
		case x.Name == callRate && !slices.Contains(endpoints, endpoint):
			endpoints = append(endpoints, endpoint)
		}
	}
	if len(told) > 0 {
		return func(endpoint string) bool { return slices.Contains(told, endpoint) }
	}
	isolate := study.IsolateOf(t.Cell)
	return func(endpoint string) bool { return study.Isolated(isolate, endpoint, len(endpoints)) }
}

// parallelism is how many calls are under way at once.
func (s *stratum) parallelism() float64 {
	return math.Max(1, s.counted.values[plan.CoresSample])
}
