package stat

import (
	"math"
	"testing"

	"tare/record"
)

// TestBound: what is surely small is told from what is too noisy to say, whichever side of
// the response is better.
func TestBound(t *testing.T) {
	rule := Rule{Margin: 0.03}
	for name, c := range map[string]struct {
		lo, hi float64
		n      int
		better record.Better
		want   float64
	}{
		"a latency of at most 4 % more":     {0.95, 1.04, 8, record.Lower, 0.04},
		"a rate of at most 4 % less":        {1 / 1.04, 1.05, 8, record.Higher, 0.04},
		"the other end does not matter":     {1 / 1.5, 1.04, 8, record.Higher, 0},
		"above a tenth":                     {0.95, 1.11, 8, record.Lower, 0},
		"too few blocks for so much":        {0.60, 1.04, 3, record.Lower, 0},
		"neither side is better":            {0.95, 1.04, 8, record.Neither, 0},
		"all within the margin: equivalent": {0.99, 1.01, 8, record.Lower, 0},
		"a cost":                            {1.01, 1.04, 8, record.Lower, 0},
		"a gain":                            {0.9, 0.95, 8, record.Lower, 0},
		"no interval":                       {0, 0, 2, record.Lower, 0},
	} {
		e := Estimate{Ratio: math.Sqrt(c.lo * c.hi), Lo: c.lo, Hi: c.hi, N: c.n}
		v, _ := rule.Judge(e, c.better)
		e.Bound = rule.Bound(e, c.better, v)
		if math.Abs(e.Bound-c.want) > 1e-9 {
			t.Errorf("%s: %s, bound %g, want %g", name, v, e.Bound, c.want)
		}
		if shown := e.Shown(v); (shown == Bounded) != (c.want > 0) {
			t.Errorf("%s: shown as %s", name, shown)
		}
	}
}
