package plan

import "tare/analyse/tune"

// A study can look for the highest load that meets an objective (Stop.Objective). A pass then measures only those loads of a
// stratum that may be the answer (tune.Seek). The loads are the stratum's cells.

// seekMost is the most blocks of a stratum whose highest load does not become clear.
const seekMost = 24

// objective is the search goal of a study with an objective. RFC 9971 recommends the exceed ratio.
func (p *Plan) objective() tune.Objective {
	return tune.Objective{Trials: 9, Exceed: 0.5, Confidence: p.rule.Confidence}
}

// search is what the closed blocks say about what a stratum looks for.
func (p *Plan) search(stratum int) tune.Step {
	if p.study.Stop.Objective == nil {
		return p.tuned(p.mixOf(stratum))
	}
	s := &p.strata[stratum]
	trials := make([][]tune.Trial, s.closed)
	for b := range trials {
		for _, id := range s.cells {
			trials[b] = append(trials[b], p.trialOf(id, b+1))
		}
	}
	return tune.Seek(trials, p.study.Loads(stratum), p.shut(p.mixOf(stratum)), p.objective())
}

// trialOf is what a cell showed in a block. A trial that failed, retries and all, has missed the objective: an overload
// that ends a trial is one. So has one whose load generator did not send nearly all requests: it shows another load. It counts by what the walk has come to, so not before its block is closed.
func (p *Plan) trialOf(id, pass int) tune.Trial {
	c := &p.cells[id]
	b := c.at(pass)
	if b == nil || b.from == 0 && b.good == 0 {
		return tune.NoTrial
	}
	if b.good == 0 {
		return tune.Missed
	}
	switch t := &b.tries[b.good-1]; {
	case !t.has:
		return tune.NoTrial
	case t.offered && p.study.Stop.Objective.Met(t.value):
		return tune.Met
	case t.late:
		return tune.Late
	}
	return tune.Missed
}
