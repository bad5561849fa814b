package stat

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/record"
)

// Verdict is the result of a comparison.
type Verdict string

// Verdicts. Faster and Slower mean better and worse than the baseline by the response's
// direction: more requests and fewer seconds are both faster. Higher and Lower are for a
// response without a better direction.
const (
	Faster     Verdict = "faster"
	Slower     Verdict = "slower"
	Higher     Verdict = "higher"
	Lower      Verdict = "lower"
	Equivalent Verdict = "equivalent"
	Undecided  Verdict = "undecided"

	// Bounded is how reports show an undecided estimate that has a Bound. No analysis has it.
	Bounded Verdict = "bounded"
	// TooFew is how reports show one of fewer than MinN blocks, which says nothing of noise. No analysis has it.
	TooFew Verdict = "too few blocks"
)

// perhaps begins the verdicts that reports show of an undecided estimate whose interval lies on one
// side of 1: it rests on too few blocks with too much scatter. No analysis has them.
const perhaps = "perhaps "

// Shown returns how reports show a verdict on e: as itself, as TooFew, as Bounded, or as perhaps a difference.
func (e Estimate) Shown(v Verdict, better record.Better) Verdict {
	switch {
	case v != Undecided:
		return v
	case !e.HasInterval() && e.Ratio > 0 && e.Undefined == "":
		return TooFew
	case e.Bound > 0:
		return Bounded
	case e.Lo > 1, e.HasInterval() && e.Hi < 1:
		return perhaps + direction(better, e.Lo > 1)
	}
	return v
}

// Perhaps returns the difference that a shown verdict is perhaps; false for all other verdicts.
func (v Verdict) Perhaps() (of Verdict, is bool) {
	s, is := strings.CutPrefix(string(v), perhaps)
	return Verdict(s), is
}

// AllPerhaps are the verdicts that are perhaps a difference.
func AllPerhaps() []Verdict {
	return []Verdict{perhaps + Faster, perhaps + Slower, perhaps + Higher, perhaps + Lower}
}

// Decided reports whether v needs no more blocks.
func (v Verdict) Decided() bool { return v != Undecided && v != "" }

// Rule is the stopping rule of a study and the level of its intervals. Make it
// with NewRule.
//
// A comparison stops when its interval is narrow, not when it excludes 1. A rule that
// stops at a clear result stops where chance exaggerates, and the exaggerations add up
// in a mean over many comparisons. The width of an interval comes from the scatter of
// the blocks, which is independent of their mean.
//
// How narrow is enough depends on how large the effect is: see Enough. That must not be
// read from the mean either, so it is read from the first block alone. Whatever that
// block decided, the other blocks are unbiased. Part leaves it out where many
// comparisons are averaged.
type Rule struct {
	Confidence float64 // that an interval covers the truth, whenever the study stopped: 0.95
	Width      float64 // relative half-width that is narrow enough
	Margin     float64 // ratios from 1/(1+Margin) to 1+Margin are equivalent
	Looks      []int   // numbers of blocks after which the study decides whether to go on, rising
	Fixed      int     // number of blocks, without looks in between; 0: the looks decide
	Clear      bool    // a comparison stops where its verdict is clear, or hopeless (clear.go)
}

