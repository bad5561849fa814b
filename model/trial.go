package model

import (
	"maps"

	"tare/internal/window"
	"tare/record"
)

// Phases of a modelled trial, with package run's names. Other phases of a real trial take no time
// in the model.
const (
	PhaseWarmup = "warmup"
	PhaseRun    = record.PhaseRun
)

// Trial returns the result as a trial. Its samples are the responses and the series reduced over
// the measured time, without the warm-up, as in a measured trial. Its Duration is the modelled
// time; its Start is not set.
func (r *Result) Trial(cell record.Cell, block, seq int) (*record.Trial, record.Evidence) {
	w := r.Measured
	t := &record.Trial{
		Seq: seq, Block: block, Attempt: 1, Cell: cell, Status: record.OK, Duration: w.To,
		Phases: []record.Phase{
			{Name: PhaseWarmup, Duration: w.From},
			{Name: PhaseRun, Offset: w.From, Duration: w.To - w.From},
		},
		Samples:    append([]record.Sample(nil), r.Reading.Samples...),
		Histograms: r.Reading.Histograms,
		Warnings:   r.Reading.Warnings,
		Facts:      maps.Clone(r.Facts),
	}
	lines := make([]*window.Series, 0, len(r.Reading.Series))
	for i := range r.Reading.Series {
		if s := &r.Reading.Series[i]; s.Labels.Get(record.LabelResponse) == "" { // otherwise it is the workload's series
			lines = append(lines, &window.Series{Series: *s})
		}
	}
	t.Samples = append(t.Samples, window.Figures(lines, w)...)
	return t, record.Evidence{Series: r.Reading.Series}
}

// nativeCall is a typical time of one system call that does nothing, in seconds, in a present
// kernel with its mitigations: docs/workloads/syscall.md.
const nativeCall = 0.15e-6

// Call returns what the workload syscall measures in a Config's sandbox, in seconds: the time of a
// call that does nothing, and the part that the sandbox adds. Both have the noise of one trial.
// added is 0 if calls are not intercepted. A guest's kernel serves its calls itself, at its factor.
func (c Config) Call() (took, added float64) {
	rng := newRand(c.Seed, 0x63616c6c00000001)
	n, x := nativeCall*lognormal(rng, c.Noise.Trial), c.Kernel.Price*lognormal(rng, c.Noise.Trial)
	if c.Isolation == VM {
		x += n * max(0, c.Guest.Factor-1)
	}
	return n + x, x
}
