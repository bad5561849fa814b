package trial

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/internal/window"
	"tare/ordered"
	"tare/plan"
	"tare/record"
)

// Trials makes one trial of each cell: a single one as Trial does, those of a block in turns.
// Their sandboxes start together. Then each cell is weighed for a short time, as often as the plan
// says, in the given order and in the reverse order alternately, so that a drift of the host falls
// on all alike. A trial's figures are those of its turns together. A trial that fails ends, and the
// others go on. Where all sandboxes of a block have no room, each trial has all its turns before the next one
// starts: the plan, and the time that a block measures, stay the same.
func (m *Maker) Trials(ctx context.Context, nexts []plan.Next) []record.Made {
	turns := nexts[0].Turns
	if turns < 1 {
		t, evidence := m.Trial(ctx, nexts[0])
		return []record.Made{{Trial: t, Evidence: evidence}}
	}
	if !slices.Contains(m.Alone, m.Study.Strata[nexts[0].Stratum].Key) {
		return m.turns(ctx, nexts, turns)
	}
	var out []record.Made
	for i := range nexts {
		made := m.turns(ctx, nexts[i:i+1], turns)
		made[0].Warnings = append(made[0].Warnings, record.Warning{Code: "alone", Text: "there is no room for all sandboxes of a block at once, so the trial had its turns alone"})
		out = append(out, made...)
	}
	return out
}

// turns makes trials whose sandboxes run at the same time.
func (m *Maker) turns(ctx context.Context, nexts []plan.Next, turns int) []record.Made {
	out := make([]record.Made, len(nexts))
	running := make([]*trial, len(nexts))
	spent := make([]time.Duration, len(nexts)) // by each trial alone
	// part does a part of a trial. A failed one is over.
	part := func(i int, f func(t *trial)) {
		t := running[i]
		if t == nil {
			return
		}
		began := time.Now()
		f(t)
		over := t.rec.Status == record.Failed || len(t.readings) == turns
		if over {
			t.combine(len(nexts) > 1)
			out[i].Trial, out[i].Evidence = t.finish(ctx, nexts[i])
			running[i] = nil
		}
		spent[i] += time.Since(began)
		if over {
			out[i].Duration = spent[i]
		}
	}
	order := make([]int, len(nexts))
	for i, n := range nexts {
		order[i] = i
		running[i] = m.begin(n)
	}
	// What settles longest starts first: it settles while the others start.
	starting := slices.SortedStableFunc(slices.Values(order), func(a, b int) int {
		return cmp.Compare(m.settles(nexts[b].Cell), m.settles(nexts[a].Cell))
	})
	for _, i := range starting {
		part(i, func(t *trial) { t.attempt(ctx, t.open) })
	}
	for turn := 1; turn <= turns; turn++ {
		for _, i := range order {
			part(i, func(t *trial) { t.take(ctx, turn) })
		}
		slices.Reverse(order)
	}
	return out
}

// reading is what one turn gave.
type reading struct {
	samples    []record.Sample
	histograms []record.Histogram
	loaded     window.Span // from the beginning of the warm-up to the end of the load
}

// take takes one turn: it weighs what runs in the sandboxes once more.
func (t *trial) take(ctx context.Context, turn int) {
	started, measured, warned := len(t.rec.Samples), len(t.rec.Histograms), len(t.rec.Warnings)
	t.turn = turn
	t.attempt(ctx, func(ctx context.Context) error {
		if err := t.refresh(); err != nil {
			return err
		}
		return t.weigh(ctx)
	})
	t.closeSampler()
	t.keepOutputs(fmt.Sprintf(".%d", turn))
	t.gate = nil
	t.readings = append(t.readings, reading{slices.Clone(t.rec.Samples[started:]), slices.Clone(t.rec.Histograms[measured:]), t.loaded})
	t.rec.Samples, t.rec.Histograms = t.rec.Samples[:started], t.rec.Histograms[:measured]
	known := t.rec.Warnings[:warned:warned] // one warning of a kind is enough
	for _, w := range t.rec.Warnings[warned:] {
		if !slices.ContainsFunc(known[:warned], func(k record.Warning) bool { return k.Code == w.Code }) {
			known = append(known, w)
		}
	}
	t.rec.Warnings = known
}