// Constants of the rule. docs/method/stopping.md says what they cost and what they gain.
const (
	// relative is the half-width, as a part of the effect, that is narrow enough for a
	// large effect: for a ratio of 2, an interval from 1.68 to 2.38 is enough. Before
	// relativeFrom blocks the part is smaller, so noise in the first block hardly affects
	// when to stop. Before firstFrom blocks the effect is not considered.
	relative, relativeFrom   = 0.25, 6
	relativeFirst, firstFrom = 0.1, 4
	// widest is the half-width that is too wide for any effect, however large.
	widest = 0.2
	// callFrom is the number of blocks below which a noisy comparison has no verdict. It
	// is noisy if its interval is wider than noisy, and wider than a quarter of the effect.
	// The means of three such blocks that exclude 1 are mostly exaggerated.
	callFrom, noisy = 5, 0.1
	// early is the share of the wanted error rate that an interval gets if it is narrow
	// enough. A study stops where scatter looks small, so the interval is too narrow. Then
	// up to 10 % of plain 95 % intervals miss, and 6.5 % in the mean over scatters and
	// effects. With this share and late, up to 6.1 % miss, and 4.0 % in the mean. Simulated
	// with Student's t: one comparison alone, scatter of 0.3 to 30 %, effects of 0 to 640 %.
	// With neighbours to learn from, all are nearer to the level.
	early = 0.5
	// late is the same for all other intervals of a study that chooses when to stop. It
	// compensates for those that are narrow by chance and still go on.
	late = 0.9
	// small corrects the variance of a comparison that stopped before the last look: a study
	// stops where it comes out small. In a mean, these errors add up. With small over the degrees of
	// freedom more, means of nine comparisons whose trials scatter by 2 % hold the truth in 94.3 and
	// 95.9 % (effects of 5 and 10 %) instead of 93.2 %. Where neighbours decide about
	// stopping as well, through the prior, it counts for less.
	small = 4.0
)

// NewRule returns a rule. It sorts the looks and drops repeated ones and those below 1.
func NewRule(confidence, width, margin float64, looks []int, fixed int) Rule {
	looks = slices.Clone(looks)
	slices.Sort(looks)
	looks = slices.DeleteFunc(slices.Compact(looks), func(k int) bool { return k < 1 })
	return Rule{Confidence: confidence, Width: width, Margin: margin, Looks: looks, Fixed: fixed}
}

// adaptive reports whether the number of blocks depends on what was measured.
func (r Rule) adaptive() bool { return r.Fixed == 0 && len(r.Looks) > 1 }

// Level is the nominal confidence of an interval that is narrow enough for the study to
// stop. It is Confidence if the number of blocks is fixed, and higher if the study chooses
// it. All other intervals use little more than Confidence, because only time, or the last
// look, ended them.
func (r Rule) Level() float64 {
	if r.Clear {
		return r.clearLevel(r.Looks[len(r.Looks)-1])
	}
	if r.adaptive() {
		return 1 - early*(1-r.Confidence)
	}
	return r.Confidence
}

// Estimate is Summary.Estimate at the rule's level.
func (r Rule) Estimate(s Summary, prior Prior) Estimate {
	if r.Clear {
		return s.Estimate(prior, r.clearLevel(s.N))
	}
	e := s.Estimate(prior, r.Level())
	if r.adaptive() && !r.enough(s, e) {
		e = s.Estimate(prior, 1-late*(1-r.Confidence))
	}
	return e
}

// Part is the estimate that goes into a mean over several comparisons. It leaves out the
// first block where that may have decided how many blocks there are. Its variance is
// corrected for early stopping (see small), and not moderated: moderation shrinks the noisiest
// comparisons, which make up most of the error of a mean. Together, the variances have as many degrees of freedom as a mean needs. Its
// level is that of the comparison's own interval.
//
// With Clear, the mean decided how many blocks there are. Only those before the first look are unbiased,
// so a mean over comparisons has no others.
func (r Rule) Part(s Summary, prior Prior) Estimate {
	if r.Clear && s.N > MinN && s.Undefined == "" {
		return Summarise(s.Opening[:]).Estimate(Prior{}, r.Confidence)
	}
	e := r.Estimate(s, prior)
	short := r.Short(e) && !r.Clear
	own := prior.own(float64(s.N - 1))
	if r.adaptive() && s.N >= firstFrom {
		s = s.withoutFirst()
	}
	if short {
		s.Var *= 1 + small*own/float64(s.N-1)
	}
	return s.Estimate(Prior{}, e.Confidence)
}

// Short reports whether a comparison stopped before the last look by what it measured: in a mean of many
// such, or beside another result, its scatter is too small. One that time ended did not choose.
func (r Rule) Short(e Estimate) bool {
	if !r.adaptive() || !e.HasInterval() || e.N >= r.Looks[len(r.Looks)-1] {
		return false
	}
	return r.Clear || e.Confidence == r.Level()
}

