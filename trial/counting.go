package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"tare/collect"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/study"
	"tare/workload"
)

// A counting trial is like any other, but for one more collector: the one that
// counts system calls, and slows them. docs/design/0011-structural-cost.md.

// Uncounted returns the skip of all counting trials of a study, for a site that cannot count calls. It returns nil if the study
// has no counting trials.
func Uncounted(st *study.Study) []record.Skip {
	if !slices.ContainsFunc(st.Strata, func(s study.Stratum) bool { return s.Counting != nil }) {
		return nil
	}
	return []record.Skip{{Cell: study.CountingAll(), Reason: "system calls are not counted here; to count them, run the study on the machine itself (without --on, or with --host), or leave them out with calls: off"}}
}

// uncounted returns the skip of the counting trials if this site cannot count calls, with the reason.
func (m *Maker) uncounted() []record.Skip {
	out := Uncounted(m.Study)
	if m.Counting == nil || out == nil {
		return out
	}
	err := m.Counting.Check()
	if err == nil {
		return nil
	}
	out[0].Reason = err.Error()
	return out
}

// paramsOf are a cell's parameters: those of its counting trial may be the workload's own.
func paramsOf(w workload.Workload, cell record.Cell, v param.Values) param.Values {
	if c, ok := w.(workload.Counter); ok && study.IsCounting(cell) {
		return c.Counting(v)
	}
	return v
}

// counts tells whether this trial counts calls.
func (t *trial) counts() bool { return t.maker.Counting != nil && study.IsCounting(t.rec.Cell) }

// collectors are those of this trial.
func (t *trial) collectors() []collect.Collector {
	if t.counts() {
		return append(slices.Clip(t.maker.Collectors), t.maker.Counting)
	}
	return t.maker.Collectors
}

// countInterval is from one reading of the counts to the next: short enough that
// the edges of a load of a tenth of a second are seen, and some hundred readings
// of a long one.
func (t *trial) countInterval() time.Duration {
	return max(10*time.Millisecond, min(workload.Total(t.roles)/200, 100*time.Millisecond))
}

// keepCounts fails a counting trial that counted nothing: without its counts it is
// of no use, and the plan tries once more.
func (t *trial) keepCounts() {
	if t.rec.Status != record.OK {
		return
	}
	counted := false
	for _, s := range t.rec.Samples {
		switch {
		case s.Name == record.SystemCalls+record.RateSuffix && s.Value > 0:
			counted = true
		case s.Name == record.SystemCallsLost+record.RateSuffix && s.Value > 0:
			t.rec.Warnings = append(t.rec.Warnings, record.Warning{
				Code: "calls-lost", Text: fmt.Sprintf("%.3g system calls a second of %s have no known number, or came from more processes than there is room for; they are not counted", s.Value, s.Labels.Get(record.LabelEndpoint)),
			})
		}
	}
	if counted {
		t.keepCores()
		t.keepActive()
		t.keepIsolated()
		t.keep(plan.WindowSample, record.Second, (t.window.To - t.window.From).Seconds())
		return
	}
	why := "no system call was counted in the measured time; measure for longer"
	for _, w := range t.rec.Warnings {
		if w.Code == "collector" {
			why = w.Text
		}
	}
	t.rec.Status = record.Failed
	t.rec.Failure = &record.Failure{Phase: PhaseRun, Kind: "other", Reason: "system calls were not counted: " + why}
}

// keepCores sums up how many processors the isolated endpoint's own program used: so
// many of its calls are under way at once. The sample has no labels, so that
// whoever loads trials for an analysis has it.
func (t *trial) keepCores() {
	sum := 0.0
	for _, s := range t.rec.Samples {
		end, role := s.Labels.Get(record.LabelEndpoint), s.Labels.Get(record.LabelRole)
		if s.Name == record.CPUTime+record.RateSuffix && t.isolates(end) && (role == string(record.RoleWorkload) || role == string(record.RoleUnattributed)) {
			sum += s.Value
		}
	}
	t.keep(plan.CoresSample, record.Cores, sum)
}

