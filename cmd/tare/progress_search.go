package main

import (
	"fmt"
	"slices"

	"tare/analyse/tune"
	"tare/plan"
	"tare/report/words"
	"tare/study"
)

// search is a search for a level, as progress tells of it.
type search struct {
	name    string // of a mix
	stratum int    // of a mix, the first
	strata  int
	level   func(index int) string
	loads   bool   // the highest load is looked for
	unit    string // what a block measures some of
}

// searchesOf are the searches of a study; nil if it looks for no level.
func searchesOf(st *study.Study) []search {
	if !st.Stop.Searches() {
		return nil
	}
	var out []search
	mix, _ := st.Mixed()
	for i := range st.Strata {
		s := search{"", i, 1, func(index int) string {
			if len(st.Stop.Factors) > 0 {
				return st.LevelOf(i, index)
			}
			return st.Compare + " " + st.LevelOf(i, index)
		}, st.Stop.Objective != nil, "level"}
		if len(st.Stop.Factors) > 0 {
			s.unit = "combination"
		}
		switch n := slices.Index(mix, i); {
		case n > 0:
			continue
		case n == 0:
			s.name, s.strata = "the mix: ", len(mix)
		}
		out = append(out, s)
	}
	return out
}

// found tells what the searches know after a block. Of several, it tells how many are clear.
func (p *progress) found(at *plan.Plan, block int) {
	if len(p.searches) == 0 || block < 1 {
		return
	}
	certain, trials, whole, text := 0, 0, 0, ""
	for _, s := range p.searches {
		step, _ := at.Tuned(s.stratum)
		most := 0
		for _, l := range step.Levels {
			most = max(most, l.Blocks)
			trials += l.Blocks * s.strata
		}
		whole += most * len(step.Levels) * s.strata
		if step.Stage == tune.Found || step.Stage == tune.Confirming {
			certain++
		}
		text = s.name + s.know(step)
	}
	if n := len(p.searches); n > 1 {
		text = fmt.Sprintf("%d of %d levels are clear", certain, n)
	}
	if p.terminal {
		p.out.Rewrite("")
	}
	took := words.Count(trials, "trial")
	if trials < whole {
		took += fmt.Sprintf(" instead of %d", whole)
	}
	p.say("after block %d, %s; %s", block, text, took)
}

// know is what a search knows.
func (s search) know(step tune.Step) string {
	if s.loads {
		return s.bounds(step)
	}
	if step.Answer < 0 {
		return "no trial was good"
	}
	if step.Thin() {
		return fmt.Sprintf("%s comes first, with %s, and the next block measures %s", s.level(step.Answer), words.FewBlocks, words.Count(len(step.Measure), s.unit))
	}
	sure := 100 * min(step.Sure, 0.99)
	if step.Stage != tune.Narrowing {
		return fmt.Sprintf("%s is clear (%.0f %%), and fresh blocks confirm it", s.level(step.Answer), sure)
	}
	return fmt.Sprintf("%s is the most probable (%.0f %%), and the next block measures %s", s.level(step.Answer), sure, words.Count(len(step.Measure), s.unit))
}

// bounds is what a search for the highest load knows.
func (s search) bounds(step tune.Step) string {
	if step.Stage == tune.Screening {
		return "no trial was made"
	}
	lower, upper := "no load meets the objective so far", "none misses it so far"
	if step.Answer >= 0 {
		lower = s.level(step.Answer) + " meets the objective"
	}
	if step.Upper >= 0 {
		upper = s.level(step.Upper) + " misses it"
	}
	out := fmt.Sprintf("%s, %s (%.0f %%)", lower, upper, 100*min(step.Sure, 0.99))
	if step.Stage == tune.Narrowing {
		out += ", and the next block measures " + words.Count(len(step.Measure), "load")
	}
	return out
}
