package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/analyse/stat"
	"tare/analyse/tune"
	"tare/param"
)

// walk is how far the study has been followed over the recorded results. Every decision
// depends only on earlier blocks in the study's order, so the order in which results were
// recorded does not matter.
type walk struct {
	pass    int   // present pass, from 1; 0 before the first
	order   []int // strata of the pass
	pos     int   // in order
	block   []int // cells of the block that has begun, nil between blocks
	of      ref   // that block
	again   bool  // it runs again
	until   int   // seq that the round under way ends before
	node    string
	cost    time.Duration
	spent   time.Duration
	waiting waiting
	watches map[string]*watch // by node
	queue   []straddler
	redone  time.Duration // that blocks took which ran again
	ended   bool
}

// waiting is the trial that advance found missing.
type waiting struct{ cell, block int }

// Special values in place of a cell's index.
const (
	nobody       = -1
	sentinelCell = -2
	countingCell = -3 // less a stratum's index, so the last
)

func (p *Plan) rewind() {
	p.stale = false
	p.walk = walk{watches: make(map[string]*watch), waiting: waiting{cell: nobody}}
	for i := range p.cells {
		c := &p.cells[i]
		c.failing, c.gaveUp, c.absent, c.enough, c.yields, c.time, c.trials = 0, "", false, 0, false, 0, 0
		for j := range c.blocks {
			b := &c.blocks[j]
			b.from, b.left, b.again, b.good = 0, 0, 0, 0
		}
	}
	for i := range p.strata {
		s := &p.strata[i]
		s.ending, s.counted, s.uncounted, s.closed, s.time, s.width, s.gain = nil, false, "", 0, 0, 0, 0
		s.asked, s.found, s.turns = nil, tune.Step{}, p.study.WorkloadOf(i).Turns
		s.from, s.near, s.waits = 0, nil, p.delayed(s)
		if !slices.ContainsFunc(s.cells, func(id int) bool { return !p.cells[id].skipped }) {
			s.ending = &Ending{Code: EndSkipped, Text: "none of its cells can run here"}
		}
	}
}

// advance follows the study to the first missing trial and returns it; false at the end.
func (p *Plan) advance() (at waiting, ok bool) {
	if p.stale {
		p.rewind()
	}
	w := &p.walk
	for !w.ended {
		switch {
		case w.block != nil:
			if cell, missing := p.follow(); missing {
				w.waiting = waiting{cell, w.of.pass}
				return w.waiting, true
			}
			p.closeBlock()
			continue
		case len(w.queue) > 0:
			p.beginAgain()
			continue
		case w.pos == len(w.order):
			if w.pass > 0 {
				p.closePass()
			}
			p.endMix()
			if !slices.ContainsFunc(p.strata, func(s stratumState) bool { return s.ending == nil }) {
				w.ended = true
				continue
			}
			w.pass++
			p.ask()
			w.order, w.pos = p.passOrder(w.pass), 0
			for _, x := range w.watches {
				x.at = 0
			}
			continue
		}
		stratum := w.order[w.pos]
		if s := &p.strata[stratum]; s.ending != nil || s.waits || !p.affordable(stratum) {
			w.pos++
			continue
		}
		cells := p.blockOrder(w.pass, stratum, 0)
		stay := p.stay(ref{w.pass, stratum}, cells, p.turn(w.pass, stratum))
		w.node, w.until = stay.node, stay.until
		if watch := p.watch(stay.node); watch.off == "" && p.sentinelDue(&watch.pace) {
			if p.takeSentinel(watch, stay.node) {
				continue
			}
			if !stay.lost {
				w.waiting = waiting{sentinelCell, w.pass}
				return w.waiting, true
			}
		}
		if stay.lost {
			p.leave(w.pass, cells, stay)
			continue
		}
		if w.pass == p.strata[stratum].from+1 && !p.takeCounting(stratum) {
			w.waiting = waiting{countingCell - stratum, w.pass}
			return w.waiting, true
		}
		w.block, w.of, w.again = cells, ref{w.pass, stratum}, false
	}
	return waiting{cell: nobody}, false
}

// follow goes through the block that has begun, up to the first cell that is not settled.
func (p *Plan) follow() (cell int, missing bool) {
	w := &p.walk
	for ; len(w.block) > 0; w.block = w.block[1:] {
		c := &p.cells[w.block[0]]
		if c.gaveUp != "" {
			continue
		}
		b := c.at(w.of.pass)
		end, ok, settled := b.settled(p.study.Retries, w.until)
		if !settled {
			return w.block[0], true
		}
		reason, unfit, absent := "", false, false
		for i := b.from; i < end; i++ {
			// The time of an interrupted trial does not count: an interruption must not change
			// later decisions.
			if t := &b.tries[i]; !b.passed(i) {
				w.cost += t.duration
				c.time, c.trials = c.time+t.duration, c.trials+1
				reason, unfit, absent = t.reason, t.unfit, t.absent
			}
		}
		b.from = end
		switch {
		case ok:
			b.good = end
			if !p.watching() {
				// Nothing runs again, so later good tries belong to this round too.
				b.good = 1 + lastGood(b.tries)
			}
			c.failing = 0
		case !w.again:
			c.failing++
			never := !slices.ContainsFunc(c.blocks, func(b block) bool { return b.good > 0 })
			switch {
			case absent && never:
				c.gaveUp, c.absent = reason, true
			case unfit && never:
				c.gaveUp = "failed as it always would: " + reason
			case c.failing == giveUpAfter:
				c.gaveUp = fmt.Sprintf("failed in %d blocks running; the last time: %s", giveUpAfter, reason)
			}
		}
	}
	return 0, false
}

