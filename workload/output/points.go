package output

import (
	"time"

	"tare/record"
)

// Points is a figure in intervals, as tare's own drivers report it. It begins with the first operation, so it includes the
// warm-up. T is the end of each interval, in seconds.
type Points struct {
	T []float64 `json:"t_s"`
	V []float64 `json:"v"`
}

const (
	late    = 0.005 // seconds that the last tick may be late
	maxTime = 1e6   // seconds
)

// Series makes the series of a response from the points up to end, in seconds. Later points belong to a load that was
// ending. It returns false if there are no points, or if they are invalid.
func (p *Points) Series(response string, u record.Unit, end float64, labels ...string) (record.Series, bool) {
	out := record.Series{Name: response, Labels: record.MakeLabels(append(labels, record.LabelResponse, response)...), Unit: u, Kind: record.Gauge}
	if p == nil || len(p.T) != len(p.V) {
		return out, false
	}
	last := 0.0
	for i, t := range p.T {
		if t < last || t > maxTime {
			return out, false
		}
		last = t
		if t <= end+late {
			out.T, out.V = append(out.T, time.Duration(t*1e9)), append(out.V, p.V[i])
		}
	}
	return out, len(out.T) > 0
}
