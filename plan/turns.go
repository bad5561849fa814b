package plan

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"tare/analyse/stat"
	"tare/record"
)

// mostChosen bounds the turns that the plan chooses. Beyond it, hardly any interval narrows.
const mostChosen = 16

// choose sets how many turns the next blocks of a stratum have, if the study leaves that to tare: those
// that narrow its open comparisons most in the time that is left for it, with the scatter of starts
// and of turns and with the times of both as they were so far. More turns make a block more
// precise, and leave time for fewer blocks, of which an interval needs several. It looks at the
// scatter, but never at the mean: Rule.Enough gives the reason.
func (p *Plan) choose(stratum, pass int) {
	s := &p.strata[stratum]
	first := p.study.WorkloadOf(stratum)
	open := p.open(s)
	if !first.AutoTurns || len(open) == 0 {
		return
	}
	start, turn := p.costs(s, open)
	left := p.share(s, float64(p.last-pass)*(start+float64(first.Turns)*turn))
	if turn <= 0 {
		return
	}
	levels := p.levels(s, open, pass)
	narrowest := math.Inf(1)
	for turns := 1; turns <= mostChosen; turns++ {
		more := min(left/(start+float64(turns)*turn), float64(p.last-pass))
		if width := levels.Width(p.rule, pass, more, turns); width < narrowest {
			s.turns, narrowest = turns, width
		}
	}
}

// share is the time in seconds that is left for a stratum: its part of the budget if all that go on
// have as many blocks more, and not above most.
func (p *Plan) share(s *stratumState, most float64) float64 {
	if p.study.Budget.Time <= 0 {
		return most
	}
	all := time.Duration(0)
	for i := range p.strata {
		if o := &p.strata[i]; o.ending == nil {
			all += o.each()
		}
	}
	left := (p.study.Budget.Time - p.walk.spent).Seconds()
	return min(most, left*s.each().Seconds()/all.Seconds())
}

// each is the mean time of a block of the stratum.
func (s *stratumState) each() time.Duration { return s.time / time.Duration(max(s.blocks(), 1)) }

// levels are those of the scatter of a stratum's open comparisons up to a pass.
func (p *Plan) levels(s *stratumState, open []int, pass int) stat.Nested {
	var all [][][]float64
	for _, id := range open {
		var groups [][]float64
		for b := 1; b <= min(pass, s.closed); b++ {
			base, own := p.cells[s.baseline].good(b), p.cells[id].good(b)
			if base != nil && own != nil {
				groups = append(groups, LogRatios(base.turns, own.turns))
			}
		}
		all = append(all, groups)
	}
	return stat.Nest(all, s.turns)
}

// costs are the seconds that a block of the baseline and the open treatments takes once, and for each turn.
func (p *Plan) costs(s *stratumState, open []int) (start, turn float64) {
	for _, id := range append([]int{s.baseline}, open...) {
		n, once, each := 0.0, 0.0, 0.0
		for b := range p.cells[id].blocks {
			if t := p.cells[id].good(b + 1); t != nil && len(t.turns) > 1 { // of one turn, nothing tells what comes once
				n, once, each = n+1, once+t.start, each+t.turn
			}
		}
		if n > 0 {
			start, turn = start+once/n, turn+each/n
		}
	}
	return start, turn
}

// good returns the try that counts in a block, as far as the walk has come; nil if none does.
func (c *cellState) good(pass int) *try {
	if b := c.at(pass); b != nil && b.good > 0 {
		return &b.tries[b.good-1]
	}
	return nil
}

// Turns returns the values of a trial's turns, by turn number.
func Turns(t *record.Trial, response string) map[int]float64 {
	out := map[int]float64{}
	for i := range t.Samples {
		if s := &t.Samples[i]; s.Name == response {
			if n, err := strconv.Atoi(s.Labels.Get(record.LabelTurn)); err == nil {
				out[n] = s.Value
			}
		}
	}
	return out
}

// LogRatios are those of the turns that both have; none where one has no logarithm.
func LogRatios(base, own map[int]float64) []float64 {
	var out []float64
	for _, n := range slices.Sorted(maps.Keys(own)) {
		b, ok := base[n]
		if !ok {
			continue
		}
		x := math.Log(own[n]) - math.Log(b)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		out = append(out, x)
	}
	return out
}

// Costs are the seconds that a trial takes once, and for each of its turns: the phases of a turn
// are those that come once a turn.
func Costs(t *record.Trial, turns int) (start, turn float64) {
	count, sum := map[string]int{}, map[string]time.Duration{}
	for _, p := range t.Phases {
		count[p.Name]++
		sum[p.Name] += p.Duration
	}
	var all time.Duration // of the turns
	for name, n := range count {
		if n == turns {
			all += sum[name]
		}
	}
	return max(t.Duration-all, 0).Seconds(), all.Seconds() / float64(turns)
}
