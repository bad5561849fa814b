package run

import (
	"slices"
	"time"

	"tare/record"
)

// summarise reduces a series to values over the window: a counter to its rate
// (a counter of CPU seconds to cores), a gauge to its mean and maximum. An empty
// window gives nothing.
func summarise(s *line, w window) []record.Sample {
	from, _ := slices.BinarySearch(s.T, w.from)
	to, _ := slices.BinarySearch(s.T, w.to+1)
	if w.to <= w.from {
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

// rate is a counter's over the window, whose points are those from, up to to. A
// counter that began within the window began at zero: what it counts, such as the
// threads of a role, was not there before.
func (l *line) rate(w window, from, to int) (float64, bool) {
	if l.stamped {
		return l.stampedRate(w)
	}
	if from >= to {
		return 0, false
	}
	first := l.V[from]
	if from == 0 && l.T[0] > w.from {
		first = 0
	}
	return (l.V[to-1] - first) / (w.to - w.from).Seconds(), true
}

// covered is the part of the window that the points of a stamped series must
// reach over to tell of it.
const covered = 0.5

// stampedRate is for points that do not lie on the window's edges: between two of
// them a counter is taken to rise evenly. Where the series begins late or ends
// early, the time that it was there counts.
func (l *line) stampedRate(w window) (float64, bool) {
	if len(l.T) < 2 {
		return 0, false
	}
	from, to := max(w.from, l.T[0]), min(w.to, l.T[len(l.T)-1])
	if to <= from || float64(to-from) < covered*float64(w.to-w.from) {
		return 0, false
	}
	return (l.at(to) - l.at(from)) / (to - from).Seconds(), true
}

// at is the value between the points around a time that the series reaches over.
func (l *line) at(t time.Duration) float64 {
	i, exact := slices.BinarySearch(l.T, t)
	if exact {
		return l.V[i]
	}
	part := float64(t-l.T[i-1]) / float64(l.T[i]-l.T[i-1])
	return l.V[i-1] + part*(l.V[i]-l.V[i-1])
}
