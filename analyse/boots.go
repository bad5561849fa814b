package analyse

import (
	"slices"
	"time"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// Boot is how the sandboxes of one treatment started, step by step: medians over
// its good trials. Only kinds that tell their steps have one.
type Boot struct {
	Treatment string        `json:"treatment"`
	Cell      record.Cell   `json:"cell"`             // of the treatment
	Levels    record.Cell   `json:"levels,omitempty"` // that tell strata apart, where sandboxes are launched: how many at once, on how full a node
	Starts    int           `json:"starts"`           // sandboxes started in those trials
	Start     time.Duration `json:"start"`            // the whole of a start, with what is in no step
	Lo        time.Duration `json:"lo,omitempty"`     // of its 95 % interval, as PhaseTime has it
	Hi        time.Duration `json:"hi,omitempty"`
	Pulled    float64       `json:"pulled,omitempty"` // bytes of the image that the node pulled for each start (record.SandboxPulled); 0: none, or not known
	Phases    []PhaseTime   `json:"phases"`           // in the order of the start; Trials counts starts, or trials of launches
}

// bootKey is a treatment in all strata, or with launched sandboxes in one of them, from 1 on.
type bootKey struct {
	stratum   int
	treatment string
}

// bootTimes are those of one bootKey.
type bootTimes struct {
	starts int
	start  []time.Duration
	pulled []float64 // bytes
	phases phaseTimes
}

// boots sums up the samples record.SandboxBoot, in the order of the strata and treatments. The
// other endpoint of a workload, in a sandbox of another kind, is left out. A trial that launches
// sandboxes counts with its medians: what starts at once, or one after another on a machine, is not independent.
func (a *analysis) boots(r *Result) []Boot {
	of, in := a.treatmentOf(), a.stratumOf()
	by := make(map[bootKey]*bootTimes)
	for _, t := range a.trials {
		key, ok := of[t.Cell.Key()]
		if !ok || t.Status != record.OK || a.isSentinel(t.Cell) || study.IsCounting(t.Cell) {
			continue
		}
		own, launched := bootsIn(t)
		if len(own.phases) == 0 && len(own.start) == 0 {
			continue
		}
		k := bootKey{treatment: key}
		if launched {
			k.stratum = in[t.Cell.Key()] + 1
			own = own.medians()
		}
		if by[k] == nil {
			by[k] = new(bootTimes)
		}
		by[k].add(own)
	}
	var out []Boot
	var shared []record.Cell // of each, or nil
	for s := range len(a.study.Strata) + 1 {
		for _, t := range r.Treatments {
			b := by[bootKey{s, t.Key}]
			if b == nil || len(b.phases) == 0 {
				continue
			}
			out = append(out, b.sum(t))
			shared = append(shared, nil)
			if s > 0 {
				shared[len(shared)-1] = a.study.Strata[s-1].Shared
			}
		}
	}
	mixed := slices.ContainsFunc(shared, func(c record.Cell) bool { return c == nil })
	for i, levels := range telling(shared) {
		if out[i].Levels = levels; mixed && shared[i] != nil {
			out[i].Levels = withWorkload(levels, shared[i])
		}
	}
	return out
}

// withWorkload adds the workload of launched sandboxes to the levels that tell them apart: others start for every workload.
func withWorkload(levels, shared record.Cell) record.Cell {
	load, known := shared.Get(study.FactorWorkload)
	if _, told := levels.Get(study.FactorWorkload); told || !known {
		return levels
	}
	return slices.Insert(slices.Clone(levels), 0, record.Level{Factor: study.FactorWorkload, Value: load})
}

// bootsIn are the starts of one trial, and whether it launched them.
func bootsIn(t *record.Trial) (b bootTimes, launched bool) {
	box, _ := t.Cell.Get(study.FactorSandbox)
	for i := range t.Samples {
		s := &t.Samples[i]
		if s.Labels == "" || s.Labels.Get("sandbox") != box || !(s.Value >= 0) {
			continue
		}
		switch s.Name {
		case record.SandboxBoot:
			b.phases.add(s.Labels.Get(record.LabelPhase), seconds(s.Value))
		case record.SandboxPulled:
			b.pulled = append(b.pulled, s.Value)
		case record.SandboxLaunch, "sandbox_start":
			launched = launched || s.Name == record.SandboxLaunch
			b.start = append(b.start, seconds(s.Value))
		}
	}
	b.starts = len(b.start)
	return b, launched
}

// medians has one time in the place of several.
func (b *bootTimes) medians() bootTimes {
	out := bootTimes{starts: b.starts, pulled: b.pulled}
	if len(b.start) > 0 {
		out.start = []time.Duration{medianTime(b.start)}
	}
	for _, p := range b.phases {
		out.phases.add(p.name, medianTime(p.times))
	}
	return out
}

func (b *bootTimes) add(more bootTimes) {
	b.starts += more.starts
	b.start, b.pulled = append(b.start, more.start...), append(b.pulled, more.pulled...)
	for _, p := range more.phases {
		for _, t := range p.times {
			b.phases.add(p.name, t)
		}
	}
}

// sum is what is told of the starts of a treatment.
func (b *bootTimes) sum(t Treatment) Boot {
	x := Boot{Treatment: t.Key, Cell: t.Cell, Starts: b.starts, Start: medianTime(b.start), Phases: b.phases.medians()}
	x.Lo, x.Hi = medianWithin(b.start)
	if len(b.pulled) > 0 {
		x.Pulled = stat.Median(b.pulled)
	}
	pod := slices.ContainsFunc(x.Phases, func(p PhaseTime) bool { return p.Name == podScheduled })
	for i := range x.Phases {
		p := &x.Phases[i]
		p.Lo, p.Hi = medianWithin(b.phases[i].times)
		if pod {
			p.Fine, p.Poll = finePod(p.Name)
		}
	}
	return x
}

// podScheduled is a step that only pods have.
const podScheduled = "schedule"

// How fine the steps of a pod's start are known.
const (
	// heardLate is how late events are heard, and so how exact a step is whose begin or end is one.
	heardLate = 10 * time.Millisecond
	// volumesPoll is how often a kubelet looks whether the volumes of a new pod are there: at once, when they
	// never are, and then again (podAttachAndMountRetryInterval in k8s.io/kubernetes/pkg/kubelet/volumemanager).
	volumesPoll = 300 * time.Millisecond
	// statusPoll is how often it looks at its containers, before it tells that a pod is Ready
	// (genericPlegRelistPeriod in k8s.io/kubernetes/pkg/kubelet).
	statusPoll = time.Second
)

// finePod says how fine a step of a pod's start is known, and how often the kubelet looks whether it has ended: 0 if nobody
// polls.
func finePod(step string) (fine, poll time.Duration) {
	switch step {
	case "admit", "agent":
		return time.Microsecond, 0 // one clock at both ends
	case "sandbox":
		return heardLate, volumesPoll
	case "ready":
		return heardLate, statusPoll
	}
	return heardLate, 0
}

// telling are the levels that not all of some cells have. A nil cell has none, and is not asked.
func telling(cells []record.Cell) []record.Cell {
	out := make([]record.Cell, len(cells))
	for i, c := range cells {
		for _, l := range c {
			if slices.ContainsFunc(cells, func(o record.Cell) bool {
				v, _ := o.Get(l.Factor)
				return o != nil && v != l.Value
			}) {
				out[i] = append(out[i], l)
			}
		}
	}
	return out
}

// stratumOf has the strata of cells, by Cell.Key.
func (a *analysis) stratumOf() map[string]int {
	in := make(map[string]int)
	for i := range a.study.Strata {
		for _, c := range a.study.Strata[i].Cells {
			in[c.Key()] = i
		}
	}
	return in
}

// treatmentOf has the keys of the treatments of cells, by Cell.Key.
func (a *analysis) treatmentOf() map[string]string {
	of := make(map[string]string)
	for i := range a.study.Strata {
		for _, c := range a.study.Strata[i].Cells {
			of[c.Key()] = a.study.Treatment(i, c).Key()
		}
	}
	return of
}

// medianWithin is the 95 % interval of the median of times; 0 if they are too few.
func medianWithin(times []time.Duration) (lo, hi time.Duration) {
	times = slices.Sorted(slices.Values(times))
	k := stat.MedianRank(len(times), 0.95)
	if k == 0 {
		return 0, 0
	}
	return times[k-1], times[len(times)-k]
}

// phaseTimes are the times of phases, in the order in which they first came.
type phaseTimes []namedTimes

type namedTimes struct {
	name  string
	times []time.Duration
}

func (p *phaseTimes) add(name string, d time.Duration) {
	i := slices.IndexFunc(*p, func(x namedTimes) bool { return x.name == name })
	if i < 0 {
		i = len(*p)
		*p = append(*p, namedTimes{name: name})
	}
	(*p)[i].times = append((*p)[i].times, d)
}

func (p phaseTimes) medians() []PhaseTime {
	var out []PhaseTime
	for _, x := range p {
		out = append(out, PhaseTime{Name: x.name, Trials: len(x.times), Median: medianTime(x.times)})
	}
	return out
}