// affordable decides whether a block may begin, and ends the stratum if not. cut has decided
// about the passes up to the third after the first pass. They stop only when no time at all is
// left: an estimate that is a little short must not leave half the study with two blocks.
func (p *Plan) affordable(stratum int) bool {
	if p.fits(stratum, p.walk.pass, p.walk.spent) {
		return true
	}
	s := &p.strata[stratum]
	s.ending = &Ending{Code: EndBudgetTime, Blocks: s.blocks(),
		Text: fmt.Sprintf("too little of the time (%s in all) was left for another block; %s", param.FormatDuration(p.study.Budget.Time), longer)}
	return false
}

// longer says what to do about a budget that is too short.
const longer = "repeat the command with a larger budget to continue"

// fits decides whether a block may begin when so much time is spent.
func (p *Plan) fits(stratum, pass int, spent time.Duration) bool {
	s, budget := &p.strata[stratum], p.study.Budget.Time
	if budget <= 0 || pass == s.from+1 {
		return true
	}
	next := time.Duration(0)
	if n := s.blocks(); pass-s.from > stat.MinN && n > 0 {
		next = s.time / time.Duration(n)
	}
	return spent < budget && spent+next <= budget
}

// closeBlock counts a block that is complete.
func (p *Plan) closeBlock() {
	w := &p.walk
	watch := p.watch(w.node)
	watch.since++
	watch.gap = append(watch.gap, w.of)
	p.spend(w.node, w.cost)
	if w.again {
		w.redone += w.cost
	} else {
		s := &p.strata[w.of.stratum]
		s.closed = w.of.pass
		s.time += w.cost
		w.pos++
	}
	w.block, w.cost = nil, 0
}

// closePass takes the decisions at the end of a pass.
func (p *Plan) closePass() {
	pass := p.walk.pass
	look := p.study.Stop.Fixed <= 0 && !p.study.Stop.Searches() && slices.Contains(p.rule.Looks, pass)
	if look {
		sums, priors := p.summarise(pass)
		for i := range p.strata {
			if s := &p.strata[i]; s.ending == nil {
				p.narrow(s, pass, sums, priors)
			}
		}
		if p.study.Stop.Adaptive {
			p.adapt(pass, sums, priors)
		} else {
			p.yield(pass, sums, priors)
		}
	}
	for i := range p.strata {
		if s := &p.strata[i]; s.ending == nil && !s.waits {
			if code, text := p.judge(s, pass, look); code != "" {
				s.ending = &Ending{Code: code, Text: text, Blocks: s.blocks()}
			}
		}
	}
	if pass == 1 {
		p.cut()
	}
	if look || pass == 1 && p.study.Stop.Fixed <= 0 && !p.study.Stop.Searches() {
		for i := range p.strata {
			if p.strata[i].ending == nil {
				p.choose(i, pass)
			}
		}
	}
}

// narrow notes at a look which comparisons of a stratum are narrow enough, and how wide the others are.
func (p *Plan) narrow(s *stratumState, pass int, sums map[int]stat.Summary, priors map[int]stat.Prior) {
	s.width = 0
	for _, id := range p.open(s) {
		if c := &p.cells[id]; p.rule.Enough(sums[id], priors[id]) {
			c.enough = pass
		} else {
			s.width = max(s.width, p.rule.Estimate(sums[id], priors[id]).HalfWidth())
		}
	}
}

// open are the treatments of a stratum whose comparisons need more blocks.
func (p *Plan) open(s *stratumState) []int {
	var out []int
	for _, id := range s.cells {
		if c := &p.cells[id]; s.baseline >= 0 && id != s.baseline && !c.skipped && c.gaveUp == "" && c.enough == 0 {
			out = append(out, id)
		}
	}
	return out
}

// asked says how many of the blocks that the study asks for are whole. The trials of a cell that was given up do not count.
func (p *Plan) asked(s *stratumState, pass int) string {
	whole := 0
	for n := 1; n <= pass; n++ {
		if !slices.ContainsFunc(s.cells, func(id int) bool {
			c := &p.cells[id]
			b := c.at(n)
			return !c.skipped && c.gaveUp == "" && (b == nil || b.good == 0)
		}) {
			whole++
		}
	}
	switch {
	case whole < pass && pass == 1:
		return "a trial failed in the only block that was asked for"
	case whole < pass:
		return fmt.Sprintf("%d of the %d blocks that were asked for (a trial failed in the rest)", whole, pass)
	case pass == 1:
		return "the 1 block that was asked for"
	}
	return fmt.Sprintf("all %d blocks that were asked for", pass)
}

