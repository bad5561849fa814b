package analyse

import (
	"fmt"
	"slices"

	"tare/analyse/advice"
	"tare/analyse/tune"
	"tare/plan"
	"tare/record"
)

// Tuned is the level that a study looks for (stop.tune), in one stratum or for a mix of several; of several factors, the
// combination of levels.
// analyse/tune says how it is found.
type Tuned struct {
	Workload string      `json:"workload"` // MixName for a mix
	Stratum  string      `json:"stratum"`  // Stratum.Key; "" for a mix
	Shared   record.Cell `json:"shared"`
	Response string      `json:"response"`
	Factor   string      `json:"factor"`            // the first of them
	Factors  []string    `json:"factors,omitempty"` // all, of several
	Reach    float64     `json:"reach"`             // share of the best that the level must reach; 1: the best itself
	Stage    tune.Stage  `json:"stage"`
	Ended    string      `json:"ended,omitempty"` // why the search ended without a clear answer
	Stopped  bool        `json:"-"`               // its budget ended it, or it was interrupted: it can go on
	// Answer is the lowest level that reaches the share, Best the level with the highest estimate: ""
	// before the first block.
	Answer string       `json:"answer,omitempty"`
	Best   string       `json:"best,omitempty"`
	Set    record.Cell  `json:"set,omitempty"`            // Answer, factor by factor
	Sure   float64      `json:"sure,omitempty"`           // probability that Answer is right, within the margin; 0: Thin
	Thin   bool         `json:"too_few_blocks,omitempty"` // for chances, of Answer and of the levels (tune.Step.Thin)
	Trials int          `json:"trials"`                   // good ones of these cells
	Whole  int          `json:"whole"`                    // trials of as many blocks with every level
	Levels []TunedLevel `json:"levels"`                   // in the study's order, each with what is nested under it

	// Objective is what the highest load is looked for with, such as latency_p99<2ms; "" where a share of the best is
	// looked for. Answer is then the Relevant Lower Bound of RFC 9971, Upper its Relevant Upper Bound; "": none. Sure is the
	// probability that most trials at Answer meet the objective and most at Upper miss it.
	Objective string `json:"objective,omitempty"`
	Upper     string `json:"upper,omitempty"`
	// Throughput is the Conditional Throughput: answers a second in the typical trial at Answer; 0: not known.
	Throughput float64 `json:"conditional_throughput,omitempty"`

	Mix     []TunedPart    `json:"mix,omitempty"`
	Care    []string       `json:"take_care,omitempty"` // what to know before Answer is set
	Patches []advice.Patch `json:"patches,omitempty"`   // that set Answer, once it is found or the search has ended
}

// MixName stands where a result names a workload, if the level is for a mix.
const MixName = "mix"

// TunedPart is a stratum of a mix.
type TunedPart struct {
	Workload string      `json:"workload"`
	Stratum  string      `json:"stratum"`
	Shared   record.Cell `json:"shared"`
	Response string      `json:"response"`
	Weight   float64     `json:"weight"`          // all weights of a mix sum to 1
	Share    float64     `json:"share,omitempty"` // of its own best level's value that it has at the answer; 0: not known
	Best     string      `json:"best,omitempty"`  // its own best level of those that were measured
}

// TunedLevel is what is known of a level.
type TunedLevel struct {
	Level  string      `json:"level"`
	Cell   record.Cell `json:"cell,omitempty"`  // factor by factor, of several
	Blocks int         `json:"blocks"`          // that have measured it; 0: no figures
	Share  float64     `json:"share,omitempty"` // of the best
	Lo     float64     `json:"lo,omitempty"`
	Hi     float64     `json:"hi,omitempty"`
	Chance float64     `json:"chance,omitempty"` // that it is the answer

	// Of a load: its trials after the first, which only guided the search, and what they say.
	Met    int        `json:"met,omitempty"`
	Missed int        `json:"missed,omitempty"`
	Late   int        `json:"late,omitempty"` // of missed: the load generator fell behind its schedule by itself
	Bound  tune.Bound `json:"bound,omitempty"`
}

// tuned says of each stratum, or of a mix, which level the study has found.
func (a *analysis) tuned() []Tuned {
	var out []Tuned
	mix, weights := a.study.Mixed()
	for i := range a.study.Strata {
		step, ok := a.plan.Tuned(i)
		if !ok {
			return nil
		}
		switch n := slices.Index(mix, i); {
		case n < 0:
			out = append(out, a.tunedOf(i, step))
		case n == 0:
			t := a.tunedOf(i, step)
			t.Workload, t.Stratum, t.Shared, t.Response = MixName, "", nil, ""
			t.Trials, t.Whole = t.Trials*len(mix), t.Whole*len(mix)
			for k, j := range mix {
				t.Mix = append(t.Mix, a.part(j, weights[k], step.Answer))
			}
			out = append(out, t)
		}
	}
	return out
}

