package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/ordered"
	"tare/record"
	"tare/workload"
)

// A trial with copies has the roles of each one after the other, with names of their own
// (workload.Copies). They pass one gate. docs/design/0036-copies.md.

// copyOf is the copy that a role belongs to, from 1.
func (t *set) copyOf(role string) int {
	if t.res.Copies < 2 {
		return 1
	}
	_, k := record.CopyOf(role)
	return k
}

// read has the workload read what a role printed. Of a copy, its series and warnings say which.
func (t *trial) read(o *output) (record.Reading, error) {
	if p := t.of(o.role); p == t.victim {
		r, err := p.load.Parse(strings.TrimPrefix(o.role, record.VictimRolePrefix), p.res.Params, o.reader())
		ofVictim(&r)
		return r, err //nolint:wrapcheck // the caller says whose output it is
	}
	role, k := o.role, t.copyOf(o.role)
	if k > 1 {
		role, _ = record.CopyOf(o.role)
	}
	v, err := workload.Dealt(t.load, t.res.Params, k, t.res.Copies)
	if err != nil {
		return record.Reading{}, err //nolint:wrapcheck // study.Parse has checked it
	}
	r, err := t.load.Parse(role, v, o.reader())
	if t.res.Copies < 2 {
		return r, err //nolint:wrapcheck // the caller says whose output it is
	}
	for i := range r.Series {
		r.Series[i].Labels = r.Series[i].Labels.With(record.LabelCopy, strconv.Itoa(k))
	}
	for i := range r.Warnings {
		r.Warnings[i].Text = fmt.Sprintf("copy %d: %s", k, r.Warnings[i].Text)
	}
	return r, err //nolint:wrapcheck // the caller says whose output it is
}

// readings are what the copies gave, the first copy's first.
type readings []record.Reading

func (c readings) add(k int, r record.Reading) { c[k-1].Add(r) }

// firstCopy is the label of the first copy's values.
const firstCopy = record.Labels(record.LabelCopy + "=1")

// together is one reading of all copies: rates and amounts are sums, percentiles are of the merged
// histogram, other figures are means, and those named _max are the largest. The responses of each
// copy are beside them, and those of the first have names of their own, also where it is alone, if
// the study says so.
func (c readings) together(responses []record.Response, named bool) record.Reading {
	if len(c) == 1 && !named {
		return c[0]
	}
	described := map[string]record.Response{}
	for _, r := range responses {
		described[r.Name] = r
	}
	var out record.Reading
	if len(c) == 1 {
		out = c[0]
	} else {
		out = c.combined(described)
	}
	for k := range c {
		for _, s := range c[k].Samples {
			if _, ok := described[s.Name]; !ok || s.Labels != "" {
				continue
			}
			if k == 0 {
				first := s
				first.Name = record.FirstPrefix + s.Name
				out.Samples = append(out.Samples, first)
			}
			if len(c) > 1 {
				s.Labels = record.MakeLabels(record.LabelCopy, strconv.Itoa(k+1))
				out.Samples = append(out.Samples, s)
			}
		}
	}
	for _, w := range c[0].Warnings {
		if name, ok := strings.CutPrefix(w.Code, record.BelowNoise); ok { // so is the first's own
			w.Code = record.BelowNoise + record.FirstPrefix + name
			out.Warnings = append(out.Warnings, w)
		}
	}
	return out
}

// combined has each figure of the copies once, and each histogram once for all and once for each.
func (c readings) combined(described map[string]record.Response) (out record.Reading) {
	merged := histograms{}
	var values ordered.Groups[seriesKey, record.Sample]
	for k := range c {
		out.Warnings = append(out.Warnings, c[k].Warnings...)
		for _, h := range c[k].Histograms {
			merged.add(h)
			h.Labels = h.Labels.With(record.LabelCopy, strconv.Itoa(k+1))
			out.Histograms = append(out.Histograms, h)
		}
		for _, s := range c[k].Samples {
			values.Add(seriesKey{s.Name, s.Labels}, s)
		}
	}
	out.Histograms = append(merged.encoded(), out.Histograms...)
	for key, of := range values.All() {
		s := of[0]
		s.Value, s.Original = atOnce(of, described[key.name]), ""
		if v, ok := merged.quantile(key); ok {
			s.Value = v
		}
		out.Samples = append(out.Samples, s)
	}
	return out
}

// atOnce is the figure of all copies: what happens in each adds up. An amount of which less is
// better is a price of each, such as its memory.
func atOnce(of []record.Sample, described record.Response) float64 {
	sum := mean(of) * float64(len(of))
	switch {
	case strings.HasSuffix(of[0].Name, "_max"):
		return slices.MaxFunc(of, func(a, b record.Sample) int { return cmp.Compare(a.Value, b.Value) }).Value
	case of[0].Unit == record.PerSecond, of[0].Unit == record.BytesPerSecond, of[0].Unit == record.Cores:
		return sum
	case (of[0].Unit == record.Count || of[0].Unit == record.Byte) && described.Better != record.Lower:
		return sum
	}
	return mean(of)
}

// overlapLeast is the part of the time that copies should be measured together.
const overlapLeast = 0.8

// keepOverlap says how much of the time the copies were measured together. Copies of which one ended
// before another was measured are no neighbours: the trial is void.
func (t *trial) keepOverlap() error {
	if t.res.Copies < 2 {
		return nil
	}
	var from []*endpoint
	for _, ep := range t.endpoints {
		if !ep.role.Background && !ep.begun.IsZero() && !record.IsVictim(ep.role.Name) {
			from = append(from, ep)
		}
	}
	if len(from) < t.res.Copies {
		return nil // a sandbox does not know when its command began
	}
	start := func(ep *endpoint) time.Time { return ep.begun.Add(ep.role.Warmup) }
	to := slices.Clone(from)
	slices.SortStableFunc(from, func(a, b *endpoint) int { return start(a).Compare(start(b)) })
	slices.SortStableFunc(to, func(a, b *endpoint) int { return a.ended.Compare(b.ended) })
	late, early := from[len(from)-1], to[0]
	both, whole := early.ended.Sub(start(late)), to[len(to)-1].ended.Sub(start(from[0]))
	if both <= 0 {
		return &failure{kind: "apart", role: late.role.Name, err: fmt.Errorf(
			"the copies did not run at the same time: %s ended %s before %s began to be measured; measure for longer",
			early.role.Name, (-both).Round(time.Millisecond), late.role.Name)}
	}
	part := both.Seconds() / whole.Seconds()
	t.rec.Samples = append(t.rec.Samples, record.Sample{Name: record.CopiesOverlap, Unit: record.Fraction, Kind: record.Value, Value: part})
	if part < overlapLeast {
		t.rec.Warnings = append(t.rec.Warnings, record.Warning{Code: record.CopiesApart, Text: fmt.Sprintf(
			"the copies were measured together for %.0f %% of the time from the first one's start to the last one's end; a load of a fixed time, or a longer one, keeps them together", 100*part)})
	}
	return nil
}
