package published

import (
	"fmt"
	"math"

	"tare/analyse/stat"
)

// Agreement is the result of comparing a published ratio with a measured one.
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
	// Factor widens a measured interval at both ends before the published ratio is compared
	// with it. The published figures have no intervals and come from another machine;
	// benchmarks of this kind differ by up to a quarter between machines. It is a convention,
	// and printed with the table.
	Factor = 1.25
	// Widest is the relative half-width above which an interval cannot agree: otherwise a
	// wide interval would agree with everything. Its direction counts at any width.
	Widest = 0.5
)

// Judge returns whether a published ratio agrees with a measured one, and why. Ratios from
// 1/(1+margin) to 1+margin count as equal to 1.
//
// It agrees if it lies in the interval widened by Factor, unless the two point in opposite
// directions or the interval is wider than Widest. Otherwise the direction counts: an
// interval is higher or lower if it excludes 1, and equal if it is within the margin.
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
		return Undecided, "the interval contains 1 and is not within the margin"
	case said == found:
		return SameDirection, "both are " + string(found) + ", a factor of " + times(published, e)
	case inside:
		return Undecided, fmt.Sprintf("the interval is wider than a factor of %g either way", 1+Widest)
	}
	return Disagrees, fmt.Sprintf("published %s, measured %s", said, found)
}

// direction is the side of 1 on which a ratio lies.
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

// times formats the factor between the two ratios.
func times(published float64, e stat.Estimate) string {
	f := math.Exp(math.Abs(math.Log(published / e.Ratio)))
	return fmt.Sprintf("%.2g apart", f)
}
