package analyse

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
	"tare/study"
)

// This file carries along what is not a comparison: failures, warnings and what
// the measuring itself costs.

// sandboxName matches the name of a sandbox, RUN-TRIAL-ROLE as package run makes
// it: every trial has others.
var sandboxName = regexp.MustCompile(`\bt[0-9a-z]+-[0-9]+-[a-z]+[0-9]*\b`)

// reasons counts the ways in which a cell's trials failed by a fault of the cell, as Reasons does.
func reasons(trials []*record.Trial) (failed int, out []Reason) {
	var of []FailedTrial
	for _, t := range trials {
		if t.Status != record.OK && !t.Failure.Passing() {
			of = append(of, failedTrial(t))
		}
	}
	return len(of), Reasons(of)
}

// Reasons counts the ways in which trials failed, in the order in which
// each was last seen. Texts that differ by the sandbox's name alone are one way;
// the last of them stands for all.
func Reasons(failed []FailedTrial) (out []Reason) {
	for i := range failed {
		f := &failed[i].Failure
		r := Reason{Phase: f.Phase, Kind: f.Kind, Text: f.Reason, Count: 1}
		if *f == (record.Failure{}) {
			r.Kind, r.Text = "other", "no reason is on record"
		}
		if i := slices.IndexFunc(out, func(o Reason) bool {
			return o.Phase == r.Phase && o.Kind == r.Kind && nameless(o.Text) == nameless(r.Text)
		}); i >= 0 {
			r.Count += out[i].Count
			out = slices.Delete(out, i, i+1)
		}
		out = append(out, r)
	}
	return out
}

func nameless(text string) string { return sandboxName.ReplaceAllString(text, "NAME") }

func (a *analysis) failures(r *Result) {
	for _, t := range a.trials {
		if t.Status == record.OK || study.IsCounting(t.Cell) {
			continue
		}
		r.Failed++
		r.Failures = append(r.Failures, failedTrial(t))
	}
}

// gaps counts the blocks in which all trials of some cell failed. It leaves out skipped cells, and the sentinel, which is not a cell of
// the study.
func (a *analysis) gaps() (out Gaps) {
	type place struct {
		cell  string
		block int
	}
	good, blocks, gap := map[place]bool{}, map[int]bool{}, map[int]bool{}
	own := func(t *record.Trial) (place, bool) {
		key := t.Cell.Key()
		return place{key, t.Block}, key != a.sentinel && a.skipped[key] == "" && !study.IsCounting(t.Cell)
	}
	for _, t := range a.trials {
		if at, ok := own(t); ok {
			blocks[t.Block] = true
			good[at] = good[at] || t.Status == record.OK
		}
	}
	for _, t := range a.trials {
		if at, ok := own(t); ok && !good[at] {
			gap[t.Block] = true
			if out.Reason == "" && t.Failure != nil {
				out.Reason = t.Failure.Reason
			}
		}
	}
	if len(gap) == 0 {
		return Gaps{}
	}
	out.Blocks, out.Of = len(gap), len(blocks)
	return out
}

func failedTrial(t *record.Trial) FailedTrial {
	f := FailedTrial{Seq: t.Seq, Block: t.Block, Attempt: t.Attempt, Cell: t.Cell}
	if t.Failure != nil {
		f.Failure = *t.Failure
	}
	return f
}

// warnings gathers those that say the same but for their numbers: the first
// one's text stands for all.
func (a *analysis) warnings(r *Result) {
	type key struct{ code, text string }
	at := make(map[key]int)
	for _, t := range a.trials {
		for _, w := range t.Warnings {
			k := key{w.Code, numberless(w.Text)}
			i, ok := at[k]
			if !ok {
				i = len(r.Warnings)
				at[k] = i
				r.Warnings = append(r.Warnings, Warning{Code: w.Code, Text: w.Text})
			}
			r.Warnings[i].Trials++
			r.Warnings[i].Cells = ordered.Add(r.Warnings[i].Cells, t.Cell.Key())
		}
	}
	if w := a.study.Stop.Wide(); w != "" {
		r.Warnings = append(r.Warnings, Warning{Code: "wide", Text: w})
	}
	for _, n := range a.study.Notes {
		r.Warnings = append(r.Warnings, Warning{Code: "file", Text: n})
	}
	a.uncounted(r)
	if n := a.plan.Strays(); n > 0 {
		r.Warnings = append(r.Warnings, Warning{Code: "strays",
			Text: "some trials on record belong to no cell or no block of this study; they are not compared"})
	}
}

