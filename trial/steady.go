package trial

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/steady"
	"tare/param"
	"tare/record"
)

// steady looks at the series of a role that follow a response. The responses
// themselves stay as they are: nothing that was measured is dropped, and what a
// median or a percentile of the rest would have been, no series tells. What
// there is to doubt becomes a warning, for one response of the trial at most: the
// others come from the same events.
func (t *trial) steady(o *output, series []record.Series) {
	from, of := o.began, t.of(o.role)
	for i := range of.roles {
		if of.roles[i].Name == o.role {
			from += of.roles[i].Warmup
		}
	}
	var worst *record.Warning
	rank := len(t.res.Workload.Responses)
	for i := range series {
		s := &series[i]
		name := s.Labels.Get(record.LabelResponse)
		if name == "" {
			continue
		}
		at, v := measured(s, from)
		verdict := steady.Look(at, v, t.maker.Study.Stop.Margin)
		t.rec.Samples = append(t.rec.Samples, steadySamples(name, verdict)...)
		place := slices.Index(t.res.Workload.Responses, name)
		if w := t.doubt(of, name, verdict, at); w != nil && place >= 0 && place < rank {
			worst, rank = w, place
		}
	}
	if worst != nil {
		t.rec.Warnings = append(t.rec.Warnings, *worst)
	}
}

// measured cuts a series to the points whose interval lies in the measured time,
// and counts from its start. An interval that began a tenth of its length before
// counts as within: the two clocks are not the same.
func measured(s *record.Series, from time.Duration) (at []time.Duration, v []float64) {
	for i := range s.T {
		begin := min(from, s.T[i])
		if i > 0 {
			begin = s.T[i-1]
		}
		if s.T[i] > from && from-begin <= (s.T[i]-begin)/10 {
			at, v = append(at, s.T[i]-from), append(v, s.V[i])
		}
	}
	return at, v
}

func steadySamples(response string, v steady.Verdict) []record.Sample {
	labels := record.MakeLabels(record.LabelResponse, response)
	var out []record.Sample
	add := func(name string, u record.Unit, x float64) {
		out = append(out, record.Sample{Name: name, Labels: labels, Unit: u, Kind: record.Value, Value: x})
	}
	add(record.SteadyPoints, record.Count, float64(v.N))
	if v.TooShort {
		return out
	}
	add(record.EffectiveSamples, record.Count, v.ESS)
	if v.Steady {
		add(record.SteadyFrom, record.Second, v.From.Seconds())
		if v.Whole != 0 {
			add(record.SteadyChange, record.Fraction, v.Level/v.Whole)
		}
	}
	return out
}

// doubt is the warning that a verdict on points at those times deserves, or nil.
func (t *trial) doubt(of *part, response string, v steady.Verdict, at []time.Duration) *record.Warning {
	if v.TooShort {
		return nil
	}
	if !v.Steady {
		return &record.Warning{Code: record.NoSteadyState, Text: fmt.Sprintf("%s %s; measure for longer, or warm up for longer", response, v.Why)}
	}
	change, margin := 0.0, t.maker.Study.Stop.Margin
	if v.Whole != 0 {
		change = v.Level/v.Whole - 1
	}
	// The margin is a ratio both ways, as in a verdict.
	if v.From == 0 || change <= margin && 1+change >= 1/(1+margin) {
		return nil
	}
	side := "higher"
	if change < 0 {
		side = "lower"
	}
	from, cure := fmt.Sprintf("%.1f s of the measured time", v.From.Seconds()), "measure for longer"
	switch of.warmupType() {
	case param.Duration:
		warmup := (of.res.Params.Duration("warmup") + v.From + time.Second - 1).Truncate(time.Second)
		cure = fmt.Sprintf("set warmup: %ds", int(warmup.Seconds()))
	case param.Int: // runs of a program
		before := len(at)
		if i := slices.IndexFunc(at, func(d time.Duration) bool { return d > v.From }); i >= 0 {
			before = i
		}
		from, cure = fmt.Sprintf("run %d", before+1), fmt.Sprintf("set warmup: %d", of.res.Params.Int("warmup")+before)
	}
	text := fmt.Sprintf("%s is steady only from %s on, %.1f %% %s there than over all of it; %s", response, from, 100*math.Abs(change), side, cure)
	return &record.Warning{Code: record.WarmUpMeasured, Text: text}
}

// warmupType is how the workload counts its warm-up; "" if it has none.
func (p *part) warmupType() param.Type {
	for _, own := range p.load.Params() {
		if own.Name == "warmup" {
			return own.Type
		}
	}
	return ""
}
