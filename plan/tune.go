package plan

import (
	"fmt"
	"math"
	"slices"

	"tare/analyse/tune"
	"tare/record"
)

// A study can look for a level of the compared factor, or of several (Stop.Tune). A pass then measures only those cells
// of a stratum that may still be the answer. The levels are the stratum's cells in the study's order, or, of
// several factors, combinations with a place in each. Strata
// of a mix have one answer: a pass measures the same levels of all of them.

// The most blocks of a stratum whose answer does not become clear. Combinations of several factors are more than levels of one, and a
// block measures a smaller share of them.
const (
	tuneMost    = 16
	severalMost = 32
)

// goal is what a stratum looks for.
func (p *Plan) goal() tune.Goal {
	return tune.Goal{Reach: p.study.Stop.Tune, Margin: p.study.Stop.Margin, Confidence: p.rule.Confidence}
}

// ask decides, at the start of a pass, which cells of each stratum it measures.
func (p *Plan) ask() {
	if !p.study.Stop.Searches() {
		return
	}
	for i := range p.strata {
		s := &p.strata[i]
		if s.ending != nil {
			continue
		}
		if s.waits {
			p.start(s)
		}
		if s.blocks() == 0 {
			s.found = p.search(i)
		}
		if s.waits {
			continue
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
	if s.waits {
		return slices.ContainsFunc(s.found.Measure, func(level int) bool { return s.cells[level] == id })
	}
	return len(s.asked) == 0 || pass <= len(s.asked) && slices.Contains(s.asked[pass-1], id)
}

// mix is the strata for which a study looks for one level.
type mix struct {
	strata  []int
	weights []float64 // which sum to 1
}

// mixOf is the mix that a stratum belongs to, or the stratum alone.
func (p *Plan) mixOf(stratum int) mix {
	if slices.Contains(p.mix.strata, stratum) {
		return p.mix
	}
	return mix{[]int{stratum}, []float64{1}}
}

// tuned is what the closed blocks of a mix say about its levels. Its value at a level is the weighted
// geometric mean of its strata's values, where less is better of their inverses. The units of the strata, and
// their bests, are constant factors of it, so they do not matter.
func (p *Plan) tuned(m mix) tune.Step {
	first := &p.strata[m.strata[0]]
	blocks := first.blocks()
	for _, i := range m.strata {
		blocks = min(blocks, p.strata[i].blocks())
	}
	values := make([][]float64, blocks)
	for b := range values {
		values[b] = make([]float64, len(first.cells))
		for k := range values[b] {
			sum := 0.0
			for n, i := range m.strata {
				y := m.weights[n] * math.Log(p.cells[p.strata[i].cells[k]].value(first.from+b+1))
				if p.study.Strata[i].Better == record.Lower {
					y = -y
				}
				sum += y
			}
			values[b][k] = math.Exp(sum)
		}
	}
	return tune.Next(values, tune.Grid{At: p.study.Strata[m.strata[0]].Places, Closed: p.shut(m), Near: first.near}, p.goal())
}

// shut says of each level whether it cannot be the answer, because one of the mix cannot run with it.
func (p *Plan) shut(m mix) []bool {
	out := make([]bool, len(p.strata[m.strata[0]].cells))
	for _, i := range m.strata {
		for k, id := range p.strata[i].cells {
			out[k] = out[k] || p.cells[id].skipped || p.cells[id].gaveUp != ""
		}
	}
	return out
}

// endMix ends the rest of a mix one of which has ended: it has no level without that one.
func (p *Plan) endMix() {
	k := slices.IndexFunc(p.mix.strata, func(i int) bool { return p.strata[i].ending != nil })
	if k < 0 {
		return
	}
	first := p.strata[p.mix.strata[k]].ending
	for _, i := range p.mix.strata {
		if s := &p.strata[i]; s.ending == nil {
			s.ending = &Ending{Code: first.Code, Text: "of a workload of its mix: " + first.Text, Blocks: s.blocks()}
		}
	}
}

// judgeTuned returns why a stratum ends after a pass. The code is "" if it goes on.
func (p *Plan) judgeTuned(s *stratumState, pass int) (code, text string) {
	i := p.cells[s.cells[0]].stratum
	s.found = p.search(i)
	switch {
	case !slices.Contains(p.shut(p.mixOf(i)), false):
		return EndGaveUp, "every level failed again and again"
	case s.found.Stage == tune.Found:
		return EndFound, fmt.Sprintf("%s, with a confidence of %s", p.finding(s.found), confidence(s.found.Sure))
	case s.blocks() < p.last:
		return "", ""
	}
	if n := p.study.Budget.Blocks; n > 0 && n == p.last {
		unlimited := *p.study
		if unlimited.Budget.Blocks = 0; n < lastPass(&unlimited) {
			return EndBudgetBlocks, fmt.Sprintf("%s not clear, and the budget of %s is used up; %s", p.sought(), blocks(n), longer)
		}
	}
	return EndLooks, fmt.Sprintf("%s not clear after %d blocks, the most that a search makes", p.sought(), s.blocks())
}

func blocks(n int) string {
	if n == 1 {
		return "1 block"
	}
	return fmt.Sprintf("%d blocks", n)
}

// confidence writes how sure a search is: at most 99 %, because draws are too few for more.
func confidence(sure float64) string { return fmt.Sprintf("%.0f %%", 100*math.Min(sure, 0.99)) }

// finding says what a search has found.
func (p *Plan) finding(step tune.Step) string {
	switch {
	case p.study.Stop.Objective == nil:
	case step.Answer < 0:
		return "no load meets the objective"
	case step.Upper < 0:
		return "every load meets the objective"
	}
	return p.sought() + " found"
}

// sought begins a sentence about what a study looks for.
func (p *Plan) sought() string {
	if p.study.Stop.Objective != nil {
		return "the highest load is"
	}
	if len(p.study.Stop.Factors) > 0 {
		return "the levels are"
	}
	return "the level is"
}

// Tuned is what is known about a stratum's level. ok is false if the study looks for none.
func (p *Plan) Tuned(stratum int) (step tune.Step, ok bool) {
	if !p.study.Stop.Searches() {
		return tune.Step{}, false
	}
	p.advance()
	return p.strata[stratum].found, true
}

// Alone is what is known about the levels by a stratum of a mix alone.
func (p *Plan) Alone(stratum int) tune.Step {
	p.advance()
	return p.tuned(mix{[]int{stratum}, []float64{1}})
}
