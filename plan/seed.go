package plan

import (
	"slices"

	"tare/analyse/tune"
)

// The strata of a workload are often alike: the best level for one block size is near that for the next. So the search of
// the first stratum screens the levels, and each other one waits for the answer of a neighbour and begins there
// (tune.Grid.Near). It waits for the end of that search: the answer after one block is wrong too often.
//
// A stratum does not wait if the time is limited, because it might get none, or if blocks can run on several nodes, because
// these would be idle. If it has trials of the first pass, it did not wait when they were made, and does not now. So
// a study goes on, and is reported, as it began.

// seeds finds where each search may begin: at the nearest of the strata before it that have the same workload and levels.
func (p *Plan) seeds() {
	p.most = p.last
	if p.study.Stop.Tune == 0 || p.study.Stop.Objective != nil {
		return
	}
	waited := make([]int, len(p.strata)) // searches that come before that of a stratum
	for i := range p.strata {
		s, m := &p.strata[i], p.mixOf(i)
		if len(m.strata) > 1 || !(tune.Grid{At: p.study.Strata[i].Places, Closed: p.shut(m)}).Partial() {
			continue
		}
		nearest := 0
		for j := range i {
			if d, alike := p.apart(i, j); alike && !slices.Contains(p.mix.strata, j) && (s.seed < 0 || d < nearest) {
				s.seed, nearest, waited[i] = j, d, waited[j]+1
			}
		}
		p.most = max(p.most, p.last*(waited[i]+1))
	}
}

// apart is how many levels are between two strata, over all factors in which they differ. They are not alike if their
// workloads are two, or their levels, or if they differ in a word: a read is not near a write, nor a sandbox near another.
func (p *Plan) apart(i, j int) (levels int, alike bool) {
	a, b := &p.study.Strata[i], &p.study.Strata[j]
	if a.Workload != b.Workload || a.Better != b.Better || len(a.Cells) != len(b.Cells) {
		return 0, false
	}
	for k := range a.Cells {
		if p.study.Treatment(i, a.Cells[k]).Key() != p.study.Treatment(j, b.Cells[k]).Key() {
			return 0, false
		}
	}
	for _, f := range p.study.Factors {
		x, _ := a.Shared.Get(f.Name)
		y, _ := b.Shared.Get(f.Name)
		if x != y && (!number(x) || !number(y)) {
			return 0, false
		}
		if d := slices.Index(f.Levels, x) - slices.Index(f.Levels, y); d < 0 {
			levels -= d
		} else {
			levels += d
		}
	}
	return levels, true
}

// number reports whether a level is a number, with or without a unit.
func number(level string) bool { return level != "" && level[0] >= '0' && level[0] <= '9' }

// delayed reports whether a search waits for that of its seed.
func (p *Plan) delayed(s *stratumState) bool {
	if s.seed < 0 {
		return false
	}
	begun := false
	for _, id := range s.cells {
		for n, b := range p.cells[id].blocks {
			if len(b.tries) > 0 && n == 0 {
				return false
			}
			begun = begun || len(b.tries) > 0
		}
	}
	return begun || p.study.Budget.Time == 0 && len(p.all) < 2
}

// start begins a search that waited, if that of its seed has ended. Only a clear answer is a place to begin.
func (p *Plan) start(s *stratumState) {
	seed := &p.strata[s.seed]
	if seed.ending == nil {
		return
	}
	s.waits, s.from, s.closed = false, p.walk.pass-1, p.walk.pass-1
	if seed.found.Stage == tune.Found { // else its answer may be wrong, and the screen is safer
		s.near = []int{seed.found.Answer, seed.found.Best}
	}
}

// blocks are those of the stratum that are complete.
func (s *stratumState) blocks() int { return s.closed - s.from }
