package weigh

import (
	"fmt"
	"math"
	"strconv"

	"tare/analyse/stat"
	"tare/record"
)

// worse is the row's interval as a cost: more is worse, whatever the response.
func (w *Row) worse() (cost, lo, hi float64) {
	e := w.Estimate
	if w.Better == record.Higher {
		if !e.HasInterval() {
			return 1 / e.Ratio, 0, 0
		}
		return 1 / e.Ratio, 1 / e.Hi, 1 / e.Lo
	}
	return e.Ratio, e.Lo, e.Hi
}

// bound is the greatest upper end of an interval that is worth saying by itself: a cost of at most
// a tenth is something to plan with, even where it is not known whether there is one.
const bound = 1.1

// Cost says what isolation costs a row, with its interval: "2.9 x the cost (2.8 to 3.0)".
func (w *Row) Cost() string {
	if w.Failure != "" {
		return "does not work: " + w.Failure
	}
	if !(w.Estimate.Ratio > 0) {
		return "not measured"
	}
	cost, lo, hi := w.worse()
	switch {
	case !w.Estimate.HasInterval():
		return fmt.Sprintf("%s x the cost so far; an interval takes %d blocks", ratio(cost), stat.MinN)
	case w.Called && cost >= 1:
		return fmt.Sprintf("%s x the cost (%s)", ratio(cost), span(lo, hi))
	case w.Called:
		return fmt.Sprintf("%s x faster (%s)", ratio(1/cost), span(1/hi, 1/lo))
	case hi <= 1:
		return "no cost"
	case w.Verdict == stat.Equivalent || lo <= 1 && hi <= bound:
		return "no cost above " + percent(hi-1)
	}
	return fmt.Sprintf("too noisy to say: between %s and %s x", ratio(lo), ratio(hi))
}

func span(lo, hi float64) string { return ratio(lo) + " to " + ratio(hi) }

// ratio writes three digits, and no more than two decimals.
func ratio(x float64) string {
	switch a := math.Abs(x); {
	case a < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// percent rounds up to a tenth: it is the end of a bound.
func percent(x float64) string {
	p := math.Ceil(1000*x-1e-9) / 10
	if p >= 10 {
		p = math.Ceil(p)
	}
	return strconv.FormatFloat(p, 'f', -1, 64) + " %"
}
