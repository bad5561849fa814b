package analyse

import (
	"tare/plan"
	"tare/record"
)

// Superseded is a good trial that does not count: its block ran again because the
// machine changed about it, and only the last round of a block counts, whatever
// came of it.
type Superseded struct {
	Seq     int         `json:"seq"`
	Block   int         `json:"block"`
	Attempt int         `json:"attempt"`
	Cell    record.Cell `json:"cell"`
}

// superseded lists them, in the order of trials.
func superseded(p *plan.Plan, trials []*record.Trial) []Superseded {
	var out []Superseded
	for _, t := range trials {
		if t.Status == record.OK && !p.Counts(t) {
			out = append(out, Superseded{Seq: t.Seq, Block: t.Block, Attempt: t.Attempt, Cell: t.Cell})
		}
	}
	return out
}

// Counting returns, by Cell.Key and block, the trial whose values count: the last
// good attempt that is not superseded. Whoever shows values of single blocks takes
// them from here, so that they are those that the ratios are made of. The order of
// trials does not matter.
func (r *Result) Counting(trials []record.Trial) map[string]map[int]*record.Trial {
	type attempt struct {
		cell           string
		block, attempt int
	}
	over := make(map[attempt]bool, len(r.Superseded))
	for _, s := range r.Superseded {
		over[attempt{s.Cell.Key(), s.Block, s.Attempt}] = true
	}
	out := make(map[string]map[int]*record.Trial)
	for i := range trials {
		t := &trials[i]
		key := t.Cell.Key()
		if t.Status != record.OK || over[attempt{key, t.Block, t.Attempt}] {
			continue
		}
		if out[key] == nil {
			out[key] = make(map[int]*record.Trial)
		}
		// The same attempt twice is of a damaged folder: then the later one.
		if o := out[key][t.Block]; o == nil || t.Attempt > o.Attempt || t.Attempt == o.Attempt && !t.Start.Before(o.Start) {
			out[key][t.Block] = t
		}
	}
	return out
}