// Enough reports whether a comparison needs no more blocks: its interval is no wider
// than Width, or than a part of the effect that the first block showed: a tenth from four
// blocks on, a quarter from six. With Clear, it has a verdict.
func (r Rule) Enough(s Summary, prior Prior) bool {
	if r.Clear {
		return r.enough(s, r.Estimate(s, prior))
	}
	return r.enough(s, s.Estimate(prior, r.Level()))
}

func (r Rule) enough(s Summary, e Estimate) bool {
	switch {
	case e.N == 0:
		return false
	case e.Undefined != "":
		// More blocks will hardly make zeros positive, and no verdict can be wrong.
		return true
	case !e.HasInterval():
		return false
	case r.Clear:
		return r.clearly(e)
	}
	part := 0.0
	switch {
	case e.N >= relativeFrom:
		part = relative
	case e.N >= firstFrom:
		part = relativeFirst
	}
	return e.HalfWidth() <= r.wanted(s, part)
}

// wanted is the half-width that is narrow enough, where a part of the effect is.
func (r Rule) wanted(s Summary, part float64) float64 {
	width := r.Width
	if r.Clear {
		width = r.Margin / 2
	}
	return math.Max(width, math.Min(widest, math.Expm1(part*math.Abs(s.first()))))
}

// Judge gives the verdict on an estimate made by r and the reason in words. A
// difference that lies wholly inside the margin is equivalent, even when it is certainly
// not zero: the margin says that it does not matter.
//
// The margin is taken as a ratio both ways, so that a verdict does not depend
// on which of two levels is the baseline.
func (r Rule) Judge(e Estimate, better record.Better) (v Verdict, why string) {
	switch {
	case e.N == 0:
		return Undecided, fmt.Sprintf("need n >= %d, have 0", MinN)
	case e.Undefined != "":
		return Undecided, "no ratio: " + e.Undefined
	case !e.HasInterval():
		return Undecided, fmt.Sprintf("need n >= %d, have %d", MinN, e.N)
	case r.within(e):
		return Equivalent, fmt.Sprintf("the whole interval is within %s of 1", percent(r.Margin))
	case (e.Lo > 1 || e.Hi < 1) && r.tooFew(e):
		return Undecided, fmt.Sprintf("too few blocks (%d) for so much scatter; no verdict before %d blocks", e.N, callFrom)
	case e.Lo > 1:
		return direction(better, true), "the whole interval is above 1"
	case e.Hi < 1:
		return direction(better, false), "the whole interval is below 1"
	}
	why = fmt.Sprintf("the interval holds 1 and is %s wide either way", percent(e.HalfWidth()))
	switch {
	case r.Width > 0 && e.HalfWidth() > r.Width: // a study with a fixed number of blocks asks for no width
		why += "; " + percent(r.Width) + " is asked"
	case r.Width > 0:
		why += ", as narrow as asked (" + percent(r.Width) + ")"
	}
	return Undecided, why
}

// bounded is the largest cost whose absence is worth saying, as a share of the baseline.
const bounded = 0.1

// Bound returns the share of the baseline above which an undecided estimate surely costs
// nothing: the upper end of the interval, taken as a cost. It returns 0 if the estimate is
// decided, if more is neither better nor worse, and if the bound is above a tenth or rests
// on too few blocks of a noisy comparison.
func (r Rule) Bound(e Estimate, better record.Better, v Verdict) float64 {
	if v != Undecided || better != record.Higher && better != record.Lower || !e.HasInterval() || r.tooFew(e) {
		return 0
	}
	if _, _, hi := e.Cost(better); hi > 1 && hi <= 1+bounded {
		return hi - 1
	}
	return 0
}

// tooFew reports whether a difference rests on too few blocks of a noisy comparison.
func (r Rule) tooFew(e Estimate) bool {
	return e.N < callFrom && e.HalfWidth() > math.Max(noisy, math.Expm1(relative*math.Abs(math.Log(e.Ratio))))
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
