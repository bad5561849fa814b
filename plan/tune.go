package plan

import (
	"fmt"
	"math"
	"slices"

	"tare/analyse/tune"
	"tare/record"
)

// A study can look for a level of the compared factor (Stop.Tune). A pass then measures only those cells
// of a stratum that may still be the answer. The levels are the stratum's cells in the study's order.

// tuneMost is the most blocks of a stratum whose answer does not become clear.
const tuneMost = 16

// goal is what a stratum looks for.
func (p *Plan) goal() tune.Goal {
	return tune.Goal{Reach: p.study.Stop.Tune, Margin: p.study.Stop.Margin, Confidence: p.rule.Confidence}
}

// ask decides, at the start of a pass, which cells of each stratum it measures.
func (p *Plan) ask() {
	if p.study.Stop.Tune == 0 {
		return
	}
	for i := range p.strata {
		s := &p.strata[i]
		if s.ending != nil {
			continue
		}
		if s.closed == 0 {
			s.found = p.tuned(i)
		}
		cells := make([]int, 0, len(s.found.Measure))
		for _, level := range s.found.Measure {
			cells = append(cells, s.cells[level])
		}
		for len(s.asked) < p.walk.pass {
			s.asked = append(s.asked, nil)
		}
		s.asked[p.walk.pass-1] = cells
	}
}

// asks reports whether a pass measures a cell of the stratum.
func (s *stratumState) asks(pass, id int) bool {
	return len(s.asked) == 0 || pass <= len(s.asked) && slices.Contains(s.asked[pass-1], id)
}

// tuned is what the closed blocks of a stratum say about its levels.
func (p *Plan) tuned(stratum int) tune.Step {
	s := &p.strata[stratum]
	closed := make([]bool, len(s.cells))
	values := make([][]float64, s.closed)
	for b := range values {
		values[b] = make([]float64, len(s.cells))
	}
	for k, id := range s.cells {
		c := &p.cells[id]
		closed[k] = c.skipped || c.gaveUp != ""
		for b := range values {
			v := c.value(b + 1)
			if p.study.Strata[stratum].Better == record.Lower {
				v = 1 / v
			}
			values[b][k] = v
		}
	}
	return tune.Next(values, closed, p.goal())
}

// judgeTuned returns why a stratum ends after a pass. The code is "" if it goes on.
func (p *Plan) judgeTuned(s *stratumState, pass int) (code, text string) {
	s.found = p.tuned(p.cells[s.cells[0]].stratum)
	switch {
	case !slices.ContainsFunc(s.cells, func(id int) bool { return !p.cells[id].skipped && p.cells[id].gaveUp == "" }):
		return EndGaveUp, "every level failed again and again"
	case s.found.Stage == tune.Found:
		return EndFound, fmt.Sprintf("the level is found, with a confidence of %.0f %%", 100*math.Min(s.found.Sure, 0.99))
	case pass < p.last:
		return "", ""
	}
	return EndLooks, fmt.Sprintf("the level is not clear after %d blocks, the most that a search makes", pass)
}

// Tuned is what is known about a stratum's level. ok is false if the study looks for none.
func (p *Plan) Tuned(stratum int) (step tune.Step, ok bool) {
	if p.study.Stop.Tune == 0 {
		return tune.Step{}, false
	}
	p.advance()
	return p.strata[stratum].found, true
}
