package model

import (
	"maps"

	"tare/internal/window"
	"tare/record"
)

// Phases of a modelled trial, as package run names those of a real one. The others
// of a real trial take a model no time.
const (
	PhaseWarmup = "warmup"
	PhaseRun    = "run"
)

// Trial is the result as a trial that was run: its samples are the responses and
// what the series say over the measured time, warm-up left out, reduced as those of
// a measured trial are. Its Duration is the modelled time; its Start is not set.
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
		if s := &r.Reading.Series[i]; s.Labels.Get(record.LabelResponse) == "" { // that is the workload's own
			lines = append(lines, &window.Series{Series: *s})
		}
	}
	t.Samples = append(t.Samples, window.Figures(lines, w)...)
	return t, record.Evidence{Series: r.Reading.Series}
}

// nativeCall is the time of one system call that does nothing, of the kernel of
// today with its mitigations, seconds: usual figure, docs/workloads/syscall.md.
const nativeCall = 0.15e-6

// Call is what the workload syscall measures of a Config's sandbox, seconds a call:
// the time that a call takes which does nothing, and how much of it the sandbox
// adds. Both have the noise of one trial; added is 0 where calls are not
// intercepted. A guest's kernel serves its calls itself, at its factor.
func (c Config) Call() (took, added float64) {
	rng := newRand(c.Seed, 0x63616c6c00000001)
	n, x := nativeCall*lognormal(rng, c.Noise.Trial), c.Kernel.Price*lognormal(rng, c.Noise.Trial)
	if c.Isolation == VM {
		x += n * max(0, c.Guest.Factor-1)
	}
	return n + x, x
}
