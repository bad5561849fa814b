package plot

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/words"
)

// readings finds the values of single blocks, of the trials that count.
type readings struct {
	level  float64                          // confidence of the intervals
	trials map[string]map[int]*record.Trial // by Cell.Key and block
}

// of returns a response's value by block.
func (r readings) of(cell record.Cell, response string) map[int]float64 {
	out := make(map[int]float64)
	for b, t := range r.trials[cell.Key()] {
		if v, ok := t.Sample(response); ok && !math.IsNaN(v) && !math.IsInf(v, 0) && !t.BelowNoise(response) {
			out[b] = v
		}
	}
	return out
}

// mark makes a comparison into what is drawn of it. base is the baseline's cell,
// nil where there is none.
func (r readings) mark(c *analyse.Comparison, base record.Cell, v Value) Mark {
	m := Mark{Cell: c.Cell, Response: c.Response, Verdict: c.Verdict}
	own := r.of(c.Cell, c.Response.Name)
	if m.Gap, m.Why = gap(c, v); m.Gap != "" {
		return m
	}
	if v == Cost {
		m.N = c.Estimate.N
		m.Value, m.Lo, m.Hi = c.Estimate.Cost(c.Response.Better)
		m.Bound = words.Bound(c)
		theirs := r.of(base, c.Response.Name)
		for _, b := range slices.Sorted(maps.Keys(own)) {
			if x, ok := theirs[b]; ok && x > 0 {
				v, _, _ := stat.Estimate{Ratio: own[b] / x}.Cost(c.Response.Better)
				m.Points = append(m.Points, v)
			}
		}
		return m
	}
	m.Verdict = "" // it is the cost's
	m.N, m.Value = c.Level.N, c.Level.Typical
	if c.Level.AtLeast {
		m.Bound = words.Least
	}
	var pairs []stat.Pair
	for _, b := range slices.Sorted(maps.Keys(own)) {
		m.Points = append(m.Points, own[b])
		pairs = append(pairs, stat.Pair{Base: 1, Other: own[b]})
	}
	if e := stat.Compare(pairs, r.level); e.HasInterval() {
		m.Lo, m.Hi = e.Lo, e.Hi
	}
	return m
}

// gap says why a cell has no value to draw.
func gap(c *analyse.Comparison, v Value) (word, why string) {
	out := c.Outcome()
	if v == Level && c.Level.N > 0 && out != analyse.Skipped {
		return "", ""
	}
	switch out {
	case analyse.Skipped:
		why = "this host cannot run it: " + c.Skipped
	case analyse.GivenUp:
		why = c.GaveUp
	case analyse.BelowNoise:
		why = fmt.Sprintf("%s is below noise in %d trials", c.Response.Name, c.Level.BelowNoise)
	case analyse.Failed:
		why = c.Failures[len(c.Failures)-1].Text
	case analyse.NoValue:
		if c.Level.Missing == 0 {
			return "not run", "no trial of it is on record"
		}
		why = fmt.Sprintf("%d good trials have no value of %s", c.Level.Missing, c.Response.Name)
	case analyse.NoRatio:
		switch {
		case c.Base.N == 0:
			return "no baseline", "there is no value of the baseline to compare with"
		case c.Estimate.Undefined != "":
			why = c.Estimate.Undefined
		default:
			why = "no block has a value of both"
		}
	default:
		return "", ""
	}
	return string(out), why
}