// tunedOf is what a step says about the level of a stratum.
func (a *analysis) tunedOf(i int, step tune.Step) Tuned {
	s, w := &a.study.Strata[i], a.study.WorkloadOf(i)
	t := Tuned{Workload: w.Label, Stratum: s.Key, Shared: s.Shared, Factor: a.study.Compare, Reach: a.study.Stop.Tune, Stage: step.Stage, Sure: min(step.Sure, 1)}
	if len(w.Responses) > 0 {
		t.Response = w.Responses[0]
	}
	if e, ok := a.plan.Ending(i); !ok {
		t.Stopped = step.Stage != tune.Found
	} else if step.Stage != tune.Found {
		t.Ended, t.Stopped = e.Text, e.Code == plan.EndBudgetTime || e.Code == plan.EndBudgetBlocks
	}
	t.Factors = a.study.Stop.Factors
	t.Answer, t.Best = a.study.LevelOf(i, step.Answer), a.study.LevelOf(i, step.Best)
	if step.Answer >= 0 {
		t.Set = among(s.Cells[step.Answer], a.study.Tuned())
	}
	blocks, levels := 0, 0
	for k, l := range step.Levels {
		level := TunedLevel{Level: a.study.LevelOf(i, k), Blocks: l.Blocks, Share: l.Share, Lo: l.Lo, Hi: l.Hi, Chance: l.Answer, Met: l.Met, Missed: l.Missed, Late: l.Late, Bound: l.Bound}
		if len(t.Factors) > 0 {
			level.Cell = among(s.Cells[k], t.Factors)
		}
		t.Levels = append(t.Levels, level)
		t.Trials += l.Blocks
		blocks = max(blocks, l.Blocks)
		if a.skipped[s.Cells[k].Key()] == "" {
			levels++
		}
	}
	t.Whole = blocks * levels
	if o := a.study.Stop.Objective; o != nil {
		t.Objective, t.Upper = o.Text, a.study.LevelOf(i, step.Upper)
		if step.Answer >= 0 {
			t.Throughput = a.throughput(s.Cells[step.Answer])
		}
		return t
	}
	if step.Thin() {
		t.Thin, t.Sure = true, 0
		for k := range t.Levels {
			t.Levels[k].Chance = 0
		}
	}
	found := step.Stage == tune.Found
	if found || t.Ended != "" && step.Answer >= 0 && !t.Thin { // a search that ended early has its best so far
		sandbox, _ := s.Cells[step.Answer].Get("sandbox")
		for _, l := range t.Set {
			t.Patches = append(t.Patches, advice.PatchesOf(l.Factor, l.Value, a.kinds[sandbox].Family, s.Cells[step.Answer])...)
		}
		if !found {
			t.Care = []string{fmt.Sprintf("the answer is not clear, this is only the most probable level (%.0f %%)", 100*min(t.Sure, 0.99))}
		}
		t.Care = append(t.Care, advice.CareOf(t.Set)...)
		t.Patches = advice.Careful(advice.Join(t.Patches), t.Care)
	}
	return t
}

// achieved are the responses that say how many answers a load with a requested rate got, a second; the second is fio's.
func achieved() []string { return []string{"rate", "iops"} }

// throughput is the Conditional Throughput of a load (RFC 9971, Appendix B): the achieved rate of its trials at the quantile
// of the exceed ratio, half; of an even number, the lower of the middle two. 0 stands for none.
func (a *analysis) throughput(cell record.Cell) float64 {
	var rates []float64
	for _, t := range a.counting[cell.Key()] {
		for _, name := range achieved() {
			if v, ok := t.Sample(name); ok {
				rates = append(rates, v)
			}
		}
	}
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	return rates[(len(rates)-1)/2]
}

// among are a cell's levels of some factors.
func among(cell record.Cell, factors []string) record.Cell {
	var out record.Cell
	for _, f := range factors {
		level, _ := cell.Get(f)
		out = append(out, record.Level{Factor: f, Value: level})
	}
	return out
}

// part is what a level of the mix gives one of its strata.
func (a *analysis) part(i int, weight float64, answer int) TunedPart {
	s, w := &a.study.Strata[i], a.study.WorkloadOf(i)
	p := TunedPart{Workload: w.Label, Stratum: s.Key, Shared: s.Shared, Weight: weight}
	if len(w.Responses) > 0 {
		p.Response = w.Responses[0]
	}
	if step := a.plan.Alone(i); answer >= 0 && step.Best >= 0 {
		p.Share, p.Best = step.Levels[answer].Share, a.study.LevelOf(i, step.Best)
	}
	return p
}
