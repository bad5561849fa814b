// Package steady finds whether the series of a response within one trial is steady, from
// when on, and how many independent values it is worth. It computes with numbers only and
// knows no trials.
//
// The data path: 1. the points of the measured time become at most 64 batch
// means; 2. the line, decay or single step that explains most of their variance is found
// (change.go); 3. the autocorrelation of the residuals gives how much it would explain by
// chance; 4. if it explains more, the beginning is left out, up to a half, and the rest is
// judged again; 5. the level of the steady part, its slope (slope.go) and its effective
// sample size (ess.go) are computed from the points themselves.
//
// Within a window as short as a trial's, a drift and a slow wander around a
// fixed level can look the same. So there are three answers, not two: steady,
// not steady (more change than even the strongest plausible wander gives), and
// too short to tell.
package steady

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// MinPoints is the fewest points that are judged. With fewer, even a step of five
	// standard deviations looks like a slow wander.
	MinPoints = 16
	// minPart is the fewest points of a steady part.
	minPart = 10
	// minESS is the fewest independent values that may be called steady.
	minESS = 5
	// maxBatches bounds the batch means: enough for any change worth reporting. Longer
	// batches have less autocorrelation (C. Alexopoulos and A. F. Seila, "Output Data
	// Analysis", Handbook of Simulation, 1998, ch. 7).
	maxBatches = 64
)

// Verdict is the result for a series.
type Verdict struct {
	Steady   bool          // from From on
	TooShort bool          // it cannot be decided; Why says why
	From     time.Duration // where the steady part begins, from the start of the measured time; 0 if not Steady
	Level    float64       // mean of the steady part; of the last half if not Steady
	Whole    float64       // mean of all points, each weighed with its interval
	Slope    float64       // of the part that has Level, relative to Level, per second
	SlopeP   float64       // two-sided p-value of Slope, which allows for autocorrelation
	ESS      float64       // effective sample size of the part that has Level, from 1 to its number of points
	N        int           // points in the measured time
	Why      string        // a clause without a subject: "still falls by 3.1 % a second at the end"
}

// Look judges a series. Each v[i] is the mean over the interval that ends at
// t[i], which does not fall; the interval begins at t[i-1], the first one at the
// measured time's start, 0. Changes of the level by less than tolerance (relative: 0.03)
// do not count. NaN values are left out.
func Look(t []time.Duration, v []float64, tolerance float64) Verdict {
	s := newSeries(t, v)
	out := Verdict{N: len(s.v), SlopeP: 1}
	if len(s.v) == 0 {
		out.TooShort, out.Why = true, "has no points in the measured time"
		return out
	}
	out.Whole = s.mean()
	if len(s.v) < MinPoints {
		s.sum(&out)
		out.TooShort, out.Why = true, fmt.Sprintf("has %d points in the measured time, %d are needed", len(s.v), MinPoints)
		return out
	}
	whole := judge(s.v, tolerance)
	if whole.state == moves {
		for _, at := range s.cuts(whole) {
			rest := s.from(at)
			if j := judge(rest.v, tolerance); j.state == rests && len(rest.v) >= minPart {
				out.From = s.begin(at)
				return rest.rest(out, j)
			}
		}
	}
	switch whole.state {
	case rests:
		return s.rest(out, whole)
	case unclear:
		s.sum(&out)
		out.TooShort, out.Why = true, "wanders so slowly that a drift cannot be distinguished from chance"
		return out
	}
	half := s.from(len(s.v) / 2)
	half.sum(&out)
	out.Why = s.why(whole, out, tolerance)
	return out
}

// rest completes the verdict of a steady part.
func (s series) rest(out Verdict, j judgement) Verdict {
	s.sum(&out)
	if out.ESS < minESS && !j.small {
		out.TooShort, out.From = true, 0
		out.Why = fmt.Sprintf("is worth %.1f independent values, %d are needed", out.ESS, minESS)
		return out
	}
	out.Steady = true
	return out
}

// sum fills in the figures of a part.
func (s series) sum(out *Verdict) {
	out.Level = s.mean()
	out.ESS = ESS(s.v)
	out.Slope, out.SlopeP = s.slope()
}

// why describes the change: a slope that continues at the end, or else the jump.
func (s series) why(j judgement, half Verdict, tolerance float64) string {
	const sure = 0.01
	slope, p, part := half.Slope, half.SlopeP, s.from(len(s.v)/2)
	at := min(j.step*j.batch, len(s.v)-1)
	if j.step > 0 { // a slope across the step would measure the step
		part = s.from(at)
		slope, p = part.slope()
	}
	if j.step == 0 || len(part.v) >= minPart && p < sure && math.Abs(slope)*part.seconds() > tolerance {
		return fmt.Sprintf("still %s by %.1f %% a second at the end", verb(slope, "rises", "falls"), 100*math.Abs(slope))
	}
	return fmt.Sprintf("%s by %.1f %% at %.1f s of the measured time, and what follows is too short or not at rest",
		verb(j.jump, "rises", "falls"), 100*math.Abs(j.jump), s.begin(at).Seconds())
}

func verb(x float64, up, down string) string {
	if x < 0 {
		return down
	}
	return up
}

// series holds the valid points of a trial's measured time.
type series struct {
	t     []time.Duration
	v     []float64
	start time.Duration // of the first interval
}

func newSeries(t []time.Duration, v []float64) series {
	var s series
	for i := range min(len(t), len(v)) {
		if !math.IsNaN(v[i]) && math.Abs(v[i]) < 1e150 { // squares stay finite
			s.t, s.v = append(s.t, t[i]), append(s.v, v[i])
		}
	}
	return s
}

func (s series) from(i int) series {
	return series{t: s.t[i:], v: s.v[i:], start: s.begin(i)}
}

// begin returns where the interval of point i begins.
func (s series) begin(i int) time.Duration {
	if i == 0 {
		return s.start
	}
	return s.t[i-1]
}

func (s series) seconds() float64 {
	return (s.t[len(s.t)-1] - s.start).Seconds()
}

// mean weights each point with its interval, so that the mean of rates is the rate of the
// whole. If the times do not rise it is the plain mean.
func (s series) mean() float64 {
	sum, weight := 0.0, 0.0
	for i := range s.v {
		w := (s.t[i] - s.begin(i)).Seconds()
		if w < 0 {
			w = 0
		}
		sum += w * s.v[i]
		weight += w
	}
	if weight <= 0 {
		return mean(s.v)
	}
	return sum / weight
}

// cuts returns where the steady part may begin, the earliest first: after the largest step,
// and where MSER finds that leaving out more no longer narrows the mean (K. P. White, "An
// effective truncation heuristic for bias reduction in simulation output", Simulation 69,
// 1997; batches in place of its fives). At most half is left out: less than half would not
// represent the response.
func (s series) cuts(j judgement) []int {
	b := batches(s.v, j.batch)
	most := len(b) / 2
	best, least := 0, math.Inf(1)
	for d := range most + 1 {
		rest := b[d:]
		if x := squares(rest) / float64(len(rest)*len(rest)); x < least {
			best, least = d, x
		}
	}
	var out []int
	for _, d := range []int{j.step, j.step + 1, best, best + 1, most} {
		if d > 0 && d <= most {
			out = append(out, d*j.batch)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
