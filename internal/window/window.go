// Package window reduces the series of a trial to figures of its measured window: a counter
// to its rate, a gauge to its mean and maximum. Measured and modelled series are reduced in
// the same way, so that one analysis reads both.
package window

import (
	"slices"
	"time"

	"tare/record"
)

// Series is a series with its points in order of time.
type Series struct {
	record.Series
	Stamped bool // its points have their own times, which may differ from the window's edges
}

// Span is the measured window, since the trial's start.
type Span struct{ From, To time.Duration }

// Figures returns the figures of a trial: each series reduced over the window, except those
// of single threads; the busiest thread of each role; and the sums over a guest's processors.
func Figures(series []*Series, w Span) []record.Sample {
	var out []record.Sample
	var threads busiest
	for _, s := range series {
		if s.Labels.Get(labelThread) == "" {
			out = append(out, s.Summarise(w)...)
		} else {
			threads.take(s, w)
		}
	}
	return append(append(out, threads.samples()...), guest(out)...)
}

// Summarise reduces a series to values over the window: a counter to its rate
// (a counter of CPU seconds to cores), a gauge to its mean and maximum. An empty
// window gives nothing.
func (s *Series) Summarise(w Span) []record.Sample {
	from, _ := slices.BinarySearch(s.T, w.From)
	to, _ := slices.BinarySearch(s.T, w.To+1)
	if w.To <= w.From {
		return nil
	}
	sample := func(suffix string, u record.Unit, v float64) record.Sample {
		return record.Sample{Name: s.Name + suffix, Labels: s.Labels, Unit: u, Kind: record.Value, Value: v}
	}
	switch {
	case s.Kind == record.Counter:
		rate, ok := s.rate(w, from, to)
		if !ok {
			return nil
		}
		unit := record.Unit(string(s.Unit) + "/s")
		switch s.Unit {
		case record.Second:
			unit = record.Cores
		case record.Count:
			unit = record.PerSecond
		}
		return []record.Sample{sample(record.RateSuffix, unit, rate)}
	case s.Kind == record.Gauge && from < to:
		sum, top := 0.0, s.V[from]
		for _, v := range s.V[from:to] {
			sum += v
			top = max(top, v)
		}
		return []record.Sample{sample("_mean", s.Unit, sum/float64(to-from)), sample("_max", s.Unit, top)}
	}
	return nil
}

// rate returns a counter's rate over the window, which has the points from up to to. A
// counter that began within the window began at zero: what it counts, such as the threads of
// a role, did not exist before.
func (s *Series) rate(w Span, from, to int) (float64, bool) {
	if s.Stamped {
		return s.stampedRate(w)
	}
	if from >= to {
		return 0, false
	}
	first := s.V[from]
	if from == 0 && s.T[0] > w.From {
		first = 0
	}
	return (s.V[to-1] - first) / (w.To - w.From).Seconds(), true
}

// covered is the part of the window that the points of a stamped series must span to give a
// figure.
const covered = 0.5

// stampedRate is for points that are not at the window's edges. It interpolates a counter
// linearly between two points. If the series begins late or ends early, only the time that it
// spans counts.
func (s *Series) stampedRate(w Span) (float64, bool) {
	if len(s.T) < 2 {
		return 0, false
	}
	from, to := max(w.From, s.T[0]), min(w.To, s.T[len(s.T)-1])
	if to <= from || float64(to-from) < covered*float64(w.To-w.From) {
		return 0, false
	}
	return (s.at(to) - s.at(from)) / (to - from).Seconds(), true
}

// at interpolates the value at a time that the series spans.
func (s *Series) at(t time.Duration) float64 {
	i, exact := slices.BinarySearch(s.T, t)
	if exact {
		return s.V[i]
	}
	part := float64(t-s.T[i-1]) / float64(s.T[i]-s.T[i-1])
	return s.V[i-1] + part*(s.V[i]-s.V[i-1])
}
