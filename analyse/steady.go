package analyse

import (
	"maps"
	"slices"
	"strings"

	"tare/analyse/stat"
	"tare/record"
)

// Steadiness is what the good trials of a cell say of the time within them:
// whether the response had come to rest. It qualifies the trials and is not part of
// any interval: the effective samples within a trial are never n.
type Steadiness struct {
	Trials    int     `json:"trials"` // that were looked at
	Steady    int     `json:"steady"`
	NotSteady int     `json:"not_steady"`
	TooShort  int     `json:"too_short"`         // to tell
	Late      int     `json:"late,omitempty"`    // of Steady: not from the start of the measured time
	From      float64 `json:"from"`              // s into the measured time, median over Steady
	Change    float64 `json:"change"`            // level of the steady part over that of all, median over Steady; 0 without
	Effective float64 `json:"effective_samples"` // median over those not too short; 0 without
	Points    float64 `json:"points"`            // of a trial's series, median
	Why       string  `json:"why,omitempty"`     // what the first trial without a steady state did
}

// steadiness sums up what the trials that count of a cell told about a response;
// nil when none has.
func steadiness(trials map[int]*record.Trial, response string) *Steadiness {
	var s Steadiness
	var from, change, effective, points []float64
	for _, block := range slices.Sorted(maps.Keys(trials)) {
		t := trials[block]
		of := func(name string) (float64, bool) { return labelled(t, name, response) }
		n, looked := of(record.SteadyPoints)
		if !looked {
			continue
		}
		s.Trials++
		points = append(points, n)
		ess, told := of(record.EffectiveSamples)
		if !told {
			s.TooShort++
			continue
		}
		effective = append(effective, ess)
		at, steady := of(record.SteadyFrom)
		if !steady {
			s.NotSteady++
			if s.Why == "" {
				s.Why = whyNotSteady(t, response)
			}
			continue
		}
		s.Steady++
		from = append(from, at)
		if at > 0 {
			s.Late++
		}
		if x, ok := of(record.SteadyChange); ok {
			change = append(change, x)
		}
	}
	if s.Trials == 0 {
		return nil
	}
	s.Points, s.Effective, s.From, s.Change = median(points), median(effective), median(from), median(change)
	return &s
}

// median is 0 of nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return stat.Median(v)
}

// labelled is a sample about a response, which must be a number.
func labelled(t *record.Trial, name, response string) (float64, bool) {
	i := slices.IndexFunc(t.Samples, func(x record.Sample) bool {
		return x.Name == name && x.Labels.Get(record.LabelResponse) == response
	})
	if i < 0 || t.Samples[i].Value-t.Samples[i].Value != 0 { // NaN or infinite
		return 0, false
	}
	return t.Samples[i].Value, true
}

// whyNotSteady is the clause of the trial's warning, without the advice.
func whyNotSteady(t *record.Trial, response string) string {
	for _, w := range t.Warnings {
		if rest, ok := strings.CutPrefix(w.Text, response+" "); ok && w.Code == record.NoSteadyState {
			clause, _, _ := strings.Cut(rest, ";")
			return clause
		}
	}
	return ""
}
