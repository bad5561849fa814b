package analyse

import (
	"maps"
	"math"
	"slices"

	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
)

// Scatter says at which level the ratio of a comparison scatters in a study with turns: from
// start to start, or from turn to turn within a start. Both are standard deviations of ln(ratio).
type Scatter struct {
	Starts float64    `json:"starts"`
	Turns  float64    `json:"turns"`
	N      int        `json:"n"`    // turns of a start
	Part   stat.Share `json:"part"` // of the variance of a block's ratio: what turns make up, with an 80 % interval
	Limits Limit      `json:"limits,omitempty"`
	Says   string     `json:"says,omitempty"` // Limits in a sentence
	// Best is the number of turns that makes the interval narrowest in a given time; 0: not known, or
	// more than mostTurns.
	Best int `json:"best_turns,omitempty"`
}

// Limit is what keeps an interval wide.
type Limit string

// Limits. There is none if both levels matter, or if too little is known to tell.
const (
	LimitStarts Limit = "starts"
	LimitTurns  Limit = "turns"
)

// String says in words what to do about it.
func (l Limit) String() string {
	switch l {
	case LimitStarts:
		return "more starts would narrow it; more turns in a start would not"
	case LimitTurns:
		return "more turns in a start would narrow it, and take less time than more starts"
	}
	return ""
}

// Starts limit a row if turns surely make up less than half of the variance of a block: twice as many
// turns would narrow it by less than 13 %. Turns limit it if they probably make up more than half, and
// surely more than a quarter.
const (
	halfPart    = 0.5
	quarterPart = 0.25
	scatterSure = 0.8
	mostTurns   = 100 // that a study may have
)

// scatter estimates both levels from the values of the turns, in pairs: a turn of the treatment
// with the baseline's turn of the same number, which was at most seconds before or after. nil
// without turns, or where they are too few.
func (a *analysis) scatter(base, own record.Cell, response string) *Scatter {
	var groups [][]float64
	var start, turn float64 // seconds, over all pairs
	n := 0
	theirs, ours := a.counting[base.Key()], a.counting[own.Key()]
	for _, block := range slices.Sorted(maps.Keys(ours)) {
		b, o := theirs[block], ours[block]
		if b == nil {
			continue
		}
		g := plan.LogRatios(plan.Turns(b, response), plan.Turns(o, response))
		if len(g) < 2 {
			continue
		}
		n = max(n, len(g))
		groups = append(groups, g)
		for _, t := range []*record.Trial{b, o} {
			s, each := plan.Costs(t, len(g))
			start, turn = start+s, turn+each
		}
	}
	l, ok := stat.TwoLevels(groups, scatterSure)
	if !ok {
		return nil
	}
	s := &Scatter{Starts: math.Sqrt(l.Between), Turns: math.Sqrt(l.Within), N: n, Part: l.Part}
	switch {
	case l.Part.Hi < halfPart:
		s.Limits = LimitStarts
	case l.Part.Share > halfPart && l.Part.Lo > quarterPart:
		s.Limits = LimitTurns
	}
	s.Says = s.Limits.String()
	// W. G. Cochran, "Sampling Techniques", 3rd edition 1977, section 10.6: the number of units in a
	// group that gives the least variance for a cost.
	if best := math.Sqrt(start / turn * l.Within / l.Between); s.Limits != "" && best <= mostTurns {
		s.Best = max(1, int(math.Round(best)))
	}
	return s
}
