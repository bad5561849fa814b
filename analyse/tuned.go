package analyse

import (
	"tare/analyse/advice"
	"tare/analyse/tune"
	"tare/record"
)

// Tuned is the level that a study looks for (stop.tune), in one stratum. analyse/tune says how it is
// found.
type Tuned struct {
	Workload string      `json:"workload"`
	Stratum  string      `json:"stratum"` // Stratum.Key
	Shared   record.Cell `json:"shared"`
	Response string      `json:"response"`
	Factor   string      `json:"factor"`
	Reach    float64     `json:"reach"` // share of the best that the level must reach; 1: the best itself
	Stage    tune.Stage  `json:"stage"`
	// Answer is the lowest level that reaches the share, Best the level with the highest estimate: ""
	// before the first block.
	Answer string       `json:"answer,omitempty"`
	Best   string       `json:"best,omitempty"`
	Sure   float64      `json:"sure"`   // probability that Answer is right, within the margin
	Trials int          `json:"trials"` // good ones of these cells
	Whole  int          `json:"whole"`  // trials of as many blocks with every level
	Levels []TunedLevel `json:"levels"` // in the study's order, each with what is nested under it

	Patches []advice.Patch `json:"patches,omitempty"` // that set Answer, once it is found
}

// TunedLevel is what is known of a level.
type TunedLevel struct {
	Level  string  `json:"level"`
	Blocks int     `json:"blocks"`          // that have measured it; 0: no figures
	Share  float64 `json:"share,omitempty"` // of the best
	Lo     float64 `json:"lo,omitempty"`
	Hi     float64 `json:"hi,omitempty"`
	Chance float64 `json:"chance,omitempty"` // that it is the answer
}

// tuned says of each stratum which level the study has found.
func (a *analysis) tuned() []Tuned {
	var out []Tuned
	for i := range a.study.Strata {
		step, ok := a.plan.Tuned(i)
		if !ok {
			return nil
		}
		s, w := &a.study.Strata[i], a.study.WorkloadOf(i)
		t := Tuned{Workload: w.Label, Stratum: s.Key, Shared: s.Shared, Factor: a.study.Compare, Reach: a.study.Stop.Tune, Stage: step.Stage, Sure: step.Sure}
		if len(w.Responses) > 0 {
			t.Response = w.Responses[0]
		}
		name := func(level int) string {
			if level < 0 {
				return ""
			}
			c := a.study.Treatment(i, s.Cells[level])
			if own, ok := c.Get(t.Factor); ok && len(c) == 1 {
				return own
			}
			return c.Key()
		}
		t.Answer, t.Best = name(step.Answer), name(step.Best)
		blocks, levels := 0, 0
		for k, l := range step.Levels {
			t.Levels = append(t.Levels, TunedLevel{Level: name(k), Blocks: l.Blocks, Share: l.Share, Lo: l.Lo, Hi: l.Hi, Chance: l.Answer})
			t.Trials += l.Blocks
			blocks = max(blocks, l.Blocks)
			if a.skipped[s.Cells[k].Key()] == "" {
				levels++
			}
		}
		t.Whole = blocks * levels
		if step.Stage == tune.Found {
			cell := s.Cells[step.Answer]
			sandbox, _ := cell.Get("sandbox")
			level, _ := cell.Get(t.Factor)
			t.Patches = advice.PatchesOf(t.Factor, level, a.kinds[sandbox].Family)
		}
		out = append(out, t)
	}
	return out
}