// refresh drops the caches again for a workload that is measured without them.
func (t *trial) refresh() error {
	if t.turn == 1 || !t.dropsCaches() {
		return nil
	}
	return t.phase(PhaseLayOut, func() error { t.dropCaches(); return nil })
}

// combine makes one trial of its turns. docs/method/stopping.md, "Turns", says how each figure is had. Between the turns of a trial
// that has others beside it, these are weighed.
func (t *trial) combine(beside bool) {
	if t.rec.Status != record.OK {
		return
	}
	merged := t.mergeHistograms()
	responses := map[string]bool{}
	for _, r := range t.load.Responses(t.res.Params) {
		responses[r.Name], responses[record.FirstPrefix+r.Name] = true, t.res.Copies > 0
	}
	if t.victim != nil {
		for _, r := range t.victim.load.Responses(t.victim.res.Params) {
			responses[record.VictimPrefix+r.Name] = true
		}
	}
	var values ordered.Groups[seriesKey, record.Sample]
	for _, r := range t.readings {
		for _, s := range r.samples {
			values.Add(seriesKey{s.Name, s.Labels}, s)
		}
	}
	for k, of := range values.All() {
		s := of[0]
		switch v, ok := merged.quantile(k); {
		case ok:
			s.Value = v
		case responses[k.name] && (k.labels == "" || k.labels.Get(record.LabelCopy) != ""):
			s.Value = geometric(of)
		case strings.HasSuffix(k.name, "_max"):
			s.Value = slices.MaxFunc(of, func(a, b record.Sample) int { return cmp.Compare(a.Value, b.Value) }).Value
		default:
			s.Value = mean(of)
		}
		if len(of) > 1 {
			s.Original = ""
		}
		t.rec.Samples = append(t.rec.Samples, s)
		if k.labels == "" && responses[k.name] {
			for i, one := range of {
				one.Labels = record.MakeLabels(record.LabelTurn, strconv.Itoa(i+1))
				t.rec.Samples = append(t.rec.Samples, one)
			}
		}
	}
	if beside {
		t.keepIdle()
	}
	t.mergeSeries()
}

// keepIdle says what the sandboxes of each endpoint used between their turns, where they were to be
// idle. Others were weighed meanwhile. A collector on another machine is read at times of its own: two readings with a part of
// a turn between them say nothing of it.
func (t *trial) keepIdle() {
	last := map[record.Labels]record.Series{}
	used, passed := map[string]float64{}, map[string]time.Duration{}
	for _, s := range t.evidence.Series {
		if s.Name != record.CgroupCPU || len(s.T) == 0 {
			continue
		}
		if was, ok := last[s.Labels]; ok {
			end, n := s.Labels.Get(record.LabelEndpoint), len(was.T)-1
			if slices.ContainsFunc(t.readings, func(r reading) bool { return r.loaded.From < s.T[0] && was.T[n] < r.loaded.To }) {
				last[s.Labels] = s
				continue
			}
			used[end] += s.V[0] - was.V[n]
			passed[end] += s.T[0] - was.T[n]
		}
		last[s.Labels] = s
	}
	for _, end := range slices.Sorted(maps.Keys(used)) {
		if passed[end] <= 0 {
			continue
		}
		cores := used[end] / passed[end].Seconds()
		t.rec.Samples = append(t.rec.Samples, record.Sample{Name: record.IdleCPU, Labels: record.MakeLabels(record.LabelEndpoint, end), Unit: record.Cores, Kind: record.Value, Value: cores})
		if cores > record.IdleMost {
			t.rec.Warnings = append(t.rec.Warnings, record.Warning{Code: "idle", Text: fmt.Sprintf(
				"%s used %.2g %% of a core while idle; leave turns out", t.boxOf(end), 100*cores)})
		}
	}
}