// numberless returns a text with each run of digits, and the sign before it,
// replaced.
func numberless(text string) string {
	var b strings.Builder
	digits := false
	for _, r := range text {
		if r >= '0' && r <= '9' {
			if !digits {
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		if r != '-' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// spent is what the trials of one level of the compared factor took.
type spent struct {
	trial, noop, start, stop, life []time.Duration
	phases                         phaseTimes
	collectors                     map[string][]float64
	agent, idle                    []float64
}

// overheads sums up what measuring costs, for each level of the compared factor
// in order.
func (a *analysis) overheads() []Overhead {
	noop := make(map[string]bool) // labels of the workloads that do nothing
	for _, w := range a.study.Workloads {
		noop[w.Label] = w.Kind == "noop"
	}
	by := make(map[string]*spent)
	var order []string
	for _, t := range a.treatments() {
		l, _ := t.Cell.Get(a.study.Compare)
		if by[l] == nil {
			by[l] = &spent{collectors: map[string][]float64{}}
			order = append(order, l)
		}
	}
	for _, t := range a.trials {
		l, _ := t.Cell.Get(a.study.Compare)
		b := by[l]
		if b == nil || t.Status != record.OK || a.isSentinel(t.Cell) || study.IsCounting(t.Cell) {
			continue
		}
		if w, _ := t.Cell.Get(study.FactorWorkload); noop[w] {
			b.noop = append(b.noop, t.Duration)
		}
		b.add(t)
	}
	var out []Overhead
	for _, l := range order {
		if b := by[l]; len(b.trial) > 0 {
			out = append(out, b.overhead(l))
		}
	}
	return out
}

// add takes in a trial.
func (b *spent) add(t *record.Trial) {
	b.trial = append(b.trial, t.Duration)
	for _, p := range t.Phases {
		b.phases.add(p.Name, p.Duration)
	}
	box, _ := t.Cell.Get(study.FactorSandbox)
	idle := map[string]float64{} // by endpoint
	own := map[string]bool{}     // endpoints in this sandbox
	for _, s := range t.Samples {
		if s.Labels == "" {
			continue
		}
		if s.Name == record.IdleCPU && s.Value >= 0 && !math.IsInf(s.Value, 0) {
			idle[s.Labels.Get(record.LabelEndpoint)] += s.Value
		}
		if c := s.Labels.Get("collector"); c != "" && s.Unit == record.Cores && !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			b.collectors[c] = append(b.collectors[c], s.Value)
		}
		if s.Name == agentCPU && s.Value >= 0 && !math.IsInf(s.Value, 0) {
			b.agent = append(b.agent, s.Value)
		}
		// The other endpoint of a network workload sits in a sandbox of another
		// kind, whose times are not this one's.
		switch kind := s.Labels.Get("sandbox"); {
		case kind == "" || kind != box:
		case s.Name == "sandbox_start":
			own[s.Labels.Get(record.LabelEndpoint)] = true
			b.start = append(b.start, seconds(s.Value))
		case s.Name == record.SandboxLife:
			b.life = append(b.life, seconds(s.Value))
		case s.Name == "sandbox_stop":
			b.stop = append(b.stop, seconds(s.Value))
		}
	}
	maps.DeleteFunc(idle, func(end string, _ float64) bool { return !own[end] })
	if len(idle) > 0 {
		sum := 0.0
		for _, x := range idle {
			sum += x
		}
		b.idle = append(b.idle, sum)
	}
}

func (b *spent) overhead(level string) Overhead {
	o := Overhead{Sandbox: level, Trials: len(b.trial), Trial: medianTime(b.trial), Noop: medianTime(b.noop), NoopTrials: len(b.noop),
		Starts: len(b.start), Start: medianTime(b.start), Stop: medianTime(b.stop), Life: medianTime(b.life), Phases: b.phases.medians()}
	for _, n := range slices.Sorted(maps.Keys(b.collectors)) {
		o.Collectors = append(o.Collectors, CollectorCost{Name: n, Cores: stat.Median(b.collectors[n])})
	}
	if len(b.idle) > 0 {
		cores := stat.Median(b.idle)
		o.Idle = &cores
	}
	if len(b.agent) > 0 {
		cores := stat.Median(b.agent)
		o.Agent = &cores
	}
	return o
}

// agentCPU is what tare's agent used in a guest, as the guest counts it, in cores.
const agentCPU = record.AgentCPU + record.RateSuffix

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

func medianTime(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Clone(d)
	slices.Sort(d)
	m := len(d) / 2
	if len(d)%2 == 1 {
		return d[m]
	}
	return d[m-1] + (d[m]-d[m-1])/2
}