// judge returns why a stratum ends after a pass; code "" if it goes on.
func (p *Plan) judge(s *stratumState, pass int, look bool) (code, text string) {
	if p.study.Stop.Searches() {
		return p.judgeTuned(s, pass)
	}
	if s.baseline >= 0 && p.cells[s.baseline].gaveUp != "" {
		return EndGaveUp, p.baselineGaveUp(s)
	}
	treatments, alive := 0, 0
	yields := false
	for _, id := range s.cells {
		c := &p.cells[id]
		if id == s.baseline || c.skipped {
			continue
		}
		treatments++
		if c.gaveUp != "" {
			continue
		}
		alive++
		yields = yields || c.yields
	}
	comparable := s.baseline >= 0 && treatments > 0 && s.response != ""
	switch {
	case treatments > 0 && alive == 0:
		return EndGaveUp, "everything but the baseline failed again and again; the failed trials say why"
	case p.study.Stop.Fixed > 0 && pass >= p.study.Stop.Fixed:
		return EndFixed, p.asked(s, pass)
	case look && comparable && len(p.open(s)) == 0 && p.study.Stop.Adaptive && yields:
		return EndYielded, "comparisons without a verdict would hardly have got one in the blocks that were left"
	case look && comparable && len(p.open(s)) == 0 && p.study.Stop.Adaptive:
		return EndDecided, "every comparison has a verdict"
	case look && comparable && len(p.open(s)) == 0 && yields:
		return EndYielded, "the intervals that are still too wide would have needed far more time than was left, so other rows got it"
	case look && comparable && len(p.open(s)) == 0:
		return EndDecided, "every interval is narrow enough"
	case p.study.Stop.Fixed <= 0 && !comparable && pass >= stat.MinN:
		return EndNoComparison, "there is nothing to compare, only levels to show"
	case pass < p.last:
		return "", ""
	case p.study.Budget.Blocks > 0 && p.last == p.study.Budget.Blocks:
		if pass == 1 {
			return EndBudgetBlocks, "the budget of 1 block is used up"
		}
		return EndBudgetBlocks, fmt.Sprintf("the budget of %d blocks is used up", pass)
	}
	return EndLooks, "the study allows no more blocks (this was its last look)"
}

// baselineGaveUp says why a stratum has no baseline any more.
func (p *Plan) baselineGaveUp(s *stratumState) string {
	b := &p.cells[s.baseline]
	if b.absent {
		return "the baseline cannot run: " + b.gaveUp
	}
	return "the baseline " + b.gaveUp
}

// summarise returns, by cell, the summary of every comparison of the study over the blocks up
// to a pass, and the prior of its variance.
func (p *Plan) summarise(pass int) (map[int]stat.Summary, map[int]stat.Prior) {
	sums := make(map[int]stat.Summary)
	var cells []int
	var variances []stat.Variance // beside cells
	for i := range p.strata {
		s := &p.strata[i]
		if s.baseline < 0 || s.response == "" {
			continue
		}
		blocks := min(pass, s.closed)
		base := make([]float64, blocks)
		for b := range base {
			base[b] = p.cells[s.baseline].value(b + 1)
		}
		for _, id := range s.cells {
			if id == s.baseline || p.cells[id].skipped {
				continue
			}
			pairs := make([]stat.Pair, blocks)
			for b := range pairs {
				pairs[b] = stat.Pair{Base: base[b], Other: p.cells[id].value(b + 1)}
			}
			sum := stat.Summarise(pairs)
			sums[id] = sum
			cells, variances = append(cells, id), append(variances, stat.Of(sum, p.study.WorkloadOf(i).Label+" "+s.response))
		}
	}
	priors := make(map[int]stat.Prior, len(cells))
	for i, prior := range stat.Moderate(variances) {
		priors[cells[i]] = prior
	}
	return sums, priors
}

// cut leaves strata at one block, starting with the last of the study, if the remaining time
// is too short for MinN blocks of each.
func (p *Plan) cut() {
	budget := p.study.Budget.Time
	if budget <= 0 {
		return
	}
	left := budget - p.walk.spent
	least := min(stat.MinN, p.last) // a study that stops sooner needs fewer
	more, blocks := least-1, fmt.Sprintf("%d blocks", least)
	if least == 1 {
		blocks = "a block"
	}
	for i := range p.strata {
		s := &p.strata[i]
		if s.ending != nil {
			continue
		}
		need := time.Duration(math.Min(float64(s.time)*float64(more), math.MaxInt64/2))
		if need <= left {
			left -= need
			continue
		}
		s.ending = &Ending{Code: EndBudgetTime, Blocks: s.closed,
			Text: fmt.Sprintf("the time (%s in all) is too short for %s here; %s", param.FormatDuration(budget), blocks, longer)}
	}
}
