package weigh

import (
	"fmt"
	"strings"

	"tare/analyse/stat"
	"tare/report/words"
)

// Cost says what isolation costs a row, with its interval: "2.90 × the cost (2.80 to 3.00)".
func (w *Row) Cost() string {
	switch {
	case w.Failure != "" && w.Said != "":
		return w.broken() + ": " + w.Said
	case w.Failure != "":
		return w.broken()
	}
	return w.first().Cost()
}

// broken says that a row has no figure, and why.
func (w *Row) broken() string {
	within, late := strings.CutPrefix(w.Failure, "did not end ")
	switch {
	case late && w.Baseline:
		return "does not end " + within
	case late:
		return "does not end there " + within
	}
	return "does not work: " + w.Failure
}

const (
	tooShort = "an interval takes 3 blocks" // stat.MinN
	tooFew   = "too few blocks to be sure"  // the interval excludes 1, mostly by chance: stat.Rule.Judge
)

// Cost says what isolation costs a figure.
func (f *Figure) Cost() string {
	if !(f.Estimate.Ratio > 0) {
		return "not measured"
	}
	cost, lo, hi := f.Estimate.Cost(f.Response.Better)
	if f.Response.Better != "lower" && f.Response.Better != "higher" && f.Called {
		return fmt.Sprintf("%s natively (%s)", words.Times(cost), span(lo, hi))
	}
	switch {
	case !f.Estimate.HasInterval() && cost < 1:
		return fmt.Sprintf("about %s faster; %s", words.Times(1/cost), tooShort)
	case !f.Estimate.HasInterval():
		return fmt.Sprintf("about %s the cost; %s", words.Times(cost), tooShort)
	case f.Called && cost >= 1:
		return fmt.Sprintf("%s the cost (%s)", words.Times(cost), span(lo, hi))
	case f.Called:
		return fmt.Sprintf("%s faster (%s)", words.Times(1/cost), span(1/hi, 1/lo))
	case f.Verdict == stat.Equivalent && hi <= 1:
		return words.Free
	case f.Verdict == stat.Equivalent:
		return words.Free + ": " + words.NoCostAbove(hi-1)
	case f.Estimate.Bound > 0:
		return words.NoCostAbove(f.Estimate.Bound)
	case lo > 1:
		return fmt.Sprintf("perhaps %s the cost (%s): %s", words.Times(cost), span(lo, hi), tooFew)
	case hi < 1:
		return fmt.Sprintf("perhaps %s faster (%s): %s", words.Times(1/cost), span(1/hi, 1/lo), tooFew)
	}
	return fmt.Sprintf("too noisy to say: between %s and %s", words.Ratio(lo), words.Times(hi))
}

// GoesOn says what is waited for where a cost looks like none already: the rule does not stop by
// the cost itself, but by the width of its interval. "" where nothing of that kind is waited for.
func GoesOn(rows []Row, width float64) string {
	var widest *Row
	for i := range rows {
		w := &rows[i]
		f := w.first()
		if w.Baseline || w.Failure != "" || f.Called || !f.Estimate.HasInterval() || f.Estimate.HalfWidth() <= width {
			continue
		}
		if widest == nil || f.Estimate.HalfWidth() > widest.first().Estimate.HalfWidth() {
			widest = w
		}
	}
	if widest == nil {
		return ""
	}
	return fmt.Sprintf("goes on until costs are known to ±%.3g %%; %s: ±%.1f %%", 100*width, widest.Sandbox, 100*widest.first().Estimate.HalfWidth())
}

func span(lo, hi float64) string { return words.Ratio(lo) + " to " + words.Ratio(hi) }

// Wide reports whether more time would say more of a row: it has no interval, or one that says too
// little.
func (w *Row) Wide() bool {
	f := w.first()
	return !w.Baseline && w.Failure == "" && f.Verdict == stat.Undecided && !(f.Estimate.Bound > 0)
}
