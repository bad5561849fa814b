package published

import (
	"fmt"
	"math"

	"tare/analyse/stat"
)

// Agreement is what a published ratio and a measured one come to.
type Agreement string

// Agreements.
const (
	Agrees        Agreement = "agrees"
	SameDirection Agreement = "same direction"
	Disagrees     Agreement = "disagrees"
	Undecided     Agreement = "undecided"
	NotMeasured   Agreement = "not measured"
)

const (
	// Factor widens a measured interval at both ends before a published ratio is
	// looked for in it. The published figures have no intervals and are of another
	// machine; benchmarks of this kind come out up to a quarter differently from
	// one machine to the next. It is a convention, and printed with the table.
	Factor = 1.25
	// Widest is the relative half-width from which an interval does not agree: else
	// not knowing would be agreeing. Its direction counts however wide it is.
	Widest = 0.5
)

// Judge says whether a published ratio agrees with a measured one, and why.
// Ratios from 1/(1+margin) to 1+margin are equal to 1.
//
// It agrees when it lies in the interval widened by Factor, unless the two point
// in opposite directions, or the interval is wider than Widest. Else what counts is the
// direction: that of the interval is higher or lower when it leaves out 1, equal when
// it is within the margin.
func Judge(published float64, e stat.Estimate, margin float64) (Agreement, string) {
	switch {
	case e.Undefined != "":
		return NotMeasured, "no ratio: " + e.Undefined
	case !e.HasInterval():
		return NotMeasured, fmt.Sprintf("need n ≥ %d blocks, there are %d", stat.MinN, e.N)
	}
	said, found := side(published, published, margin), side(e.Lo, e.Hi, margin)
	inside := published >= e.Lo/Factor && published <= e.Hi*Factor && !opposite(said, found)
	wide := e.HalfWidth() > Widest
	switch {
	case inside && !wide:
		return Agrees, fmt.Sprintf("within a factor of %g of the interval", Factor)
	case found == unclear:
		return Undecided, "the interval has 1 in it, and is not within the margin"
	case said == found:
		return SameDirection, "both are " + string(found) + ", a factor of " + times(published, e)
	case inside:
		return Undecided, fmt.Sprintf("the interval is wider than a factor of %g either way", 1+Widest)
	}
	return Disagrees, fmt.Sprintf("published %s, measured %s", said, found)
}

// direction is on which side of 1 a ratio lies.
type direction string

const (
	higher  direction = "higher"
	lower   direction = "lower"
	equal   direction = "equal"
	unclear direction = "unclear"
)

func side(lo, hi, margin float64) direction {
	switch {
	case lo >= 1/(1+margin) && hi <= 1+margin:
		return equal
	case lo > 1:
		return higher
	case hi < 1:
		return lower
	}
	return unclear
}

func opposite(a, b direction) bool { return a == higher && b == lower || a == lower && b == higher }

// times says how far apart the two ratios are.
func times(published float64, e stat.Estimate) string {
	f := math.Exp(math.Abs(math.Log(published / e.Ratio)))
	return fmt.Sprintf("%.2g apart", f)
}
