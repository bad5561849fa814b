package plan

import (
	"slices"
	"time"

	"tare/record"
	"tare/study"
)

// Several machines can measure at once, because each block belongs to one of them. Ahead finds trials that
// the study will want, whatever the trials before them show: it passes over blocks that are being measured
// elsewhere, up to the next decision. Each node keeps the study's order of its own trials.
//
// The walk looks at trials in the study's order all the same. So whoever makes trials ahead gives them to a
// plan when that plan asks for them, and every decision is as if they had been made one after another.

// Ahead returns the trials to make next on nodes that are free, as Together does; none if nothing can be made
// there yet. Free hears of the nodes that a trial needs.
func (p *Plan) Ahead(free func(nodes []string) bool) []Next {
	front := p.Together()
	if len(front) == 0 || free(p.Uses(front[0])) {
		return front
	}
	l := lookahead{plan: p, free: free, waits: map[string]bool{}, spent: p.walk.spent}
	l.wait(p.Uses(front[0]))
	w := &p.walk
	order, from := w.order, w.pos
	for pass := w.pass; ; pass++ {
		l.pace = map[string]*pace{}
		for _, stratum := range order[from:] {
			if s := &p.strata[stratum]; s.ending != nil || s.waits || !p.fits(stratum, pass, l.spent) {
				continue
			}
			if out := l.at(pass, stratum); out != nil {
				return out
			}
		}
		if p.decides(pass) {
			return nil
		}
		order, from = p.passOrder(pass+1), 0
	}
}

// decides reports whether what is measured after a pass depends on what it shows.
func (p *Plan) decides(pass int) bool {
	s := &p.study.Stop
	switch {
	case pass >= p.last || s.Searches():
		return true
	case s.Fixed > 0:
		return pass == 1 && p.study.Budget.Time > 0 // cut
	}
	return slices.Contains(p.rule.Looks, pass) || pass == 1 && (p.study.Budget.Time > 0 ||
		slices.ContainsFunc(p.study.Workloads, func(w study.Workload) bool { return w.AutoTurns }))
}

// Uses returns the nodes that a trial needs: that of its block, the next ones if its copies are spread, and one more if
// its ends are apart.
func (p *Plan) Uses(n Next) []string {
	many := study.Spread(n.Cell)
	if path, _ := n.Cell.Get(study.FactorLinkPath); path == record.PathNodes {
		many++
	}
	out := []string{n.Node}
	for k := 1; k < min(many, len(p.all)); k++ {
		out = append(out, After(p.all, n.Node, k))
	}
	return out
}

// After is the k-th node after a node, of a list that is sorted by name and goes round: so each node is in as many trials on
// several nodes as another. It is "" if the node is not in the list.
func After(nodes []string, node string, k int) string {
	i := slices.Index(nodes, node)
	if i < 0 {
		return ""
	}
	return nodes[(i+k)%len(nodes)]
}

// lookahead is a walk over what is not measured yet. It changes nothing of the plan's.
type lookahead struct {
	plan  *Plan
	free  func([]string) bool
	waits map[string]bool  // nodes whose next trial is known, but is not to be made now
	pace  map[string]*pace // by node; of the pass
	spent time.Duration
}

func (l *lookahead) wait(nodes []string) {
	for _, n := range nodes {
		l.waits[n] = true
	}
}

// offer returns trials if their nodes are free. If not, nothing that comes later may run there before.
func (l *lookahead) offer(nexts []Next) []Next {
	nodes := l.plan.Uses(nexts[0])
	if !slices.ContainsFunc(nodes, func(n string) bool { return l.waits[n] }) && l.free(nodes) {
		return nexts
	}
	l.wait(nodes)
	return nil
}

// at goes on to the block of a stratum in a pass, and returns what is missing there or before it.
func (l *lookahead) at(pass, stratum int) []Next {
	p := l.plan
	cells := p.blockOrder(pass, stratum, 0)
	stay := p.stay(ref{pass, stratum}, cells, p.turn(pass, stratum))
	node := stay.node
	if stay.lost || l.waits[node] {
		return nil
	}
	v := l.paceOf(pass, node)
	if p.watch(node).off == "" && p.sentinelDue(v) {
		if t := p.sentinelAt(node, pass, &v.at); t != nil {
			v.took(t.duration)
			l.spent += t.duration
		} else if !p.sentinel.skipped {
			return l.offer([]Next{p.nextSentinel(pass, node)})
		}
	}
	if pass == p.strata[stratum].from+1 && p.countingDue(stratum) && !p.countedAhead(stratum) {
		return l.offer([]Next{p.nextCounting(stratum, node)})
	}
	missing, cost := p.missing(pass, cells, stay.until)
	if len(missing) == 0 {
		v.since++
		v.spent += cost
		l.spent += cost
		return nil
	}
	return l.offer(p.together(pass, node, missing))
}

// paceOf is how far a node is with its sentinel, as the lookahead has come.
func (l *lookahead) paceOf(pass int, node string) *pace {
	v := l.pace[node]
	if v == nil {
		now := l.plan.watch(node).pace
		if pass > l.plan.walk.pass {
			now.at = 0
		}
		v = &now
		l.pace[node] = v
	}
	return v
}

// missing are the cells of a block that has not begun in the walk whose trials are not all there, and the time of those
// that are.
func (p *Plan) missing(pass int, cells []int, until int) (out []int, cost time.Duration) {
	for _, id := range cells {
		c := &p.cells[id]
		b := c.at(pass)
		if _, _, settled := b.settled(p.study.Retries, until); !settled && c.gaveUp == "" {
			out = append(out, id)
			continue
		}
		if b != nil {
			for _, t := range b.tries[b.from:] {
				cost += t.duration
			}
		}
	}
	return out, cost
}

// countedAhead reports whether a stratum's counting trials are over, although the walk has not come there.
func (p *Plan) countedAhead(stratum int) bool {
	failed := 0
	for _, t := range p.counting.tries[stratum] {
		if t.interrupted {
			continue
		}
		if failed++; t.ok || failed == countingTries {
			return true
		}
	}
	return false
}
