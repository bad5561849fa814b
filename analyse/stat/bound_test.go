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
		if shown := e.Shown(v, c.better); (shown == Bounded) != (c.want > 0) {
			t.Errorf("%s: shown as %s", name, shown)
		}
	}
}

// TestPerhaps: an undecided interval that lies on one side of 1 is not shown as one that is too noisy
// to say: it is perhaps a difference, of too few blocks.
func TestPerhaps(t *testing.T) {
	rule := Rule{Margin: 0.03}
	for _, c := range []struct {
		lo, hi float64
		n      int
		better record.Better
		want   Verdict
	}{
		{1.05, 1.6, 3, record.Lower, "perhaps slower"},
		{1.05, 1.6, 3, record.Higher, "perhaps faster"},
		{0.6, 0.95, 4, record.Lower, "perhaps faster"},
		{0.6, 0.95, 4, record.Neither, "perhaps lower"},
		{1.05, 1.6, 5, record.Lower, Slower},
		{0.95, 1.6, 3, record.Lower, Undecided},
	} {
		e := Estimate{Ratio: math.Sqrt(c.lo * c.hi), Lo: c.lo, Hi: c.hi, N: c.n}
		v, _ := rule.Judge(e, c.better)
		if got := e.Shown(v, c.better); got != c.want {
			t.Errorf("%g to %g of %d blocks is shown as %s, want %s", c.lo, c.hi, c.n, got, c.want)
		}
	}
	for n := 1; n < MinN; n++ { // without an interval nothing says that there is much noise
		if got := (Estimate{Ratio: 1.4, N: n}).Shown(Undecided, record.Lower); got != TooFew {
			t.Errorf("%d blocks are shown as %s", n, got)
		}
	}
	if got := (Estimate{N: 1, Undefined: "both are zero"}).Shown(Undecided, record.Lower); got != Undecided {
		t.Errorf("what has no ratio is shown as %s", got)
	}
	for _, v := range AllPerhaps() {
		if of, is := v.Perhaps(); !is || !of.Decided() {
			t.Errorf("%s is perhaps %q", v, of)
		}
	}
	if _, is := Slower.Perhaps(); is || (Estimate{}).Shown(Undecided, record.Lower) != Undecided {
		t.Error("a verdict is perhaps a difference without an interval on one side of 1")
	}
}
