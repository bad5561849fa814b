package analyse

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"tare/record"
	"tare/study"
)

// LoadStep is a step of a load that grows within a trial: medians over the cell's good trials, and what bound it.
type LoadStep struct {
	Cell    record.Cell `json:"cell"`
	Step    int         `json:"step"`   // from 1
	Trials  int         `json:"trials"` // that reached it
	Values  []LoadValue `json:"values"`
	Calls   []LoadCall  `json:"calls,omitempty"`
	Bounds  []LoadBound `json:"bounds"`  // the most frequent first
	Verdict string      `json:"verdict"` // of the last trial, with its readings
	// Verdicts on the removal of the step's objects, if the load measured it.
	Removals []LoadBound    `json:"removals,omitempty"`
	Removal  string         `json:"removal,omitempty"`
	at       map[string]int // of Values
}

// LoadValue is a figure of a step.
type LoadValue struct {
	Name   string      `json:"name"`
	Unit   record.Unit `json:"unit"`
	Median float64     `json:"median"`
	// AtLeast: the median is a lower bound, because pods or claims did not reach the stage in time in half of the trials or more.
	AtLeast bool `json:"at_least,omitempty"`
	all     []float64
	late    int // trials whose value is a lower bound
}

// LoadCall is the latency of the API's answers to one verb on one kind of object in a step, in seconds from when the last request was sent: medians
// over the trials of each trial's percentile.
type LoadCall struct {
	Verb     string  `json:"verb"`
	Resource string  `json:"resource"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	p50, p99 []float64
}

// LoadBound is what bound a step, in so many trials.
type LoadBound struct {
	By     string `json:"by"`
	Trials int    `json:"trials"`
}

// Value is the median of a figure.
func (s *LoadStep) Value(name string) (LoadValue, bool) {
	i := slices.IndexFunc(s.Values, func(v LoadValue) bool { return v.Name == name })
	if i < 0 {
		return LoadValue{}, false
	}
	return s.Values[i], true
}

// loadSteps sums up the samples with the label record.LabelStep and no other, but for the verdicts (record.StepBound), in the order of the
// cells in the study.
func (a *analysis) loadSteps() []LoadStep {
	type key struct {
		cell string
		step int
	}
	by := make(map[key]*LoadStep)
	for _, t := range a.trials {
		if t.Status != record.OK || study.IsCounting(t.Cell) {
			continue
		}
		for i := range t.Samples {
			s := &t.Samples[i]
			n, err := strconv.Atoi(s.Labels.Get(record.LabelStep))
			if s.Labels == "" || err != nil || math.IsNaN(s.Value) {
				continue
			}
			k := key{t.Cell.Key(), n}
			if by[k] == nil {
				by[k] = &LoadStep{Cell: t.Cell, Step: n, at: make(map[string]int)}
			}
			by[k].add(s)
		}
	}
	var out []LoadStep
	for i := range a.study.Strata {
		for _, c := range a.study.Strata[i].Cells {
			var own []LoadStep
			for k, s := range by {
				if k.cell == c.Key() && s.Trials > 0 { // other figures have steps without a verdict
					own = append(own, s.sum())
				}
			}
			slices.SortFunc(own, func(x, y LoadStep) int { return x.Step - y.Step })
			out = append(out, own...)
		}
	}
	return out
}

func (s *LoadStep) add(x *record.Sample) {
	switch x.Name {
	case record.StepBound:
		s.Trials++
		s.Verdict, s.Bounds = x.Original, count(s.Bounds, verdictOf(x))
		return
	case record.RemovalBound:
		s.Removal, s.Removals = x.Original, count(s.Removals, verdictOf(x))
		return
	}
	if figure := x.Labels.Get(record.LabelFigure); x.Name == record.StepLate && figure != "" {
		s.value(figure, record.Second).late++
		return
	}
	if verb := x.Labels.Get(record.LabelVerb); verb != "" {
		s.call(x, verb, x.Labels.Get(record.LabelResource))
		return
	}
	if x.Labels == record.MakeLabels(record.LabelStep, strconv.Itoa(s.Step)) {
		v := s.value(x.Name, x.Unit)
		v.all = append(v.all, x.Value)
	}
}

// value returns a figure of the step, which it adds if it is not there.
func (s *LoadStep) value(name string, u record.Unit) *LoadValue {
	i, known := s.at[name]
	if !known {
		i = len(s.Values)
		s.at[name] = i
		s.Values = append(s.Values, LoadValue{Name: name, Unit: u})
	}
	return &s.Values[i]
}

// Percentiles of calls that the report has.
const (
	callP50 = record.CallTime + "50"
	callP99 = record.CallTime + "99"
)

func (s *LoadStep) call(x *record.Sample, verb, resource string) {
	if x.Name != callP50 && x.Name != callP99 {
		return
	}
	i := slices.IndexFunc(s.Calls, func(c LoadCall) bool { return c.Verb == verb && c.Resource == resource })
	if i < 0 {
		i = len(s.Calls)
		s.Calls = append(s.Calls, LoadCall{Verb: verb, Resource: resource})
	}
	c := &s.Calls[i]
	if x.Name == callP50 {
		c.p50 = append(c.p50, x.Value)
	} else {
		c.p99 = append(c.p99, x.Value)
	}
}

// count counts a trial with a verdict.
func count(bounds []LoadBound, word string) []LoadBound {
	i := slices.IndexFunc(bounds, func(b LoadBound) bool { return b.By == word })
	if i < 0 {
		return append(bounds, LoadBound{By: word, Trials: 1})
	}
	bounds[i].Trials++
	return bounds
}

func (s *LoadStep) sum() LoadStep {
	for i := range s.Values {
		v := &s.Values[i]
		v.Median, v.AtLeast = median(v.all), 2*v.late >= len(v.all) && v.late > 0
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		c.P50, c.P99 = median(c.p50), median(c.p99)
	}
	for _, bounds := range [][]LoadBound{s.Bounds, s.Removals} {
		slices.SortStableFunc(bounds, func(x, y LoadBound) int { return cmp.Compare(y.Trials, x.Trials) })
	}
	return *s
}

// verdictOf is the word of a sample record.StepBound, which comes with all its labels.
func verdictOf(x *record.Sample) string { return x.Labels.Get(record.LabelBound) }
