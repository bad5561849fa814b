package analyse

import (
	"testing"

	"tare/analyse/stat"
)

// TestOutcome: where several things are true of a comparison, the first in the
// order of the constants is said.
func TestOutcome(t *testing.T) {
	good := Comparison{Level: Level{N: 3}, Base: Level{N: 3}, Estimate: stat.Estimate{N: 3, Ratio: 2}}
	steps := []struct {
		want Outcome
		make func(*Comparison)
	}{
		{HasRatio, func(*Comparison) {}},
		{NoRatio, func(c *Comparison) { c.Estimate.Undefined = "a value is negative" }},
		{NoRatio, func(c *Comparison) { c.Base = Level{} }},
		{Baseline, func(c *Comparison) { c.Baseline = true }},
		{NoValue, func(c *Comparison) { c.Level = Level{Missing: 3} }},
		{Failed, func(c *Comparison) { c.Failed = 3 }},
		{BelowNoise, func(c *Comparison) { c.Level.BelowNoise = 1 }},
		{GivenUp, func(c *Comparison) { c.GaveUp = "failed in 3 blocks running" }},
		{Skipped, func(c *Comparison) { c.Skipped = "no runsc" }},
	}
	c := good
	for _, s := range steps {
		s.make(&c)
		if got := c.Outcome(); got != s.want {
			t.Errorf("%s, want %s: %+v", got, s.want, c)
		}
	}
	// Below noise beside a level, and failures beside one.
	c = good
	c.Failed, c.GaveUp = 1, "failed in 3 blocks running"
	if got := c.Outcome(); got != HasRatio {
		t.Errorf("%s of a cell with values", got)
	}
	if c.Level.BelowNoise = 1; c.Outcome() != BelowNoise {
		t.Errorf("%s of a cell below noise", c.Outcome())
	}
}
