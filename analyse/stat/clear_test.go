package stat

import (
	"math"
	"testing"

	"tare/record"
)

func clearRule() Rule {
	r := NewRule(0.95, 0, 0.03, []int{3, 4, 6, 8, 12, 16}, 0)
	r.Clear = true
	return r
}

// pairsOf are pairs whose log-ratios are these.
func pairsOf(logs ...float64) []Pair {
	out := make([]Pair, len(logs))
	for i, x := range logs {
		out[i] = Pair{Base: 1, Other: math.Exp(x)}
	}
	return out
}

// repeated is a pattern of log-ratios around a mean, n times.
func repeated(mean, sd float64, n int) Summary {
	var logs []float64
	for i := range n {
		logs = append(logs, mean+sd*float64(i%3-1))
	}
	return Summarise(pairsOf(logs...))
}

// TestClearLevels: the levels of early looks are higher, all are above the confidence, and a single look has it.
func TestClearLevels(t *testing.T) {
	r := clearRule()
	last := 1.0
	for _, n := range r.Looks {
		level := r.Estimate(repeated(0, 0.1, n), Prior{}).Confidence
		if !(level < last) || level <= 0.95 {
			t.Errorf("after %d blocks the level is %.4f, after %.4f at the look before", n, level, last)
		}
		last = level
	}
	one := Rule{Confidence: 0.95, Margin: 0.03, Looks: []int{5}, Clear: true}
	if got := one.Estimate(repeated(0, 0.1, 5), Prior{}).Confidence; math.Abs(got-0.95) > 1e-9 {
		t.Errorf("a single look has the level %.4f", got)
	}
}

// TestClearEnds: a clear difference and clear equality end a comparison, an open question goes on, and one that
// the last look cannot answer is hopeless.
func TestClearEnds(t *testing.T) {
	r := clearRule()
	for _, c := range []struct {
		name             string
		s                Summary
		enough, hopeless bool
		verdict          Verdict
	}{
		{"twice as slow", repeated(math.Log(2), 0.02, 4), true, false, Slower},
		{"equal", repeated(0, 0.005, 8), true, false, Equivalent},
		{"perhaps slower", repeated(0.15, 0.15, 6), false, false, Undecided},
		{"lost in noise", repeated(0, 0.3, 8), false, true, Undecided},
		{"clear but wide", repeated(0.5, 0.35, 8), false, false, Slower},
	} {
		v, _ := r.Judge(r.Estimate(c.s, Prior{}), record.Lower)
		if c.name != "clear but wide" && v != c.verdict {
			t.Errorf("%s: the verdict is %s, want %s", c.name, v, c.verdict)
		}
		if got := r.Enough(c.s, Prior{}); got != c.enough {
			t.Errorf("%s: enough is %v", c.name, got)
		}
		if got := r.Hopeless(c.s, Prior{}); got != c.hopeless {
			t.Errorf("%s: hopeless is %v, with a chance of %.2f", c.name, got, r.Chance(c.s, Prior{}, 16))
		}
	}
}

// TestClearPart: a mean over comparisons takes the blocks before the first look alone, because the mean decided
// about the others.
func TestClearPart(t *testing.T) {
	s := Summarise(pairsOf(0.1, 0.2, 0.3, 5, 5, 5))
	got := clearRule().Part(s, Prior{})
	if got.N != MinN || math.Abs(math.Log(got.Ratio)-0.2) > 1e-12 {
		t.Errorf("the part of a mean is %+v", got)
	}
}

// TestClearShort: a mean over rows takes the first three blocks of each as they are, also of a row that ended there.
func TestClearShort(t *testing.T) {
	rule := clearRule()
	pairs := []Pair{{1, 1.1}, {1, 1.2}, {1, 1.3}, {1, 2}}
	for n := MinN; n <= len(pairs); n++ {
		s := Summarise(pairs[:n])
		if !rule.Short(rule.Estimate(s, Prior{})) {
			t.Errorf("%d of 16 blocks: not short", n)
		}
		if got, want := rule.Part(s, Prior{}).SE, Summarise(pairs[:MinN]).Estimate(Prior{}, 0.95).SE; got != want {
			t.Errorf("%d blocks: a standard error of %g, want %g", n, got, want)
		}
	}
}