// keep adds a figure of the trial as a whole, if there is one.
func (t *trial) keep(name string, u record.Unit, v float64) {
	if v > 0 {
		t.rec.Samples = append(t.rec.Samples, record.Sample{Name: name, Unit: u, Kind: record.Value, Value: v})
	}
}

// keepActive says by how much the rate of calls was higher while the program was
// at work than over the whole window: a tool that takes a while to begin counts
// its operations from later on than we count calls. Intervals between readings at
// the window's edges with less than a tenth of the rate at work are not of it;
// slower ones are, for on a busy machine the operations slow down with the calls.
func (t *trial) keepActive() {
	sums := map[time.Duration]float64{}
	for i := range t.evidence.Series {
		s := &t.evidence.Series[i]
		if s.Name != record.SystemCalls || !t.isolates(s.Labels.Get(record.LabelEndpoint)) {
			continue
		}
		for k, at := range s.T {
			if at >= t.window.From && at <= t.window.To {
				sums[at] += s.V[k]
			}
		}
	}
	t.keep(plan.ActiveSample, record.Fraction, active(sums))
}

// beside is the part of all calls that those before the work, and after it, are
// less than where they are to be left out.
const beside = 0.05

// active is the rate of a counter within the edges over its rate as a whole; 0 for
// too few readings.
func active(sums map[time.Duration]float64) float64 {
	at := slices.Sorted(maps.Keys(sums))
	if len(at) < 4 {
		return 0
	}
	rates := make([]float64, len(at)-1)
	for i := range rates {
		rates[i] = (sums[at[i+1]] - sums[at[i]]) / (at[i+1] - at[i]).Seconds()
	}
	idle := atWork(at, rates) / 10
	// What is called before an idle stretch, and is little, is the program's loading.
	total := sums[at[len(at)-1]] - sums[at[0]]
	first, last := 0, len(rates)-1
	for i := 0; i < last && sums[at[i]]-sums[at[0]] < beside*total; i++ {
		if rates[i] < idle {
			first = i + 1
		}
	}
	for i := last; i > first && sums[at[len(at)-1]]-sums[at[i+1]] < beside*total; i-- {
		if rates[i] < idle {
			last = i - 1
		}
	}
	if last < first {
		first, last = 0, len(rates)-1
	}
	// In the interval beside an idle one the work began or ended.
	if first > 0 && first < last {
		first++
	}
	if last < len(rates)-1 && first < last {
		last--
	}
	mean := func(i, j int) float64 { return (sums[at[j]] - sums[at[i]]) / (at[j] - at[i]).Seconds() }
	whole := mean(0, len(at)-1)
	if whole <= 0 {
		return 0
	}
	return mean(first, last+1) / whole
}

// atWork is the rate that a tenth of the time has or exceeds. A program may be idle
// for most of a short window; a single interval may be faster than any work is, such
// as that between two readings close together.
func atWork(at []time.Duration, rates []float64) float64 {
	order := make([]int, len(rates))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(rates[b], rates[a]) })
	var sum time.Duration
	for _, i := range order {
		if sum += at[i+1] - at[i]; sum >= (at[len(at)-1]-at[0])/10 {
			return rates[i]
		}
	}
	return 0
}

// isolates reports whether a role of this trial is an isolated endpoint.
func (t *trial) isolates(end string) bool {
	return t.of(end).isolates(end)
}

// keepIsolated says which ends those are: an analysis cannot tell in a trial that
// ran natively.
func (t *trial) keepIsolated() {
	for i := range t.roles {
		if name := t.roles[i].Name; t.isolates(name) {
			t.rec.Samples = append(t.rec.Samples, record.Sample{Name: plan.IsolatedSample, Unit: record.Count, Kind: record.Value, Value: 1,
				Labels: record.MakeLabels(record.LabelEndpoint, name, record.LabelSandbox, t.res.Sandbox)})
		}
	}
}