// boxOf names the sandbox of an endpoint, and the endpoint where there are two.
func (t *trial) boxOf(end string) string {
	for _, ep := range t.endpoints {
		if ep.role.Name == end {
			if len(t.endpoints) > 1 {
				return ep.kind.Name() + " of " + end
			}
			return ep.kind.Name()
		}
	}
	return "the sandbox of " + end
}

func mean(of []record.Sample) float64 {
	sum := 0.0
	for _, s := range of {
		sum += s.Value
	}
	return sum / float64(len(of))
}

// geometric is the geometric mean, as comparisons are made by ratios; the arithmetic one if a
// value has no logarithm.
func geometric(of []record.Sample) float64 {
	sum := 0.0
	for _, s := range of {
		if !(s.Value > 0) {
			return mean(of)
		}
		sum += math.Log(s.Value)
	}
	return math.Exp(sum / float64(len(of)))
}

// histograms are those of all turns, added up.
type histograms map[seriesKey]*merged

type merged struct {
	record.Histogram
	sum *hdrhistogram.Histogram
}

// mergeHistograms adds those of the turns up and puts the sums into the record.
func (t *trial) mergeHistograms() histograms {
	all := histograms{}
	for _, r := range t.readings {
		for _, h := range r.histograms {
			all.add(h)
		}
	}
	t.rec.Histograms = append(t.rec.Histograms, all.encoded()...)
	return all
}

// add merges a histogram with those of its name and labels. One that cannot be read is left out,
// and if none can, the first stays as it is: then percentiles are means.
func (all histograms) add(h record.Histogram) {
	k := seriesKey{h.Name, h.Labels}
	if all[k] == nil {
		all[k] = &merged{Histogram: h}
	}
	all[k].add(h)
}

// encoded are the sums as a record has them, in the order of their names.
func (all histograms) encoded() (out []record.Histogram) {
	for _, k := range slices.SortedFunc(maps.Keys(all), seriesKey.compare) {
		m := all[k]
		if m.sum != nil {
			if b, err := m.sum.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
				m.Encoded = b
			}
		}
		out = append(out, m.Histogram)
	}
	return out
}

func (m *merged) add(h record.Histogram) {
	x, err := hdrhistogram.Decode(h.Encoded)
	switch {
	case err != nil:
	case m.sum == nil:
		m.sum = x
	default:
		m.sum.Merge(x)
	}
}

// quantile is the value of a response such as latency_p999, from the histogram latency.
func (all histograms) quantile(k seriesKey) (float64, bool) {
	name, digits, ok := strings.Cut(k.name, "_p")
	labels := k.labels
	if of, first := strings.CutPrefix(name, record.FirstPrefix); first && labels == "" && all[seriesKey{of, firstCopy}] != nil {
		name, labels = of, firstCopy
	}
	m := all[seriesKey{name, labels}]
	if !ok || m == nil || m.sum == nil || len(digits) < 2 {
		return 0, false
	}
	p, err := strconv.ParseFloat(digits[:2]+"."+digits[2:]+"0", 64)
	if err != nil {
		return 0, false
	}
	return float64(m.sum.ValueAtQuantile(p)) * m.Scale, true
}

// mergeSeries puts the points of a series that several turns have one behind the other.
func (t *trial) mergeSeries() {
	at := map[seriesKey]int{}
	out := t.evidence.Series[:0]
	for _, s := range t.evidence.Series {
		k := seriesKey{s.Name, s.Labels}
		if i, ok := at[k]; ok {
			out[i].T, out[i].V = append(out[i].T, s.T...), append(out[i].V, s.V...)
			continue
		}
		at[k] = len(out)
		out = append(out, s)
	}
	t.evidence.Series = out
}
