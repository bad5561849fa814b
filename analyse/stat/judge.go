package stat

import (
	"fmt"
	"slices"

	"tare/record"
)

// Verdict is what a comparison comes to.
type Verdict string

// Verdicts. Faster and Slower are better and worse than the baseline, by the
// response's own direction: more requests or fewer seconds are both faster.
// Higher and Lower are said of a response that has no better direction.
const (
	Faster     Verdict = "faster"
	Slower     Verdict = "slower"
	Higher     Verdict = "higher"
	Lower      Verdict = "lower"
	Equivalent Verdict = "equivalent"
	Undecided  Verdict = "undecided"
)

// Decided reports whether more blocks would be spent in vain on v.
func (v Verdict) Decided() bool { return v != Undecided && v != "" }

// Rule is the stopping rule of a study and the level of its intervals. Make it
// with NewRule.
//
// The intervals are repeated confidence intervals (C. Jennison and B. W.
// Turnbull, J. R. Stat. Soc. B 51 (1989) 305): each has the stricter level of
// NominalAlpha, so that with probability Confidence all those at all looks
// cover the truth. Whatever made the study stop, and whoever looked, the one
// that is printed covers at least that often. The price is width: a
// quarter more than one planned for a fixed number of blocks with many degrees
// of freedom, twice with two.
type Rule struct {
	Confidence float64 // over all looks: 0.95
	Width      float64 // relative half-width that is narrow enough
	Margin     float64 // ratios from 1/(1+Margin) to 1+Margin are equivalent
	Looks      []int   // blocks after which it is decided whether to go on, rising
	Fixed      int     // blocks, without looks in between; 0: the looks decide

	level float64
}

// NewRule returns a rule. Looks that are out of order, repeated or below 1 are put
// right.
func NewRule(confidence, width, margin float64, looks []int, fixed int) Rule {
	looks = slices.Clone(looks)
	slices.Sort(looks)
	looks = slices.DeleteFunc(slices.Compact(looks), func(k int) bool { return k < 1 })
	r := Rule{Confidence: confidence, Width: width, Margin: margin, Looks: looks, Fixed: fixed, level: confidence}
	if fixed == 0 {
		r.level = 1 - NominalAlpha(looks, 1-confidence)
	}
	return r
}

// Level is the nominal confidence of each single interval.
func (r Rule) Level() float64 { return r.level }

// Estimate is Summary.Estimate at the rule's level.
func (r Rule) Estimate(s Summary, prior Prior) Estimate { return s.Estimate(prior, r.level) }

// Judge gives the verdict on an estimate made by r, the reason in words, and
// whether measuring this comparison may stop. A difference that lies wholly
// inside the margin is equivalent, even when it is surely not nothing: the
// margin says that it does not matter.
//
// The margin is taken as a ratio both ways, so that a verdict does not depend
// on which of two levels is the baseline.
func (r Rule) Judge(e Estimate, better record.Better) (v Verdict, why string, stop bool) {
	switch {
	case e.N == 0:
		return Undecided, fmt.Sprintf("need n >= %d, have 0", MinN), false
	case e.Undefined != "":
		// More blocks will hardly make zeros positive, and stopping at the first
		// look is safe: there is no error to make.
		return Undecided, "no ratio: " + e.Undefined, true
	case !e.HasInterval():
		return Undecided, fmt.Sprintf("need n >= %d, have %d", MinN, e.N), false
	case e.Lo >= 1/(1+r.Margin) && e.Hi <= 1+r.Margin:
		return Equivalent, fmt.Sprintf("the whole interval is within %s of 1", percent(r.Margin)), true
	case e.Lo > 1:
		return direction(better, true), "the whole interval is above 1", true
	case e.Hi < 1:
		return direction(better, false), "the whole interval is below 1", true
	case e.HalfWidth() <= r.Width:
		return Undecided, fmt.Sprintf("the interval holds 1 and is within %s either way, as narrow as asked (%s)",
			percent(e.HalfWidth()), percent(r.Width)), true
	}
	why = fmt.Sprintf("the interval holds 1 and is %s wide either way", percent(e.HalfWidth()))
	if r.Width > 0 { // else a study of a fixed number of blocks asks for none
		why += "; " + percent(r.Width) + " is asked"
	}
	return Undecided, why, false
}

func direction(better record.Better, above bool) Verdict {
	switch {
	case better == record.Higher && above, better == record.Lower && !above:
		return Faster
	case better == record.Higher, better == record.Lower:
		return Slower
	case above:
		return Higher
	}
	return Lower
}

func percent(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }
