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
	Cell      record.Cell   `json:"cell"`         // of the treatment
	Starts    int           `json:"starts"`       // sandboxes started in those trials
	Start     time.Duration `json:"start"`        // the whole of a start, with what is in no step
	Lo        time.Duration `json:"lo,omitempty"` // of its 95 % interval, as PhaseTime has it
	Hi        time.Duration `json:"hi,omitempty"`
	Phases    []PhaseTime   `json:"phases"` // in the order of the start; Trials counts starts
}

// boots sums up the samples record.SandboxBoot, in the order of the treatments. The
// other endpoint of a workload, in a sandbox of another kind, is left out.
func (a *analysis) boots(r *Result) []Boot {
	of := a.treatmentOf()
	type times struct {
		start  []time.Duration
		phases phaseTimes
	}
	by := make(map[string]*times)
	for _, t := range a.trials {
		key, ok := of[t.Cell.Key()]
		if !ok || t.Status != record.OK || a.isSentinel(t.Cell) || study.IsCounting(t.Cell) {
			continue
		}
		box, _ := t.Cell.Get(study.FactorSandbox)
		for i := range t.Samples {
			s := &t.Samples[i]
			if s.Labels == "" || s.Name != record.SandboxBoot && s.Name != "sandbox_start" || s.Labels.Get("sandbox") != box || !(s.Value >= 0) {
				continue
			}
			b := by[key]
			if b == nil {
				b = new(times)
				by[key] = b
			}
			if s.Name != record.SandboxBoot {
				b.start = append(b.start, seconds(s.Value))
				continue
			}
			b.phases.add(s.Labels.Get(record.LabelPhase), seconds(s.Value))
		}
	}
	var out []Boot
	for _, t := range r.Treatments {
		b := by[t.Key]
		if b == nil || len(b.phases) == 0 {
			continue
		}
		x := Boot{Treatment: t.Key, Cell: t.Cell, Starts: len(b.start), Start: medianTime(b.start), Phases: b.phases.medians()}
		x.Lo, x.Hi = medianWithin(b.start)
		for i := range x.Phases {
			x.Phases[i].Lo, x.Phases[i].Hi = medianWithin(b.phases[i].times)
		}
		out = append(out, x)
	}
	return out
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
